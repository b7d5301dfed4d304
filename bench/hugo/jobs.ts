/**
 * The jobs of the evaluations of Mary (Mary, Hugo and Hugo*, table 4) and Hugo (table 6), and their queues (sections
 * 4.1.3 and 4.2.3), as far as a simulation can have them. Published are what each job does, its group, and how long
 * queues took without the new schedulers; jobs had about ten minutes alone. What a job is bound to follows its group;
 * how much of it is fitted to those durations (bench/hugo-fit.ts).
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
/** Parameters of the jobs for which queues take as long as published. */
export interface Fit {
  /** vCPUs of Mary's jobs that are bound to them, on three slots. */
  readonly vcpus: number;
  /** Bytes per second that Mary's queries of TPC-H read, in MB. */
  readonly disk: number;
  /** Seconds that Mary's jobs take alone. */
  readonly maryS: number;
  /** Loads of all of Hugo's jobs over those below. */
  readonly strength: number;
  /** Seconds that linear and logistic regression and word count take alone: they are in the later queues only. */
  readonly longS: number;
}

/** Found by `npm run bench:hugo-fit`. */
export const FIT: Fit = { vcpus: 3.3, disk: 295, maryS: 530, strength: 1.475, longS: 840 };

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

interface Program {
  readonly name: string;
  /** Seconds alone. */
  readonly runtimeS: number;
  /** Load of one task, three slots of a node. */
  readonly load: TaskLoad;
}

/**
 * By letter: A to I as in table 6, where A, D and I are of one group, E and F of one, and the others of groups of their
 * own; J to M are A to D of table 4.
 */
export function programsOf({ vcpus, disk, maryS, strength, longS }: Fit): Readonly<Record<string, Program>> {
  const hugo = (name: string, alone: TaskLoad, runtimeS = RUNTIME_S): Program => ({
    name,
    runtimeS,
    load: times(alone, strength),
  });
  const mary = (name: string, of: TaskLoad): Program => ({ name, runtimeS: maryS, load: of });
  const boundToDisk = Math.min(0.8, (disk * MB) / NODE.most.diskRead);
  const boundToCpu = Math.min(0.95, vcpus / 3.5);
  const query = (size: number): TaskLoad =>
    load(1.2, { cpu: 0.2, disk: boundToDisk }, { diskRead: size * disk * MB, netSent: 15 * MB });
  return {
    A: hugo('kmeans', load(2.8, { cpu: 0.9 }, { diskRead: 10 * MB, netSent: 5 * MB }, 0.2)),
    B: hugo('pagerank', load(0.8, { cpu: 0.2, net: 0.5 }, { netSent: 70 * MB, netReceived: 70 * MB }, 0.2)),
    C: hugo('components', load(1.0, { cpu: 0.3, net: 0.2 }, { netSent: 25 * MB, netReceived: 25 * MB }, 0.2)),
    D: hugo('linear', load(2.7, { cpu: 0.9 }, { diskRead: 15 * MB, netSent: 5 * MB }, 0.25), longS),
    E: hugo('logistic', load(2.2, { cpu: 0.5, memory: 0.4 }, { diskRead: 12 * MB, netSent: 8 * MB }, 0.6), longS),
    F: hugo('svm', load(2.0, { cpu: 0.45, memory: 0.4 }, { diskRead: 15 * MB, netSent: 8 * MB }, 0.6)),
    G: hugo(
      'tpch',
      load(1.3, { cpu: 0.3, disk: 0.6 }, { diskRead: 230 * MB, diskWritten: 20 * MB, netSent: 15 * MB }, 0.2),
    ),
    H: hugo(
      'sort',
      load(
        1.0,
        { cpu: 0.2, disk: 0.5, net: 0.2 },
        { diskRead: 90 * MB, diskWritten: 110 * MB, netSent: 50 * MB, netReceived: 50 * MB },
        0.2,
      ),
    ),
    I: hugo('wordcount', load(2.6, { cpu: 0.85 }, { diskRead: 40 * MB }, 0.2), longS),
    J: mary('kmeans', load(vcpus, { cpu: boundToCpu }, { diskRead: 10 * MB, netSent: 5 * MB })),
    K: mary('components', load(0.9 * vcpus, { cpu: 0.9 * boundToCpu, net: 0.1 }, { netSent: 30 * MB })),
    L: mary('tpch-10', query(1)),
    M: mary('tpch-3', query(0.95)),
  };
}

/** As much more of everything, and as much more of its time bound to it, up to all. */
function times({ vcpus, transfers, memory, bound }: TaskLoad, strength: number): TaskLoad {
  const { cpu, disk, net, memory: boundToMemory } = bound;
  const more = Math.min(1 / (cpu + disk + net + boundToMemory), strength);
  return {
    vcpus: strength * vcpus,
    transfers: {
      diskRead: strength * transfers.diskRead,
      diskWritten: strength * transfers.diskWritten,
      netReceived: strength * transfers.netReceived,
      netSent: strength * transfers.netSent,
    },
    memory: strength * memory,
    bound: { cpu: more * cpu, disk: more * disk, net: more * net, memory: more * boundToMemory },
  };
}

const repeated = (pattern: string, times: number): string => Array.from({ length: times }, () => pattern).join('');
const blocks = (letters: string, of: number, times: number): string =>
  repeated([...letters].map((l) => repeated(l, of)).join(''), times);

export const QUEUES = {
  'queue 1': blocks('LJMK', 4, 3),
  'queue 2': blocks('LJMK', 3, 4),
  learning: repeated('CBGAFH', 10),
  unseen: repeated('DEBCHGI', 5),
  'queue 3': 'CBBEAEEBIHHCBIHCEGFFAFCIGDAGICGAFFDEGDAIDBHDH',
  'queue 4': 'EIABCHGCAHEGCBFFGDBACGDDHFIGCDBAFIFEIEEAHHBDI',
} as const;
export type QueueName = keyof typeof QUEUES;

/** Nodes of the cluster: Mary's evaluation had 17, Hugo's 34. */
export const nodesOf = (queue: QueueName): number => (queue === 'queue 1' || queue === 'queue 2' ? 17 : 34);

/** The same jobs in the best order that was found on seeds for tuning: `npm run bench:hugo-bound`. */
export const BEST_ORDERS: Readonly<Record<QueueName, string>> = {
  'queue 1': 'LLKLLJJJMMLJKKLLLJJMJMMKMMKKMKJKLJLJJLMMMJKLKKKM',
  'queue 2': 'LKLJJJMMMKKKLLLJJJMMMKKKKLLJJJJMMMKKLLLJJLKMLMMK',
  learning: 'CBGAFHCBGAFHCBHAFHCGBGAHCGABFHCABGAFGCBAFHCBGAFBFBGCFHCHGAFH',
  unseen: 'CDEHGDBIHDEGCHICEHDIGBIIBGBCCDEHEBG',
  'queue 3': 'ABEGCHIECBIHGFBAECAHIFHFIGDDFGCAGFIHDEBADECDB',
  'queue 4': 'EIAHFGCAGECBAGDHBABGDDCHEIHCDCIFHIBFIEFABEGDF',
};

export interface QueueOfJobs {
  /** In the order of submission. */
  readonly letters: string;
  readonly nodes: number;
  readonly seed: number;
  /** Time of job number i. */
  readonly atS: (i: number) => number;
  readonly key: string;
  readonly fit: Fit;
}

/** Each job has a gang of tasks: a quarter of the places of the nodes. */
export function jobsOf({ letters, nodes, seed, atS, key, fit }: QueueOfJobs): readonly WorkloadJob[] {
  const draw = randomLogNormal.source(randomStream(seed, `hugo/${key}`))(0, SPREAD);
  const tasks = Math.floor((2 * nodes) / JOBS_AT_ONCE);
  const programOf = programsIn(fit);
  return [...letters].map((letter, i) => {
    const { name, runtimeS: aloneS } = programOf(letter);
    const runtimeS = aloneS * draw();
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

function programsIn(fit: Fit): (letter: string) => Program {
  const programs = programsOf(fit);
  return (letter) => {
    const program = programs[letter];
    if (program === undefined) throw new RangeError(`no job is called ${letter}`);
    return program;
  };
}

export function interferenceOf(fit: Fit): Interference {
  const programOf = programsIn(fit);
  return byContention(
    ({ command }) => programOf(command.at(-1) ?? '').load,
    () => NODE,
  );
}
