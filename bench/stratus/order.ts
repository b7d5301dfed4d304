/** Runs as plain data. */
import { randomStream } from '../../lib/kernel/random.ts';
import { presetNamed, type OwnPresets } from '../../lib/stages/registry.ts';
import { beginOf, MARKETS } from './markets.ts';
import { runOf, type Figures } from './run.ts';
import { cutOf, tasksAsJobs, WORKLOADS, type Part } from './work.ts';

/** One preset on one window. */
export interface Order {
  readonly workload: string;
  readonly market: string;
  readonly window: number;
  readonly sample: number;
  readonly preset: string;
  /** Range of the factor of hints (section 3.4.4); 1: true running times. */
  readonly h: number;
  readonly data: string;
  readonly seed: number;
  readonly gapS: number;
}

export interface Answer extends Order {
  readonly figures: Figures;
}

/** Presets of the comparison that are not shipped: they are told running times that are off by a known factor. */
export const HINTED: OwnPresets = {
  'stratus-told': { extends: 'stratus', estimate: 'told' },
  'stratus-told-no-clearing': { extends: 'stratus-no-clearing', estimate: 'told' },
};

/** True for presets that are told running times; the others learn them from earlier jobs. */
export const isTold = (preset: string): boolean => presetNamed(preset, HINTED).policies.estimate === 'told';

export async function answerOf(order: Order): Promise<Answer> {
  const workload = found(WORKLOADS, order.workload);
  const market = found(MARKETS, order.market);
  const trace = await market.open(order.data);
  const cut = await cutOf(workload, order, { data: order.data, machine: market.machine });
  const told = isTold(order.preset);
  const draw = (key: string): number => randomStream(order.seed, `hint ${key}`)();
  const jobs = told ? tasksAsJobs(cut.jobs, { h: order.h, draw }) : cut.jobs;
  const windows = (['tune', 'report'] as const satisfies readonly Part[]).flatMap((part) => workload.windows[part]);
  const figures = await runOf(order.preset, jobs, {
    trace,
    fromMs: beginOf(trace, order.window, windows.length),
    windowS: workload.windowS,
    gapS: order.gapS,
    seed: order.seed,
    own: HINTED,
    earlier: told ? [] : cut.earlier,
  });
  return { ...order, figures };
}

function found<T extends { readonly name: string }>(all: readonly T[], name: string): T {
  const one = all.find((x) => x.name === name);
  if (one !== undefined) return one;
  throw new Error(`there is no ${name}; there are ${all.map((x) => x.name).join(', ')}`);
}

export function progress({ workload, market, window, preset, h, figures }: Answer, done: number, all: number): void {
  const hint = h === 1 ? '' : `, h ${h.toPrecision(2)}`;
  const took = `${figures.tookS.toFixed(1)} s`;
  console.error(
    `${done} of ${all}: ${workload}, ${market}, window ${window}, ${preset}${hint}: $${figures.usd.toFixed(2)}, ${took}`,
  );
}
