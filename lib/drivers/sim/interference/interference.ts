/** Interference of simulated tasks: how fast each runs beside its neighbours, and what a machine would measure. */
import { raw } from '../../../kernel/units.ts';
import type { Load, MostTransfers } from '../../../domain/load.ts';
import type { InstanceType } from '../../../domain/pool.ts';
import type { StartRequest } from '../../../ports/fleet.ts';
import { contended, type Machine, type TaskLoad } from './contention.ts';

/** A task beside its neighbours. */
export interface Beside {
  /** Seconds of work done per second. */
  readonly pace: number;
  /** What would be measured of it and of its machine; absent: nothing. */
  readonly measured?: Metered;
}

export interface Metered {
  /** `cpu`: part of the vCPUs that it asked for. */
  readonly own: Load;
  readonly machine: { readonly load: Load; readonly most: MostTransfers };
}

export interface TaskThere {
  readonly request: StartRequest;
  readonly type: InstanceType;
  readonly neighbours: readonly StartRequest[];
}

/** Asked again whenever the neighbours of a task change. */
export type Interference = (of: TaskThere) => Beside;

/** Interference by contention. Tasks without a load neither slow others down nor are slowed down. */
export const byContention =
  (loadOf: (request: StartRequest) => TaskLoad | null, machineOf: (type: InstanceType) => Machine): Interference =>
  ({ request, type, neighbours }) => {
    const load = loadOf(request);
    if (load === null) return { pace: 1 };
    const machine = machineOf(type);
    const all = [load, ...neighbours.flatMap((other) => loadOf(other) ?? [])];
    const { paces, own, load: whole } = contended(all, machine);
    const [pace = 1] = paces;
    const mine = own[0] ?? whole;
    const asked = raw(request.resources.cpu) / 1000;
    const cpu = asked > 0 ? Math.min(1, mine.cpu / asked) : 0;
    return { pace, measured: { own: { ...mine, cpu }, machine: { load: whole, most: machine.most } } };
  };
