/**
 * How programs on one machine slow one another down: each is bound to vCPUs, disk, network and memory bandwidth for
 * parts of its time, and what is asked for too much is shared in proportion. Ours, a model of processor sharing: the
 * papers measure real machines. Parameters are stated where a machine and its programs are described; how well it fits
 * measured pairs is in docs/results.md (`npm run bench:hugo`).
 */
import { TRANSFERS, type Load, type MostTransfers, type Transfers } from '../../../domain/load.ts';

/** What a program does alone, at full pace. */
export interface TaskLoad {
  /** vCPUs busy, mean. */
  readonly vcpus: number;
  /** Bytes per second, mean. */
  readonly transfers: Transfers;
  /** Part of the memory bandwidth of the machine. */
  readonly memory: number;
  /** Parts of its time that it is bound to each; the rest it waits for none of them. Sum at most 1. */
  readonly bound: Bound;
}

export interface Bound {
  readonly cpu: number;
  readonly disk: number;
  readonly net: number;
  readonly memory: number;
}

export interface Machine {
  readonly vcpus: number;
  readonly most: MostTransfers;
  /**
   * Loss of the disk's rate with each further program that uses it as much: 0 for solid state, about 0.3 for spinning
   * disks, whose heads seek between streams.
   */
  readonly seek: number;
}

export interface Contended {
  /** Seconds of work done in a second, by program. */
  readonly paces: readonly number[];
  readonly load: Load;
  /** Load of each program; `cpu` in vCPUs. */
  readonly own: readonly Load[];
}

const ROUNDS = 60;
const KINDS = ['cpu', 'disk', 'net', 'memory'] as const;
type Kind = (typeof KINDS)[number];

/** Part of a machine that a program asks for at full pace, of each kind; above 1: more than there is. */
function demandOf({ vcpus, transfers, memory }: TaskLoad, machine: Machine): Readonly<Record<Kind, number>> {
  const part = (...of: readonly (keyof Transfers)[]): number =>
    of.reduce((sum, k) => sum + (machine.most[k] > 0 ? transfers[k] / machine.most[k] : 0), 0);
  return {
    cpu: vcpus / machine.vcpus,
    disk: part('diskRead', 'diskWritten'),
    // Both directions at once: full duplex.
    net: Math.max(part('netReceived'), part('netSent')),
    memory,
  };
}

/** O(programs) for each of a fixed number of rounds. The same programs give the same answer, in any order. */
export function contended(tasks: readonly TaskLoad[], machine: Machine): Contended {
  const demands = tasks.map((task) => demandOf(task, machine));
  const streams = participants(demands.map((d) => d.disk));
  const room: Readonly<Record<Kind, number>> = {
    cpu: 1,
    disk: 1 / (1 + machine.seek * Math.max(0, streams - 1)),
    net: 1,
    memory: 1,
  };
  const slow: Record<Kind, number> = { cpu: 1, disk: 1, net: 1, memory: 1 };
  const paceOf = ({ bound }: TaskLoad): number => 1 / KINDS.reduce((time, k) => time + bound[k] * (slow[k] - 1), 1);
  for (let round = 0; round < ROUNDS; round++) {
    const paces = tasks.map(paceOf);
    for (const k of KINDS) {
      const used = demands.reduce((sum, d, i) => sum + (paces[i] ?? 0) * d[k], 0);
      slow[k] = Math.max(1, slow[k] * (used / room[k]));
    }
  }
  const paces = tasks.map(paceOf);
  const waits = tasks.map(({ bound }, i) =>
    Math.min(1, (paces[i] ?? 0) * (bound.disk * slow.disk + bound.net * slow.net)),
  );
  const own = tasks.map(({ vcpus, transfers }, i): Load => {
    const pace = paces[i] ?? 0;
    const moved = Object.fromEntries(TRANSFERS.map((k) => [k, transfers[k] * pace])) as unknown as Transfers;
    return { cpu: vcpus * pace, ioWait: waits[i] ?? 0, ...moved };
  });
  const sum = (of: (load: Load) => number): number => own.reduce((total, load) => total + of(load), 0);
  const cpu = Math.min(1, sum((l) => l.cpu) / machine.vcpus);
  const moved = Object.fromEntries(TRANSFERS.map((k) => [k, sum((l) => l[k])])) as unknown as Transfers;
  // As the kernel counts it: vCPUs that are idle while a program waits. A waiting program would keep those busy that it
  // uses when it does not wait.
  const waiting = waits.reduce((vcpus, w, i) => vcpus + w * Math.max(1, tasks[i]?.vcpus ?? 0), 0);
  return { paces, load: { cpu, ioWait: Math.min(1 - cpu, waiting / machine.vcpus), ...moved }, own };
}

/** Number of programs that share a disk: 2 where two use it alike, near 1 where one does nearly all. */
function participants(parts: readonly number[]): number {
  const sum = parts.reduce((a, b) => a + b, 0);
  const squares = parts.reduce((a, b) => a + b * b, 0);
  return squares > 0 ? (sum * sum) / squares : 0;
}
