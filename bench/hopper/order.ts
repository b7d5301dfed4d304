/** Runs as plain data. */
import { straggling } from '../../lib/drivers/sim/stragglers.ts';
import type { OwnPresets } from '../../lib/stages/registry.ts';
import { runOnCluster, type ClusterFigures } from '../cluster/run.ts';
import { hopperJobs } from './work.ts';

export interface Order {
  readonly preset: string;
  readonly beta: number;
  readonly load: number;
  readonly seed: number;
  readonly jobs: number;
}

export interface Answer extends Order {
  readonly figures: ClusterFigures;
}

/** Presets of the comparison that are not shipped. */
const OWN: OwnPresets = { 'hopper-unfair': { extends: 'hopper', settings: { fairEpsilon: 1 } } };

const MACHINES = { count: 50, cpu: 4 };
const SLOTS = MACHINES.count * MACHINES.cpu;

export async function answerOf(order: Order): Promise<Answer> {
  const { preset, beta, load, seed } = order;
  const jobs = hopperJobs({ jobs: order.jobs, seed, load, slots: SLOTS, phases: 3 });
  const figures = await runOnCluster({
    preset,
    own: OWN,
    cluster: `${MACHINES.count}x{cpu: ${MACHINES.cpu}, memory: 16GiB}`,
    jobs,
    earlier: [],
    runtime: straggling({ beta }, seed),
    seed,
    gapS: 1,
    cycleS: 15,
    untilS: 30 * 86_400,
  });
  return { ...order, figures };
}
