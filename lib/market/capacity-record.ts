/**
 * Training samples for a forecast of capacity, from an engine's own instances. Question: when does the capacity held
 * now end?
 * An instance is watched from its launch. The outcome in question is an interruption for lack of capacity. If it ends
 * otherwise (it is released, the price passes its bid, its machine dies) or is still held, the watch ends, and the life
 * of the capacity stays unknown: right-censoring. Dropping such samples would make capacity look short-lived, counting
 * them as survivals would make it look eternal; so a sample has its watched time, and counts as far as that.
 * Questions are asked at random instants at which the pool is held, and at the first instant of each time for which it
 * is. One instance of the pool is followed from there; if it ends otherwise and others are held, one of these is
 * followed, because their capacity is the same.
 * The reason for the end of a watch must be independent of the future, given the features: Kalbfleisch, Prentice, "The
 * Statistical Analysis of Failure Time Data", 2002, 6.2. A scheduler that releases risky instances for other reasons
 * makes forecasts too low.
 */
import { isSpotPool } from '../domain/pool.ts';
import { randomStream, type Uniform } from '../kernel/random.ts';
import type { PoolId } from '../kernel/ids.ts';
import { epochMs, raw, type EpochMs } from '../kernel/units.ts';
import type { Instance } from '../domain/instance.ts';
import {
  inOrder,
  rangesOf,
  observationsOf,
  splitOf,
  type CapacityPlan,
  type CapacitySample,
  type Happening,
} from './capacity-dataset.ts';
import { indexAt } from './price-steps.ts';

/** A spot instance that was launched. Instants are ms since the epoch. */
export interface RecordedLife {
  readonly instance: string;
  readonly pool: PoolId;
  readonly fromMs: number;
  /** Its notice, its end or, for a held instance, now: afterwards its capacity is unknown. */
  readonly untilMs: number;
  /** Null: still held. */
  readonly endedMs: number | null;
  readonly isNoticed: boolean;
  /** True if the market took it at `untilMs` for lack of capacity. */
  readonly isTaken: boolean;
}

export interface CapacityRecord {
  readonly lives: readonly RecordedLife[];
  /** Launches that were refused for want of capacity. */
  readonly refusals: readonly { readonly pool: PoolId; readonly atMs: number }[];
  /** First launch or refusal, and now. */
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
}

export interface RecordPlan extends Pick<CapacityPlan, 'seed' | 'shares'> {
  /** Random instants with held capacity, in all pools together; the first instants of each held time are additional. */
  readonly instants: number;
}

/** Stored facts of an instance. */
export interface KeptInstance extends Pick<
  Instance,
  'pool' | 'bid' | 'launchedMs' | 'warnedMs' | 'endedMs' | 'endCause' | 'marketCause'
> {
  readonly id: string;
}

/** Null where nothing was ever asked of a spot pool. O(instances). */
export function recordOf(instances: Iterable<KeptInstance>, now: EpochMs): CapacityRecord | null {
  const spot = [...instances].filter((i) => isSpotPool(i.pool));
  const lives = spot.flatMap((i) => lifeOf(i, now) ?? []);
  const refusals = spot.flatMap(({ pool, launchedMs, marketCause, endedMs }) =>
    launchedMs === null && marketCause === 'capacity' && endedMs !== null ? [{ pool, atMs: raw(endedMs) }] : [],
  );
  const begun = [...lives.map((l) => l.fromMs), ...refusals.map((r) => r.atMs)];
  if (begun.length === 0) return null;
  const startMs = begun.reduce((a, b) => Math.min(a, b), Infinity);
  return { lives, refusals, startMs: epochMs(startMs), endMs: now };
}

function lifeOf(instance: KeptInstance, now: EpochMs): RecordedLife | null {
  const { id, pool, launchedMs, warnedMs, endedMs } = instance;
  if (launchedMs === null) return null;
  const fromMs = raw(launchedMs);
  const endsMs = warnedMs ?? endedMs;
  // An instance taken in the very instant of its launch still counts as watched for one millisecond.
  const untilMs = Math.max(fromMs + 1, raw(endsMs ?? now));
  return {
    ...{ instance: id, pool, fromMs, untilMs },
    endedMs: endedMs === null ? null : Math.max(untilMs, raw(endedMs)),
    isNoticed: warnedMs !== null,
    isTaken: isTaken(instance),
  };
}

/** Records of versions without a cause tell it only for instances without a bid. */
function isTaken({ endCause, marketCause, warnedMs, bid }: KeptInstance): boolean {
  if (marketCause !== undefined) return marketCause === 'capacity';
  return bid === 'uncapped' && (endCause === 'interrupted' || warnedMs !== null);
}

/** Losses of one pool within this time are one. */
const TOGETHER_MS = 150_000;

/** Times that capacity ended while it was held: instances that are taken together count once. */
export function lossesIn({ lives }: CapacityRecord): number {
  let losses = 0;
  const last = new Map<PoolId, number>();
  for (const { pool, untilMs, isTaken } of lives.toSorted((a, b) => a.untilMs - b.untilMs)) {
    if (!isTaken) continue;
    if (untilMs - (last.get(pool) ?? -Infinity) >= TOGETHER_MS) losses++;
    last.set(pool, untilMs);
  }
  return losses;
}

/**
 * In the order of time. The same record and plan give the same samples. O(lives log lives + instants x instances held
 * at once).
 */
export function* sampleRecord(record: CapacityRecord, plan: RecordPlan): Generator<CapacitySample> {
  const ranges = rangesOf(record, plan.shares);
  const pools = new Map(
    [...Map.groupBy(record.lives, (life) => life.pool)].map(([pool, lives]) => [pool, new PoolLives(lives)]),
  );
  const asked = momentsIn([...pools.values()], plan);
  for (const observation of observationsOf(inOrder([...newsOf(record), ...asked]))) {
    const { pool, atMs } = observation;
    const of = splitOf(atMs, ranges, false);
    if (of === null) continue;
    const random = randomStream(plan.seed, `capacity/followed/${pool}/${atMs}`);
    const { lostMs, watchedMs } = followed(pools.get(pool), atMs, random);
    const untilMs = Math.min(watchedMs, of.untilMs);
    const lossS = lostMs <= untilMs ? (lostMs - atMs) / 1000 : Infinity;
    yield { ...observation, split: of.split, lossS, watchedS: (untilMs - atMs) / 1000 };
  }
}

/** Observations of the engine, with their times. */
const newsOf = ({ lives, refusals }: CapacityRecord): Happening[] => [
  ...refusals.map((refusal): Happening => ({ kind: 'refused', ...refusal })),
  ...lives.flatMap(({ instance, pool, fromMs, untilMs, endedMs, isNoticed, isTaken }): Happening[] => [
    { kind: 'launched', pool, instance, atMs: fromMs },
    ...(isNoticed ? [{ kind: 'noticed', pool, instance, atMs: untilMs } as const] : []),
    ...(endedMs === null
      ? []
      : [
          {
            kind: 'ended',
            ...{ pool, instance, atMs: endedMs, launchedMs: fromMs, takenMs: isTaken ? untilMs : null },
          } as const,
        ]),
  ]),
];

/** Lives in one pool, in the order of their beginnings. */
class PoolLives {
  readonly lives: readonly RecordedLife[];
  readonly #fromMs: Float64Array;
  /** The latest end of each life and those before it. */
  readonly #latestMs: Float64Array;

  constructor(lives: readonly RecordedLife[]) {
    this.lives = lives.toSorted((a, b) => a.fromMs - b.fromMs);
    this.#fromMs = Float64Array.from(this.lives, (l) => l.fromMs);
    let latestMs = -Infinity;
    this.#latestMs = Float64Array.from(this.lives, (l) => (latestMs = Math.max(latestMs, l.untilMs)));
  }

  /** O(log lives + those begun since the oldest of them). */
  heldAt(atMs: number): readonly RecordedLife[] {
    const held: RecordedLife[] = [];
    for (let i = indexAt(this.#fromMs, atMs); i >= 0 && (this.#latestMs[i] ?? -Infinity) > atMs; i--) {
      const life = this.lives[i];
      if (life !== undefined && life.untilMs > atMs) held.push(life);
    }
    return held;
  }
}

/** A time for which a pool was held without a gap. */
interface Stretch {
  readonly pool: PoolId;
  readonly fromMs: number;
  readonly untilMs: number;
}

function momentsIn(pools: readonly PoolLives[], { seed, instants }: RecordPlan): Happening[] {
  const stretches = pools.flatMap(({ lives }) => stretchesOf(lives));
  const total = stretches.reduce((sum, s) => sum + (s.untilMs - s.fromMs), 0);
  const random = randomStream(seed, 'capacity/record/moments');
  const offsets = Float64Array.from({ length: instants }, () => random() * total).sort();
  const moments: Happening[] = stretches.map(({ pool, fromMs }) => ({ kind: 'asked', pool, atMs: fromMs }));
  let [next, passed] = [0, 0];
  for (const { pool, fromMs, untilMs } of stretches) {
    const lengthMs = untilMs - fromMs;
    for (; next < offsets.length && (offsets[next] ?? Infinity) < passed + lengthMs; next++) {
      moments.push({ kind: 'asked', pool, atMs: Math.floor(fromMs + (offsets[next] ?? 0) - passed) });
    }
    passed += lengthMs;
  }
  return moments;
}

/** @param lives of one pool, in the order of their beginnings. */
function stretchesOf(lives: readonly RecordedLife[]): Stretch[] {
  const found: Stretch[] = [];
  for (const { pool, fromMs, untilMs } of lives) {
    const last = found.at(-1);
    if (last === undefined || fromMs > last.untilMs) found.push({ pool, fromMs, untilMs });
    else found[found.length - 1] = { ...last, untilMs: Math.max(last.untilMs, untilMs) };
  }
  return found;
}

/** End of the watch from an instant on, and the loss of capacity; Infinity: unseen. */
function followed(
  lives: PoolLives | undefined,
  atMs: number,
  random: Uniform,
): { readonly lostMs: number; readonly watchedMs: number } {
  let watchedMs = atMs;
  for (;;) {
    const held = lives?.heldAt(watchedMs) ?? [];
    const one = held[Math.floor(random() * held.length)];
    if (one === undefined) return { lostMs: Infinity, watchedMs };
    watchedMs = one.untilMs;
    if (one.isTaken) return { lostMs: watchedMs, watchedMs };
  }
}
