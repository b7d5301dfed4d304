import { raw } from '../../lib/kernel/units.ts';
import type { Placement } from '../../lib/domain/plan.ts';
import { vector } from '../../lib/domain/resources.ts';
import type { Host, TaskToPlace } from '../../lib/policy/contracts.ts';
import { keyOf } from './packing-cases.ts';
import { nameOf, runtimeOf } from './tasks-to-place.ts';

/** Oracles of the packers: one task at a time over all hosts, with no runs, no heaps, no index and no pools. */

/** Which host each placed task is on, by names. */
export const whereOf = (placements: readonly Placement[]): Record<string, string> =>
  Object.fromEntries(placements.map((p) => [keyOf(p), nameOf(p.on)]));

interface Filled {
  readonly host: Host;
  free: readonly number[];
  remainingS: number;
}
type Choose = (task: TaskToPlace, able: readonly Filled[]) => Filled | undefined;

const KINDS = [0, 1, 2, 3] as const;
const bin = (s: number): number => (s < 1 ? 0 : Math.floor(Math.log2(s)) + 1);
const text = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Longest first, then the larger need, then names. */
function longestFirst(a: TaskToPlace, b: TaskToPlace): number {
  const [x, y] = [vector(a.need), vector(b.need)];
  const needs = KINDS.map((k) => y[k] - x[k]).find((d) => d !== 0) ?? 0;
  return runtimeOf(b) - runtimeOf(a) || needs || text(a.group, b.group) || a.task.index - b.task.index;
}

/** Each gang at the place of its first task, undone where one of it finds no host. */
function packOneByOne(ordered: readonly TaskToPlace[], hosts: readonly Host[], choose: Choose): Record<string, string> {
  let state: readonly Filled[] = [...hosts]
    .sort((a, b) => text(a.on, b.on))
    .map((h) => ({ host: h, free: vector(h.free), remainingS: raw(h.remainingS) }));
  const placed: Record<string, string> = {};
  const done = new Set<TaskToPlace>();
  for (const first of ordered) {
    if (done.has(first)) continue;
    const unit = first.gang === null ? [first] : ordered.filter((t) => t.gang === first.gang);
    const tried = state.map((s) => ({ ...s }));
    const where: Record<string, string> = {};
    for (const task of unit) {
      done.add(task);
      const need = vector(task.need);
      const able = tried.filter((s) => KINDS.every((k) => need[k] <= (s.free[k] ?? 0) + 1e-6) && task.allowed(s.host));
      const on = choose(task, able);
      if (on === undefined) continue;
      on.free = KINDS.map((k) => (on.free[k] ?? 0) - need[k]);
      on.remainingS = Math.max(on.remainingS, runtimeOf(task));
      where[keyOf(task)] = nameOf(on.host.on);
    }
    if (Object.keys(where).length < unit.length) continue;
    state = tried;
    Object.assign(placed, where);
  }
  return placed;
}

/** Stratus 3.2.2. */
export function naiveStratus(tasks: readonly TaskToPlace[], hosts: readonly Host[]): Record<string, string> {
  const largest = KINDS.map((k) => Math.max(...hosts.map((h) => vector(h.capacity)[k])));
  // The same arithmetic as in the packer: equal sums must stay equal.
  const room = ({ free }: Filled): number =>
    free.reduce((sum, f, k) => sum + f * ((largest[k] ?? 0) > 0 ? 1 / (largest[k] ?? 1) : 0), 0);
  return packOneByOne([...tasks].sort(longestFirst), hosts, (task, able) => {
    const native = bin(runtimeOf(task));
    const rank = (s: Filled): readonly number[] => {
      const b = bin(s.remainingS);
      if (b === native) return [0, 0, Math.abs(s.remainingS - runtimeOf(task))];
      return b > native ? [1, b, -room(s)] : [2, -b, -room(s)];
    };
    return best(able, rank);
  });
}

/** The first by name, longest tasks first. */
export const naiveFirstFit = (tasks: readonly TaskToPlace[], hosts: readonly Host[]): Record<string, string> =>
  packOneByOne([...tasks].sort(longestFirst), hosts, (_, able) => able[0]);

/** The first by name that was empty and has no task yet; tasks by name. */
export function naiveOnePerInstance(tasks: readonly TaskToPlace[], hosts: readonly Host[]): Record<string, string> {
  const empty = hosts.filter((h) => KINDS.every((k) => vector(h.free)[k] === vector(h.capacity)[k]));
  const byName = [...tasks].sort((a, b) => text(a.task.job, b.task.job) || a.task.index - b.task.index);
  return packOneByOne(byName, empty, (_, able) =>
    able.find((s) => KINDS.every((k) => s.free[k] === vector(s.host.capacity)[k])),
  );
}

/** The least by rank, numbers compared one after the other; the first of equals. */
function best(able: readonly Filled[], rank: (s: Filled) => readonly number[]): Filled | undefined {
  let least: Filled | undefined;
  for (const s of able) {
    const other = least === undefined ? null : rank(least);
    const difference =
      other === null
        ? -1
        : (rank(s)
            .map((v, i) => v - (other[i] ?? 0))
            .find((d) => d !== 0) ?? 0);
    if (difference < 0) least = s;
  }
  return least;
}
