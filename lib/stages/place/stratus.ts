import TinyQueue from 'tinyqueue';
import { invariant } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import type { Placement } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { fits } from '../../domain/resources.ts';
import type { Host, PlaceTasks, TaskToPlace } from '../../policy/contracts.ts';
import { fillEmpty, Rest } from './empty-hosts.ts';
import { Room, unitsOf, type Run } from './room.ts';

/**
 * Stratus' packer (section 3.2.2). Hosts are in runtime bins [0, 1), [1, 2), [2, 4), ... seconds by their longest
 * remaining task. Tasks go longest first:
 *   1. same bin: the host whose remaining time is closest to the task's;
 *   2. up-packing, greater bins in ascending order: the host with the most available resources;
 *   3. down-packing, lesser bins in descending order: the same, and the host is promoted to the task's bin.
 * Gangs are placed whole or not at all, at the place of their longest task. `allowed` is respected; nothing is
 * overfilled.
 *
 * Tasks of one group are alike and are packed in runs with the same result as one by one: in (1) the closest host stays
 * the closest until it is full, in (2) a heap gives the roomiest host again and again, after (3) the promoted host is
 * the closest of its bin. Give tasks of a group one shared `allowed` function: it is asked once per run and host.
 *
 * A run costs O(H log H + tasks log H) for the H hosts that have room for anything, so all in all O(T log T + runs x H
 * log H): what counts is groups, not tasks. Input order of tasks and hosts does not matter.
 */
export const stratusPack: PlaceTasks = (tasks, hosts) => {
  const { units, packer } = packed(tasks, hosts);
  return units.flatMap((unit) => packer.place(unit));
};

/**
 * The same where nothing runs yet counts as no bin: what finds no room beside other tasks fills empty hosts with all
 * the tasks of its bin together, so that their resources are used up together (empty-hosts.ts). One run after the other
 * would fill each host with tasks of the same proportions, and the last ones would find no room on hosts that were
 * bought for all.
 */
export const balancedPack: PlaceTasks = (tasks, hosts) => {
  const { units, packer } = packed(tasks, hosts);
  const bins = Map.groupBy(units, ([run]) => binOf(run?.runtimeS ?? 0));
  return [...bins.values()].flatMap((of) => packer.placeTogether(of));
};

function packed(tasks: readonly TaskToPlace[], hosts: readonly Host[]) {
  const units = unitsOf(tasks);
  const runs = units.flat();
  return { units, packer: new Packer(new Room(hosts, runs), runs) };
}

/** Bin of a time: 0 for [0, 1) s, i for [2^(i-1), 2^i). */
const binOf = (seconds: number): number => (seconds < 1 ? 0 : Math.floor(Math.log2(seconds)) + 1);

interface Move {
  readonly run: Run;
  readonly ordinal: number;
  readonly host: number;
  readonly reason: string;
}

class Packer {
  readonly #room: Room;
  readonly #remainingS: Float64Array;
  /** Hosts by pool; hosts without room for anything are dropped when they are met. */
  #pools = new Map<Pool, HostsOfPool>();
  /** Bins there are in any pool. */
  #binCount = 0;
  readonly #answers: Answers;
  /** 1 for hosts on which nothing is. */
  #isEmpty: Uint8Array;
  /** True while runs are placed beside other tasks alone. */
  #beside = false;

  constructor(room: Room, runs: readonly Run[]) {
    this.#room = room;
    this.#answers = new Answers(room, runs);
    this.#remainingS = new Float64Array(room.hosts.length);
    this.#isEmpty = Uint8Array.from(room.hosts, ({ remainingS, free, capacity }) =>
      raw(remainingS) === 0 && fits(capacity, free) ? 1 : 0,
    );
    room.hosts.forEach(({ pool, remainingS }, h) => {
      this.#remainingS[h] = raw(remainingS);
      this.#listOf(pool, binOf(raw(remainingS)), h).push(h);
    });
  }

  place(unit: readonly Run[]): Placement[] {
    const whole = unit.some((run) => run.gang !== null);
    const before = whole
      ? { remainingS: this.#remainingS.slice(), isEmpty: this.#isEmpty.slice(), pools: copyOf(this.#pools) }
      : null;
    const moves: Move[] = [];
    for (const run of unit) {
      const placed = moves.length;
      this.#run(run, moves);
      if (before !== null && moves.length - placed < run.tasks.length) {
        for (const m of moves) this.#room.take(m.run.need, m.host, -1);
        this.#remainingS.set(before.remainingS);
        this.#isEmpty = before.isEmpty;
        this.#pools = before.pools;
        return [];
      }
    }
    return this.#placements(moves);
  }

  /** Units of one runtime bin. */
  placeTogether(units: readonly (readonly Run[])[]): Placement[] {
    const placements: Placement[] = [];
    const moves: Move[] = [];
    const rests: Rest[] = [];
    for (const unit of units) {
      if (unit.some((run) => run.gang !== null)) {
        placements.push(...this.place(unit));
        continue;
      }
      this.#beside = true;
      for (const run of unit) {
        const end = moves.length + run.tasks.length;
        this.#run(run, moves);
        if (moves.length < end) rests.push(new Rest(run, end - moves.length));
      }
      this.#beside = false;
    }
    if (rests.length > 0) this.#fillEmpty(rests, moves);
    for (const { run, left } of rests) if (left > 0) this.#run(run, moves, left);
    placements.push(...this.#placements(moves));
    return placements;
  }

  #fillEmpty(rests: readonly Rest[], moves: Move[]): void {
    const empty = new Map<Pool, readonly number[]>();
    this.#pools.forEach((of, pool) => {
      const hosts = of.empty.filter((h) => this.#isEmpty[h] === 1).sort((a, b) => this.#room.byName(a, b));
      if (hosts.length > 0) empty.set(pool, hosts);
    });
    const mayUse = (run: Run, h: number): boolean => this.#answers.of(run.allowed)(h);
    const put = ({ run, left }: Rest, h: number, tasks: number): number => {
      if (!mayUse(run, h)) return 0;
      const from = run.tasks.length - left;
      let took = 0;
      for (; took < tasks && this.#room.fits(run.need, h); took++) {
        this.#move({ run, ordinal: from + took, host: h, reason: TOGETHER }, moves);
      }
      return took;
    };
    fillEmpty(empty, rests, { capacityOf: (h) => this.#hostOf(h).capacity, mayUse, put });
    for (const [pool, hosts] of empty) {
      const taken = new Set(hosts.filter((h) => this.#isEmpty[h] === 0));
      for (const h of taken) this.#bin(pool, binOf(this.#remainingS[h] ?? 0)).push(h);
      this.#of(pool).empty = this.#of(pool).empty.filter((h) => !taken.has(h));
    }
  }

  #placements(moves: readonly Move[]): Placement[] {
    return moves.map(({ run, ordinal, host, reason }) => {
      const { task, group } = invariant(run.tasks[ordinal], 'a move is of a task of its run');
      return { task, group, on: this.#hostOf(host).on, reason };
    });
  }

  #run(run: Run, moves: Move[], tasks = run.tasks.length): void {
    const end = moves.length + tasks;
    const native = binOf(run.runtimeS);
    const allows = this.#answers.of(run.allowed);
    const takes = (h: number): boolean => this.#room.fits(run.need, h) && allows(h);
    const pools = this.#poolsOf(run);
    this.#sameBin(run, { native, pools, takes, moves, end });
    for (let bin = native + 1; bin < this.#binCount && moves.length < end; bin++) {
      this.#upPack(run, { bin, pools, takes, moves, end });
    }
    for (let bin = native - 1; bin >= 0 && moves.length < end; bin--) {
      this.#downPack(run, { bin, native, pools, takes, moves, end });
    }
  }

  /** Hosts of the pools that a run may use. */
  #poolsOf(run: Run): HostsOfPool[] {
    const pools: HostsOfPool[] = [];
    this.#pools.forEach((of, pool) => {
      if (run.inPool(pool)) pools.push(of);
    });
    return pools;
  }

  #sameBin(run: Run, c: Context & { readonly native: number }): void {
    const distance = (h: number): number => Math.abs((this.#remainingS[h] ?? 0) - run.runtimeS);
    const closer = (a: number, b: number): number => distance(a) - distance(b) || this.#room.byName(a, b);
    const candidates = this.#candidates(c.native, c);
    // Most runs have one task: for these the best candidate is enough, and the others need no order.
    for (const h of c.end - c.moves.length === 1 ? first(candidates, closer) : candidates.sort(closer)) {
      this.#fill(run, h, c, SAME);
    }
  }

  #upPack(run: Run, c: Context & { readonly bin: number }): void {
    if (c.end - c.moves.length === 1) {
      for (const h of this.#roomiest(this.#candidates(c.bin, c))) this.#put(run, h, c, UP);
      return;
    }
    const queue = this.#byRoom(this.#candidates(c.bin, c));
    while (c.moves.length < c.end) {
      const top = queue.pop();
      if (top === undefined) return;
      this.#put(run, top.host, c, UP);
      if (this.#room.fits(run.need, top.host))
        queue.push({ host: top.host, available: this.#room.available(top.host) });
    }
  }

  /** One host at a time: once promoted it is in the tasks' own bin, and the closest there. */
  #downPack(run: Run, c: Context & { readonly bin: number; readonly native: number }): void {
    if (c.end - c.moves.length === 1) {
      for (const h of this.#roomiest(this.#candidates(c.bin, c))) {
        this.#leave(h, c.bin);
        this.#bin(this.#poolOf(h), c.native).push(h);
        this.#put(run, h, c, DOWN);
      }
      return;
    }
    const queue = this.#byRoom(this.#candidates(c.bin, c));
    const promoted = new Set<number>();
    while (c.moves.length < c.end) {
      const top = queue.pop();
      if (top === undefined) break;
      promoted.add(top.host);
      this.#bin(this.#poolOf(top.host), c.native).push(top.host);
      this.#fill(run, top.host, c, DOWN);
    }
    if (promoted.size === 0) return;
    for (const of of c.pools) {
      const from = of.bins[c.bin];
      if (from !== undefined) of.bins[c.bin] = from.filter((h) => !promoted.has(h));
      if (c.bin === 0) of.empty = of.empty.filter((h) => !promoted.has(h));
    }
  }

  /** Hosts of a bin that take the run, in no order. Drops those that no task fits on any more. */
  #candidates(bin: number, { pools, takes }: Context): number[] {
    const taking: number[] = [];
    for (const { bins, empty } of pools) {
      this.#take(bins[bin], takes, taking);
      if (bin === 0 && !this.#beside) this.#take(empty, takes, taking);
    }
    return taking;
  }

  #take(hosts: number[] | undefined, takes: Context['takes'], taking: number[]): void {
    if (hosts === undefined) return;
    let kept = 0;
    for (const h of hosts) {
      if (takes(h)) taking.push(h);
      else if (!this.#room.mayHold(h)) continue;
      hosts[kept++] = h;
    }
    hosts.length = kept;
  }

  /** The one with the most available resources, or none. */
  #roomiest(hosts: readonly number[]): number[] {
    return first(hosts, (a, b) => this.#room.available(b) - this.#room.available(a) || this.#room.byName(a, b));
  }

  #byRoom(hosts: readonly number[]): TinyQueue<Roomy> {
    return new TinyQueue(
      hosts.map((host) => ({ host, available: this.#room.available(host) })),
      (a, b) => b.available - a.available || this.#room.byName(a.host, b.host),
    );
  }

  #fill(run: Run, h: number, c: Context, reason: string): void {
    while (c.moves.length < c.end && this.#room.fits(run.need, h)) this.#put(run, h, c, reason);
  }

  #put(run: Run, h: number, { moves, end }: Context, reason: string): void {
    this.#move({ run, ordinal: run.tasks.length - (end - moves.length), host: h, reason }, moves);
  }

  #move(move: Move, moves: Move[]): void {
    const { run, host } = move;
    moves.push(move);
    this.#room.take(run.need, host, 1);
    this.#remainingS[host] = Math.max(this.#remainingS[host] ?? 0, run.runtimeS);
    this.#isEmpty[host] = 0;
  }

  #hostOf(h: number): Host {
    return invariant(this.#room.hosts[h], 'a host that is packed is in the room');
  }

  #poolOf(h: number): Pool {
    return this.#hostOf(h).pool;
  }

  #of(pool: Pool): HostsOfPool {
    let of = this.#pools.get(pool);
    if (of === undefined) this.#pools.set(pool, (of = { bins: [], empty: [] }));
    return of;
  }

  /** The list of a host in a bin; hosts on which nothing is have one of their own in the first. */
  #listOf(pool: Pool, bin: number, h: number): number[] {
    return bin === 0 && this.#isEmpty[h] === 1 ? this.#of(pool).empty : this.#bin(pool, bin);
  }

  #leave(h: number, bin: number): void {
    const { bins, empty } = this.#of(this.#poolOf(h));
    for (const list of [bins[bin] ?? [], empty]) {
      const at = list.indexOf(h);
      if (at >= 0) list.splice(at, 1);
    }
  }

  #bin(pool: Pool, bin: number): number[] {
    this.#binCount = Math.max(this.#binCount, bin + 1);
    const { bins } = this.#of(pool);
    while (bins.length <= bin) bins.push([]);
    return invariant(bins[bin], 'a pool has every bin up to its last');
  }
}

/** Hosts of a pool. */
interface HostsOfPool {
  /** By runtime bin. */
  readonly bins: number[][];
  /** Those on which nothing is. They are of the first bin, and there may be very many. */
  empty: number[];
}

/** The first element by a total order, without sorting; or none. */
function first(of: readonly number[], compare: (a: number, b: number) => number): number[] {
  let best: number | undefined;
  for (const h of of) if (best === undefined || compare(h, best) < 0) best = h;
  return best === undefined ? [] : [best];
}

/**
 * Cached answers of `allowed`, for functions shared by several runs. A run of its own meets each host once, in that
 * host's bin; an array for each such run would take runs x hosts of memory, as packing many single tasks once did.
 */
class Answers {
  readonly #room: Room;
  /** Per shared function: 0 not asked, else YES or NO. */
  readonly #shared = new Map<Run['allowed'], Int8Array>();

  constructor(room: Room, runs: readonly Run[]) {
    this.#room = room;
    const seen = new Set<Run['allowed']>();
    for (const { allowed } of runs) {
      if (!seen.has(allowed)) seen.add(allowed);
      else if (!this.#shared.has(allowed)) this.#shared.set(allowed, new Int8Array(room.hosts.length));
    }
  }

  of(allowed: Run['allowed']): (h: number) => boolean {
    const answers = this.#shared.get(allowed);
    const ask = (h: number): boolean => allowed(this.#room.hosts[h] as Host);
    if (answers === undefined) return ask;
    return (h) => {
      if (answers[h] === 0) answers[h] = ask(h) ? YES : NO;
      return answers[h] === YES;
    };
  }
}

const YES = 1;
const NO = 2;

/** Deep copy, so that packing does not change the original. */
const copyOf = (pools: ReadonlyMap<Pool, HostsOfPool>): Map<Pool, HostsOfPool> =>
  new Map(
    [...pools].map(([pool, { bins, empty }]) => [pool, { bins: bins.map((bin) => [...bin]), empty: [...empty] }]),
  );

interface Context {
  /** Pools that the run may use. */
  readonly pools: readonly HostsOfPool[];
  readonly takes: (h: number) => boolean;
  readonly moves: Move[];
  /** Moves there are when the whole run is placed. */
  readonly end: number;
}

interface Roomy {
  readonly host: number;
  readonly available: number;
}

const SAME = 'its running time is the closest to what the instance still runs';
const UP = 'fits in beside longer tasks, which keep the instance anyway';
const TOGETHER = 'with others that end together it uses up an instance on which nothing runs';
const DOWN = 'no instance with tasks as long has room: this one, with the most room, is kept longer';
