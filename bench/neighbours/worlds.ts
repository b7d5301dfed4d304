/** Worlds of a day of mixed work: what its programs are, and how they slow one another down. */
import { hash32 } from '../../lib/kernel/random.ts';
import { raw } from '../../lib/kernel/units.ts';
import type { Transfers } from '../../lib/domain/load.ts';
import type { InstanceType } from '../../lib/domain/pool.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import type { StartRequest } from '../../lib/ports/fleet.ts';
import type { Machine, TaskLoad } from '../../lib/drivers/sim/interference/contention.ts';
import { byContention, type Interference } from '../../lib/drivers/sim/interference/interference.ts';
import { transfersOf } from '../../lib/market/transfers.ts';
import { request } from '../../lib/workload/spec.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { fitted, readPairs } from './pairs.ts';

export const WORLDS = ['devices', 'pairs', 'none'] as const;
export type World = (typeof WORLDS)[number];

export interface WorldOf {
  readonly interference: Interference;
  /** The same jobs as runs of the programs of this world. */
  readonly jobs: (of: readonly WorkloadJob[]) => readonly WorkloadJob[];
}

const MB = 1e6;
const NOTHING: Transfers = { diskRead: 0, diskWritten: 0, netReceived: 0, netSent: 0 };
const boundTo = (bound: Partial<TaskLoad['bound']>): TaskLoad['bound'] => ({
  cpu: 0,
  disk: 0,
  net: 0,
  memory: 0,
  ...bound,
});

/**
 * Programs by what they are bound to: all vCPUs that they ask for; the disk, a scan at 60 MB/s; the network, a download
 * at 60 MB/s; or none of it. Assumed, not measured.
 */
const DEVICES: Readonly<Record<string, (vcpus: number) => TaskLoad>> = {
  cruncher: (vcpus) => ({ vcpus: 0.95 * vcpus, transfers: NOTHING, memory: 0, bound: boundTo({ cpu: 0.95 }) }),
  scanner: (vcpus) => ({
    vcpus: 0.3 * vcpus,
    transfers: { ...NOTHING, diskRead: 60 * MB },
    memory: 0,
    bound: boundTo({ cpu: 0.2, disk: 0.75 }),
  }),
  fetcher: (vcpus) => ({
    vcpus: 0.3 * vcpus,
    transfers: { ...NOTHING, netReceived: 60 * MB },
    memory: 0,
    bound: boundTo({ cpu: 0.2, net: 0.75 }),
  }),
  quiet: (vcpus) => ({ vcpus: 0.8 * vcpus, transfers: NOTHING, memory: 0, bound: boundTo({ cpu: 0.5 }) }),
};

/** vCPUs and memory, MiB, that Eva's programs ask for without a GPU (its catalogue of workloads, types c7i and r7i). */
const ASKED: Readonly<Record<string, Resources>> = {
  a3c: request(4, 8 * 1024),
  gcn: request(6, 40 * 1024),
  openfoam: request(6, 8 * 1024),
  seq: request(8, 16 * 1024),
  resnet18: request(4, 24 * 1024),
  sage: request(8, 50 * 1024),
  cyclegan: request(4, 10 * 1024),
  gpt2: request(4, 10 * 1024),
  vit: request(8, 60 * 1024),
};

const vcpusOf = ({ resources }: Pick<StartRequest, 'resources'>): number => raw(resources.cpu) / 1000;
const programOf = ({ command }: Pick<StartRequest, 'command'>): string => command[0] ?? '';

/** An instance of EC2 with what it transfers all the time; `more`: times as much of everything. */
const machine =
  (more: number) =>
  (type: InstanceType): Machine => {
    const most = transfersOf(type);
    const times = (of: number): number => of * more;
    return {
      vcpus: times(raw(type.capacity.cpu) / 1000),
      most: {
        diskRead: times(most.diskRead),
        diskWritten: times(most.diskWritten),
        netReceived: times(most.netReceived),
        netSent: times(most.netSent),
      },
      seek: 0,
    };
  };

/** Each template is a program: the same for all its jobs. */
const asPrograms =
  (programs: readonly string[], asked: Readonly<Record<string, Resources>> = {}) =>
  (jobs: readonly WorkloadJob[]): readonly WorkloadJob[] =>
    jobs.map((job) => {
      const template = job.spec.name.replace(/-\d+$/, '');
      const program = programs[hash32(template) % programs.length] ?? '';
      const stages = job.spec.stages.map((stage) => ({
        ...stage,
        command: [program],
        resources: asked[program] ?? stage.resources,
      }));
      return { ...job, spec: { ...job.spec, stages } };
    });

const byDevices = (more: number): WorldOf => ({
  interference: byContention((of) => DEVICES[programOf(of)]?.(vcpusOf(of)) ?? null, machine(more)),
  jobs: asPrograms(Object.keys(DEVICES)),
});

/** Pace by the measured pairs, neighbours by neighbours; loads by the model that is fitted to them. */
function byPairs(data: string): WorldOf {
  const pairs = readPairs(data);
  const { loads } = fitted(pairs);
  const known = pairs.throughput.flat().filter((t) => t !== null);
  const mean = known.reduce((sum, t) => sum + t, 0) / known.length;
  const throughput = (me: string, other: string): number =>
    pairs.throughput[pairs.programs.indexOf(me)]?.[pairs.programs.indexOf(other)] ?? mean;
  const measured = byContention(
    (of) => {
      const load = loads.get(programOf(of));
      // The fitted disk rate is a part of the machine's: here it becomes bytes per second.
      const diskRead = (load?.transfers.diskRead ?? 0) * transfersOf(LIKE).diskRead;
      return load === undefined ? null : { ...load, transfers: { ...NOTHING, diskRead } };
    },
    (type) => ({ vcpus: raw(type.capacity.cpu) / 1000, most: transfersOf(LIKE), seek: 0 }),
  );
  return {
    interference: (of) => {
      const pace = of.neighbours.reduce((p, other) => p * throughput(programOf(of.request), programOf(other)), 1);
      return { ...measured(of), pace };
    },
    jobs: asPrograms(pairs.programs, ASKED),
  };
}
/** The machine on which the parts of the fitted model are counted. */
const LIKE: InstanceType = {
  name: 'c7i.4xlarge',
  family: 'c7i',
  generation: 7,
  arch: 'x86_64',
  capacity: request(16, 32 * 1024),
};

const made = new Map<string, WorldOf>();

/** Made once in a process: the fit takes seconds. */
export function worldOf(world: World, data: string): WorldOf {
  const key = `${world} ${data}`;
  let of = made.get(key);
  // A hundred times of all devices: everything is measured, and nothing is scarce.
  if (of === undefined) {
    made.set(key, (of = world === 'pairs' ? byPairs(data) : byDevices(world === 'none' ? 100 : 1)));
  }
  return of;
}
