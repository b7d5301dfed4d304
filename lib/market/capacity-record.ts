/**
 * Samples to train a forecast of capacity from, out of what an engine's own instances tell: when does capacity end that
 * is held now?
 *
 * An instance is watched from its launch on. Only that the market takes it for want of capacity is what was asked
 * about. Where it ends otherwise (it is given back, the price passes its bid, its machine dies) or is still held, the
 * watching ends, and how long capacity would have lasted is not known: right-censoring. To leave such samples out would
 * make capacity look as if it never lasted, to count them as kept as if it always did; so a sample says for how long it
 * was watched, and whoever reads it counts it as far as that.
 *
 * Asked is about instants at which the pool is held, drawn at random, and about the first of each time for which it is.
 * One instance of the pool is followed from there; where it ends otherwise and others are held, one of these, for their
 * capacity is the same question.
 *
 * Why watching ended must tell nothing of what would have come, but for what the features know: Kalbfleisch, Prentice,
 * "The Statistical Analysis of Failure Time Data", 2002, 6.2. A scheduler that gives back what looks risky by anything
 * else makes forecasts too low.
 */
import { isSpotPool } from '../domain/pool.ts';
import { randomStream, type Uniform } from '../kernel/random.ts';
import type { PoolId } from '../kernel/ids.ts';
import { epochMs, raw, type EpochMs } from '../kernel/units.ts';
import type { Instance } from '../domain/instance.ts';
import {
  inOrder,
  rangesOf,
  sightsOf,
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
  /** Its notice, its end or, where it is held, now: from there on nothing more is known of its capacity. */
  readonly untilMs: number;
  /** Null: it is held. */
  readonly endedMs: number | null;
  readonly isNoticed: boolean;
  /** At `untilMs` the market took it for want of capacity. */
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
  /**
   * Random instants at which capacity was held, in all pools together; the first of each time for which it was come on
   * top.
   */
  readonly instants: number;
}

/** What is told of an instance, by whoever kept it. */
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
  // What was taken in the very instant of its launch was watched for one nonetheless.
  const untilMs = Math.max(fromMs + 1, raw(endsMs ?? now));
  return {
    ...{ instance: id, pool, fromMs, untilMs },
    endedMs: endedMs === null ? null : Math.max(untilMs, raw(endedMs)),
    isNoticed: warnedMs !== null,
    isTaken: isTaken(instance),
  };
}

/** Records of versions that kept no cause tell it only of what had no bid to be passed. */
function isTaken({ endCause, marketCause, warnedMs, bid }: KeptInstance): boolean {
  if (marketCause !== undefined) return marketCause === 'capacity';
  return bid === 'uncapped' && (endCause === 'interrupted' || warnedMs !== null);
}

/** Within so long, losses of one pool are one. */
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
  for (const sight of sightsOf(inOrder([...newsOf(record), ...asked]))) {
    const { pool, atMs } = sight;
    const of = splitOf(atMs, ranges, false);
    if (of === null) continue;
    const random = randomStream(plan.seed, `capacity/followed/${pool}/${atMs}`);
    const { lostMs, watchedMs } = followed(pools.get(pool), atMs, random);
    const untilMs = Math.min(watchedMs, of.untilMs);
    const lossS = lostMs <= untilMs ? (lostMs - atMs) / 1000 : Infinity;
    yield { ...sight, split: of.split, lossS, watchedS: (untilMs - atMs) / 1000 };
  }
}

/** What the engine learned, and when. */
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

/** Of one pool, in the order of their beginnings. */
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

/** Until when capacity is seen from an instant on, and when it ended, Infinity: that was not seen. */
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
