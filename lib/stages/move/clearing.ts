/**
 * Instance clearing (Stratus, section 3.2.4, heuristic 2). An instance that has been used to less than half in each
 * dimension for more than three cycles is a candidate. Candidates go in decreasing cost per resource used. All of a
 * candidate's tasks move or none: to running instances if the packer finds room for each, else to one new instance that
 * holds them all at a lower price. It is cleared only if its longest task runs on for longer than the move takes, with
 * the start-up of a new instance. From then on it gets no work (lib/policy/leaving.ts).
 * When an instance became a candidate is kept in the memory of decisions: a restart counts anew.
 * O(instances log instances), and for each task of a candidate as much as RoomIndex says.
 */
import type { InstanceId } from '../../kernel/ids.ts';
import { msBetween, raw, type EpochMs } from '../../kernel/units.ts';
import { minusResources, vector, type Resources } from '../../domain/resources.ts';
import { runningParts, type InstanceView, type Snapshot } from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { leftOfEach, type LeftOf } from '../../policy/left-of.ts';
import { LEAVING } from '../../policy/leaving.ts';
import { slot } from '../../policy/memory.ts';
import { pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { movesToCheaper } from './cheaper-instance.ts';
import { byRuntimeBin, repacked, type Repack, type Room } from './repack.ts';
import { RoomIndex } from './room-index.ts';
import { allTo, byAttempt, cheaperPool, movables, patientUntil, type Movable } from './whole-instance.ts';

/** Part of each resource in use below which an instance is cleared, and cycles for which it has been so. */
const MOST_USED = 0.5;
const CYCLES = 3;

/** Since when instances have been used to less than half. */
const LOW_SINCE = slot(() => new Map<InstanceId, EpochMs>());

/** Clearing alone. */
export const clearing =
  (repack: Repack) =>
  (context: DecisionContext): readonly Move[] =>
    new Clearing(context, repack, new Set()).moves().toSorted(byAttempt);

/** Clearing of instances whose work does not leave for a cheaper one. */
export const clearingAndCheaper =
  (repack: Repack) =>
  (context: DecisionContext): readonly Move[] => {
    const cheaper = movesToCheaper(context);
    const going = new Set(cheaper.map((m) => m.view.instance.id));
    return [...cheaper, ...new Clearing(context, repack, going).moves()].sort(byAttempt);
  };

class Clearing {
  readonly #context: DecisionContext;
  readonly #repack: Repack;
  /** Instances that others move away. */
  readonly #going: ReadonlySet<InstanceId>;
  readonly #leftOf: LeftOf;
  readonly #byPrice: readonly PricedPool[];
  /** Room on running instances, less what moves and coming tasks take. */
  readonly #rooms: Map<InstanceId, Room>;
  /** The same for Stratus' packer, which finds room in a part of them; null: any other packer. */
  readonly #index: RoomIndex | null;
  /** Running instances that got tasks in this cycle. */
  readonly #targets = new Set<InstanceId>();

  constructor(context: DecisionContext, repack: Repack, going: ReadonlySet<InstanceId>) {
    this.#context = context;
    this.#repack = repack;
    this.#going = going;
    this.#leftOf = leftOfEach(context);
    this.#byPrice = pricedPools(context).toSorted((a, b) => a.usdPerHour - b.usdPerHour);
    this.#index = repack === byRuntimeBin ? this.#indexed() : null;
    this.#rooms = this.#index === null ? roomsOf(context, this.#leftOf) : new Map<InstanceId, Room>();
  }

  #indexed(): RoomIndex {
    const { snapshot, memory } = this.#context;
    const leaving = memory.of(LEAVING);
    const staying = [...snapshot.instances.values()].filter(
      ({ instance: { id, state, rebalance }, attempts }) =>
        state === 'ready' && !rebalance && attempts.length > 0 && !leaving.has(id) && !this.#going.has(id),
    );
    return new RoomIndex(staying, snapshot, this.#leftOf);
  }

  moves(): readonly Move[] {
    const { snapshot, memory, config } = this.#context;
    const leaving = memory.of(LEAVING);
    leaving.forgetGone(snapshot, config.billing === 'per-hour');
    const open = new Set<string>(this.#byPrice.map((p) => p.pool.id));
    const moves: Move[] = [];
    for (const of of this.#candidates()) {
      const { id } = of.view.instance;
      const decided = leaving.decided(id, snapshot.nowMs)?.to ?? null;
      if (decided?.pool !== undefined && open.has(decided.pool)) moves.push(...allTo(of.view, decided, TO_NEW));
      else if (!this.#targets.has(id)) moves.push(...this.#clear(of));
    }
    return moves;
  }

  /** Most cost per resource used first. */
  #candidates(): readonly Movable[] {
    const { snapshot, memory, config } = this.#context;
    const since = memory.of(LOW_SINCE);
    for (const id of since.keys()) if (snapshot.instances.get(id) === undefined) since.delete(id);
    const smallest = smallestOf(this.#byPrice);
    return movables(this.#context, this.#leftOf)
      .filter(({ view }) => {
        const { id } = view.instance;
        if (!isLow(view)) {
          since.delete(id);
          return false;
        }
        const lowMs = since.get(id);
        if (lowMs === undefined) since.set(id, snapshot.nowMs);
        const isLong = lowMs !== undefined && msBetween(lowMs, snapshot.nowMs) >= CYCLES * config.cyclePeriodS * 1000;
        return isLong && !this.#going.has(id);
      })
      .map((of) => ({ of, usd: of.usdPerHour / Math.max(normalisedUse(of, smallest), 1e-9) }))
      .sort((a, b) => b.usd - a.usd || (a.of.view.instance.id < b.of.view.instance.id ? -1 : 1))
      .map(({ of }) => of);
  }

  #clear(of: Movable): readonly Move[] {
    const { view, leftS, migrationS } = of;
    const { id } = view.instance;
    const { snapshot, memory, config } = this.#context;
    const leaving = memory.of(LEAVING);
    const untilMs = patientUntil(snapshot.nowMs, config);
    const onto = leftS > migrationS ? this.#ontoRunning(view) : null;
    if (onto !== null) {
      leaving.decide(id, { to: null, untilMs });
      return onto;
    }
    const pool = leftS > migrationS + config.startDelayMeanS ? cheaperPool(of, this.#byPrice) : null;
    if (pool === null) {
      leaving.stays(id);
      return [];
    }
    const to = { pool: pool.pool.id, bid: pool.bid };
    leaving.decide(id, { to, untilMs });
    return allTo(view, to, TO_NEW);
  }

  #byIndex(view: InstanceView, index: RoomIndex): readonly Move[] | null {
    const found = index.find(view, () => true);
    if (found === null) return null;
    index.drop(view.instance.id);
    return found.map(({ running, on }) => {
      this.#targets.add(on.instance.id);
      return { attempt: running.attempt.id, reason: TO_RUNNING, running, view, to: { instance: on.instance.id } };
    });
  }

  /** A running instance for each task, or null. */
  #ontoRunning(view: InstanceView): readonly Move[] | null {
    if (this.#index !== null) return this.#byIndex(view, this.#index);
    const leaving = this.#context.memory.of(LEAVING);
    const rooms = [...this.#rooms.values()].filter(
      ({ on }) => on !== view.instance.id && !leaving.has(on) && !this.#going.has(on),
    );
    const found = repacked(view.attempts, rooms, { leftOf: this.#leftOf, repack: this.#repack });
    if (found === null) return null;
    return found.map(({ running, room }) => {
      this.#rooms.set(room.on, room);
      this.#targets.add(room.on);
      return { attempt: running.attempt.id, reason: TO_RUNNING, running, view, to: { instance: room.on } };
    });
  }
}

const TO_RUNNING = 'its instance was used to less than half for long, and is cleared: others have room';
const TO_NEW = 'its instance was used to less than half for long, and is cleared: a cheaper one holds all that is left';

/** Instances that are up and take tasks. Stopped tasks that are on their way have their room taken. */
function roomsOf({ snapshot }: DecisionContext, leftOf: LeftOf): Map<InstanceId, Room> {
  const coming = comingTo(snapshot);
  return new Map(
    [...snapshot.instances.values()].flatMap((view): [InstanceId, Room][] => {
      const { id, state, rebalance } = view.instance;
      if (state !== 'ready' || rebalance || view.attempts.length === 0) return [];
      const free = (coming.get(id) ?? []).reduce(minusResources, view.free);
      const leftS = view.attempts.reduce((most, r) => Math.max(most, raw(leftOf(r))), 0);
      return [[id, { on: id, pool: view.pool, free, leftS }]];
    }),
  );
}

function comingTo(snapshot: Snapshot): ReadonlyMap<InstanceId, readonly Resources[]> {
  const coming = new Map<InstanceId, Resources[]>();
  for (const { attempt } of runningParts(snapshot).stopping) {
    if (attempt.goesTo === undefined) continue;
    coming.set(attempt.goesTo, [...(coming.get(attempt.goesTo) ?? []), attempt.resources]);
  }
  return coming;
}

/** Used to less than half in each dimension that it has. */
const isLow = ({ free, pool }: InstanceView): boolean => {
  const left = vector(free);
  return vector(pool.type.capacity).every((c, k) => c <= 0 || 1 - (left[k] ?? 0) / c < MOST_USED);
};

const smallestOf = (pools: readonly PricedPool[]): readonly number[] =>
  [0, 1, 2, 3].map((k) =>
    pools.reduce(
      (least, { capacity }) => ((capacity[k] ?? 0) > 0 ? Math.min(least, capacity[k] ?? 0) : least),
      Infinity,
    ),
  );

/** Used amount of the resource that is used most, in units of the smallest pool's (section 3.2.3). */
function normalisedUse({ need, view }: Movable, smallest: readonly number[]): number {
  const capacity = vector(view.pool.type.capacity);
  const uses = vector(need);
  const parts = capacity.map((c, k) => (c > 0 ? (uses[k] ?? 0) / c : 0));
  const k = parts.indexOf(Math.max(...parts));
  return (uses[k] ?? 0) / (smallest[k] ?? 1);
}
