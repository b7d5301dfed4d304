/**
 * The nine jobs of Hugo's evaluation (Mary, Hugo and Hugo*, table 6) and its queues (sections 4.1.3 and 4.2.3), as far
 * as a simulation can have them. Published are what each job does, its group, and the mean load of four of them alone
 * on ten nodes (table 1); all had about ten minutes. The rest is assumed here: what a job is bound to follows its
 * group, and its load while it is bound to a device is near what the device can do.
 */
import { randomLogNormal } from 'd3-random';
import { randomStream } from '../../lib/kernel/random.ts';
import type { Transfers } from '../../lib/domain/load.ts';
import type { Machine, TaskLoad } from '../../lib/drivers/sim/interference/contention.ts';
import { byContention, type Interference } from '../../lib/drivers/sim/interference/interference.ts';
import { request } from '../../lib/workload/spec.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { benchJob } from '../cluster/jobs.ts';

const MB = 1e6;
/** A node of section 2.1: four cores with two threads each, three disks in a RAID 0, 1 Gbit/s. */
export const NODE: Machine = {
  // Two threads of a core do about 1.3 times the work of one.
  vcpus: 5.2,
  most: { diskRead: 400 * MB, diskWritten: 350 * MB, netReceived: 117 * MB, netSent: 117 * MB },
  seek: 0.3,
};
/** Six of eight slots of a node are used, three by each of two jobs (section 4.1.3). */
export const SLOTS_OF_TASK = 3;
/** A job uses a quarter of all slots. */
export const JOBS_AT_ONCE = 4;
const RUNTIME_S = 600;
/** Spread of running times from one run to the next, of their logarithm. */
const SPREAD = 0.05;

const moved = (of: Partial<Transfers>): Transfers => ({
  diskRead: 0,
  diskWritten: 0,
  netReceived: 0,
  netSent: 0,
  ...of,
});
const load = (vcpus: number, bound: Partial<TaskLoad['bound']>, of: Partial<Transfers> = {}, memory = 0): TaskLoad => ({
  vcpus,
  transfers: moved(of),
  memory,
  bound: { cpu: 0, disk: 0, net: 0, memory: 0, ...bound },
});

/** By letter, with its group in table 6; loads of one task, three slots of a node. */
export const PROGRAMS: Readonly<
  Record<string, { readonly name: string; readonly group: number; readonly load: TaskLoad }>
> = {
  A: { name: 'kmeans', group: 1, load: load(2.8, { cpu: 0.9 }, { diskRead: 10 * MB, netSent: 5 * MB }, 0.2) },
  B: {
    name: 'pagerank',
    group: 3,
    load: load(0.8, { cpu: 0.2, net: 0.5 }, { netSent: 70 * MB, netReceived: 70 * MB }, 0.2),
  },
  C: {
    name: 'components',
    group: 6,
    load: load(1.0, { cpu: 0.3, net: 0.2 }, { netSent: 25 * MB, netReceived: 25 * MB }, 0.2),
  },
  D: { name: 'linear', group: 1, load: load(2.7, { cpu: 0.9 }, { diskRead: 15 * MB, netSent: 5 * MB }, 0.25) },
  E: {
    name: 'logistic',
    group: 2,
    load: load(2.2, { cpu: 0.5, memory: 0.4 }, { diskRead: 12 * MB, netSent: 8 * MB }, 0.6),
  },
  F: {
    name: 'svm',
    group: 2,
    load: load(2.0, { cpu: 0.45, memory: 0.4 }, { diskRead: 15 * MB, netSent: 8 * MB }, 0.6),
  },
  G: {
    name: 'tpch',
    group: 4,
    load: load(1.3, { cpu: 0.3, disk: 0.6 }, { diskRead: 230 * MB, diskWritten: 20 * MB, netSent: 15 * MB }, 0.2),
  },
  H: {
    name: 'sort',
    group: 5,
    load: load(
      1.0,
      { cpu: 0.2, disk: 0.5, net: 0.2 },
      { diskRead: 90 * MB, diskWritten: 110 * MB, netSent: 50 * MB, netReceived: 50 * MB },
      0.2,
    ),
  },
  I: { name: 'wordcount', group: 1, load: load(2.6, { cpu: 0.85 }, { diskRead: 40 * MB }, 0.2) },
};

const repeated = (pattern: string, times: number): string => Array.from({ length: times }, () => pattern).join('');
const blocks = (letters: string, of: number, times: number): string =>
  repeated([...letters].map((l) => repeated(l, of)).join(''), times);

/** Mary's letters are others (table 4): C, A, D, B there are TPC-H 10, K-Means, TPC-H 3, Connected Components. */
export const QUEUES = {
  'queue 1': blocks('GAGC', 4, 3),
  'queue 2': blocks('GAGC', 3, 4),
  learning: repeated('CBGAFH', 10),
  unseen: repeated('DEBCHGI', 5),
  'queue 3': 'CBBEAEEBIHHCBIHCEGFFAFCIGDAGICGAFFDEGDAIDBHDH',
  'queue 4': 'EIABCHGCAHEGCBFFGDBACGDDHFIGCDBAFIFEIEEAHHBDI',
} as const;
export type QueueName = keyof typeof QUEUES;

export interface QueueOfJobs {
  readonly queue: QueueName;
  readonly nodes: number;
  readonly seed: number;
  /** Time of job number i. */
  readonly atS: (i: number) => number;
  readonly key: string;
}

/** Each job has a gang of tasks: a quarter of the places of the nodes. */
export function jobsOf({ queue, nodes, seed, atS, key }: QueueOfJobs): readonly WorkloadJob[] {
  const draw = randomLogNormal.source(randomStream(seed, `hugo/${key}`))(0, SPREAD);
  const tasks = Math.floor((2 * nodes) / JOBS_AT_ONCE);
  return [...QUEUES[queue]].map((letter, i) => {
    const runtimeS = RUNTIME_S * draw();
    const { name } = programOf(letter);
    return benchJob({
      key: `${key}-${String(i).padStart(3, '0')}-${letter}`,
      submittedS: atS(i),
      stages: [
        {
          name: 'main',
          runtimeS: Array.from({ length: tasks }, () => runtimeS),
          over: { gang: true, command: [name, letter], resources: request(SLOTS_OF_TASK, 6 * 1024) },
        },
      ],
      over: { name },
    });
  });
}

function programOf(letter: string) {
  const program = PROGRAMS[letter];
  if (program === undefined) throw new RangeError(`no job is called ${letter}`);
  return program;
}

export const interference: Interference = byContention(
  ({ command }) => programOf(command.at(-1) ?? '').load,
  () => NODE,
);
