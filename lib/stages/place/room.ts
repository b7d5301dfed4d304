import { compareText } from '../../kernel/compare.ts';
import { raw } from '../../kernel/units.ts';
import type { Pool } from '../../domain/pool.ts';
import { KINDS, RESOURCE_KINDS, SLACK, addInto, fitsFrom, vector, type Resources } from '../../domain/resources.ts';
import type { Host, TaskToPlace } from '../../policy/contracts.ts';

/** Tasks that are alike to the packer, placed one after the other. */
export interface Run {
  readonly tasks: readonly TaskToPlace[];
  readonly need: readonly number[];
  readonly runtimeS: number;
  /** Runs of one gang are all placed or none; null: no gang. */
  readonly gang: string | null;
  readonly allowed: TaskToPlace['allowed'];
  readonly inPool: NonNullable<TaskToPlace['inPool']>;
}

const ANY_POOL = (): boolean => true;

/** Free resources while packing, of hosts that can take anything, in one array: KINDS numbers per host. */
export class Room {
  /** Hosts that a run may use, with room for one of its tasks, in the given order. */
  readonly hosts: readonly Host[];
  readonly free: Float64Array;
  /** Least free resources with which a host can take any task. */
  readonly #least: readonly number[];
  /** Reciprocal of the largest capacity per resource, so that amounts of different resources add up. */
  readonly #scale: readonly number[];

  constructor(hosts: readonly Host[], runs: readonly Run[]) {
    this.#least = RESOURCE_KINDS.map((_, k) => runs.reduce((least, r) => Math.min(least, r.need[k] ?? 0), Infinity));
    this.hosts = withRoom(hosts, distinctNeeds(runs), asked(runs));
    this.free = new Float64Array(this.hosts.length * KINDS);
    this.hosts.forEach(({ free }, h) => addInto(this.free, h * KINDS, free));
    const largest = new Float64Array(KINDS);
    const seen = new Set<Host['capacity']>();
    let last: Host['capacity'] | null = null;
    for (const { capacity } of hosts) {
      if (capacity === last || seen.has(capacity)) continue;
      seen.add((last = capacity));
      vector(capacity).forEach((c, k) => (largest[k] = Math.max(largest[k] ?? 0, c)));
    }
    this.#scale = Array.from(largest, (c) => (c > 0 ? 1 / c : 0));
  }

  fits(need: readonly number[], h: number): boolean {
    for (let k = 0; k < KINDS; k++) if ((need[k] ?? 0) > (this.free[h * KINDS + k] ?? 0) + SLACK) return false;
    return true;
  }

  /** True if the host has room for the smallest need of each resource. */
  mayHold(h: number): boolean {
    return this.fits(this.#least, h);
  }

  /** "Most available resources" (Stratus 3.2.2) over several resources: the sum, each in units of the largest host. */
  available(h: number): number {
    let sum = 0;
    for (let k = 0; k < KINDS; k++) sum += (this.free[h * KINDS + k] ?? 0) * (this.#scale[k] ?? 0);
    return sum;
  }

  /**
   * Order by name, for hosts that are equal otherwise: packing must not depend on the order of hosts, and sorting all
   * of them would be slow.
   */
  byName(a: number, b: number): number {
    return compareHosts(this.hosts[a] as Host, this.hosts[b] as Host);
  }

  /** Takes `sign` x need: 1 to place, -1 to undo. */
  take(need: readonly number[], h: number, sign: 1 | -1): void {
    for (let k = 0; k < KINDS; k++) this.free[h * KINDS + k] = (this.free[h * KINDS + k] ?? 0) - sign * (need[k] ?? 0);
  }
}

/** True for a pool that any run may use; asked once per pool. */
function asked(runs: readonly Run[]): (pool: Pool) => boolean {
  const known = new Map<Pool, boolean>();
  return (pool) => {
    let may = known.get(pool);
    if (may === undefined) known.set(pool, (may = runs.some((run) => run.inPool(pool))));
    return may;
  };
}

/** Distinct needs of the runs, KINDS numbers for each. */
function distinctNeeds(runs: readonly Run[]): Float64Array {
  const distinct = new Map<string, readonly number[]>();
  for (const { need } of runs) distinct.set(need.join(), need);
  return Float64Array.from([...distinct.values()].flat());
}

/** Hosts that fit any of the needs. It runs over every host for every packing, so it allocates no vectors. */
function withRoom(hosts: readonly Host[], needs: Float64Array, mayUse: (pool: Pool) => boolean): Host[] {
  const kept: Host[] = [];
  // Hosts of one pool mostly follow one another.
  let pool: Pool | null = null;
  let may = false;
  for (const host of hosts) {
    if (host.pool !== pool) may = mayUse((pool = host.pool));
    if (!may) continue;
    for (let n = 0; n < needs.length; n += KINDS) {
      if (!fitsFrom(needs, n, host.free)) continue;
      kept.push(host);
      break;
    }
  }
  return kept;
}

const compareHosts = (a: Host, b: Host): number => compareText(a.on, b.on);

/**
 * Units of packing, in the packer's order: single runs, or gangs with all their runs. A run has tasks of equal need and
 * running time, of any groups, that share `allowed`; they ascend by job and index. O(tasks log tasks).
 */
export function unitsOf(tasks: readonly TaskToPlace[]): readonly (readonly Run[])[] {
  // By shared function first, which needs no text.
  const runs = new Map<TaskToPlace['allowed'], Map<string, TaskToPlace[]>>();
  const keys = new Map<Resources, string>();
  for (const task of tasks) {
    let alike = runs.get(task.allowed);
    if (alike === undefined) runs.set(task.allowed, (alike = new Map<string, TaskToPlace[]>()));
    let need = keys.get(task.need);
    if (need === undefined) keys.set(task.need, (need = vector(task.need).join()));
    const key = `${raw(task.runtimeS)} ${need} ${task.gang ?? ''}`;
    const list = alike.get(key);
    if (list === undefined) alike.set(key, [task]);
    else list.push(task);
  }
  const units = new Map<string, Run[]>();
  let single = 0;
  for (const alike of runs.values()) {
    for (const list of alike.values()) {
      list.sort((a, b) => compareText(a.group, b.group) || a.task.index - b.task.index);
      const first = list[0] as TaskToPlace;
      const run: Run = {
        tasks: list,
        need: vector(first.need),
        runtimeS: raw(first.runtimeS),
        gang: first.gang,
        allowed: first.allowed,
        inPool: first.inPool ?? ANY_POOL,
      };
      const unit = first.gang === null ? `single ${single++}` : `gang ${first.gang}`;
      const gang = units.get(unit);
      if (gang === undefined) units.set(unit, [run]);
      else gang.push(run);
    }
  }
  const all = [...units.values()];
  for (const unit of all) unit.sort(compareRuns);
  return all.sort((a, b) => compareRuns(a[0] as Run, b[0] as Run));
}

/** Longest first (Stratus 3.2.2), then the larger need, then names. */
function compareRuns(a: Run, b: Run): number {
  if (a.runtimeS !== b.runtimeS) return b.runtimeS - a.runtimeS;
  for (let k = 0; k < KINDS; k++) {
    const more = (b.need[k] ?? 0) - (a.need[k] ?? 0);
    if (more !== 0) return more;
  }
  const x = a.tasks[0] as TaskToPlace;
  const y = b.tasks[0] as TaskToPlace;
  return compareText(x.group, y.group) || x.task.index - y.task.index;
}
