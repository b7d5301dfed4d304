/**
 * Attempts that take longer than others of the same task, as machines and attempts differ: truth of a simulation in
 * which copies of tasks can win.
 */
import { randomStream } from '../../kernel/random.ts';
import { raw, seconds } from '../../kernel/units.ts';
import type { TrueRuntime } from './truth.ts';

/**
 * `siblings`: a task's first attempt takes the time of the workload, every later one that of a task of its stage, drawn
 * at random: for traces that measured stragglers. `pareto`: every attempt takes the time of the workload times a draw
 * from a Pareto distribution of mean 1 and tail index `beta` (the model of Hopper, section 2).
 */
export type Stragglers = 'siblings' | { readonly beta: number };

/** Draws are an attempt's own, whatever else happens: presets that are compared meet the same stragglers. */
export function straggling(of: Stragglers, seed: number): TrueRuntime {
  const draw = ({ job, stage, index, number }: Parameters<TrueRuntime>[0]['task']): number =>
    randomStream(seed, `straggler/${job}/${stage}/${index}/${number}`)();
  if (of === 'siblings')
    return ({ task, runtimeS, stageS }) =>
      task.number === 1 ? runtimeS : seconds(stageS[Math.floor(draw(task) * stageS.length)] ?? raw(runtimeS));
  const { beta } = of;
  const leastOfMeanOne = (beta - 1) / beta;
  return ({ task, runtimeS }) => seconds(raw(runtimeS) * leastOfMeanOne * (1 - draw(task)) ** (-1 / beta));
}
