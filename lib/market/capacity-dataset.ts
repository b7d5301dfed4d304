/**
 * Training samples for a forecast of capacity. Question: when does the capacity of a pool end, given an instance there?
 * Features hold only the knowledge of an engine (features/capacity-features.ts), which is less than the series of
 * availability: an engine learns of a pool only by asking for it or holding it. So imagined engines live for a while in
 * the series. One begins without knowledge, uses one pool or some, wants each of them now and then, asks again after a
 * refusal as the scheduler does, and holds instances until capacity ends or it wants them no more. At random instants
 * with capacity its features are sampled; the outcome is read off the series.
 * Split by time, and by pool, as data sets of prices are (dataset.ts). An outcome is watched up to the last horizon
 * that ends in its range, whatever the outcome: watching beyond would make losses known and survivals not.
 * Samples from an engine's own instances, with the same features: capacity-record.ts.
 */
import { unreachable } from '../kernel/errors.ts';
import { epochMs } from '../kernel/units.ts';
import { randomStream, type Uniform } from '../kernel/random.ts';
import type { PoolId } from '../kernel/ids.ts';
import { type Pool, typeAndZone } from '../domain/pool.ts';
import { heldOut, LABEL_HORIZONS_S, type Split } from './dataset.ts';
import { REFUSED_FOR_MS, type HeldSince } from './features/capacity-features.ts';
import { CapacityEvidence } from './forecast/hazard.ts';
import { WARNING_MS } from './replay.ts';
import { availableAt, indexAt } from './price-steps.ts';
import { spanOf, type AvailabilitySteps, type MarketTrace } from './trace.ts';

const HOUR_MS = 3_600_000;
/** Life of an engine, and times with and without demand for a pool: drawn evenly by their logarithm, hours. Ours. */
const LIFE_H = { least: 6, most: 14 * 24 } as const;
const WANTED_H = { least: 0.5, most: 48 } as const;
const UNWANTED_H = { least: 0.1, most: 24 } as const;
/** Instants that one life is asked at. */
const INSTANTS_PER_LIFE = 50;

export interface CapacityPlan {
  readonly seed: number;
  /** Random instants per pool, on average; those without capacity give no sample. */
  readonly instantsPerPool: number;
  /** Shares of the time for training and validation; the remaining time is for tests. */
  readonly shares: { readonly train: number; readonly validation: number };
  /** TYPE/ZONE of pools that are never trained on. */
  readonly unseen: ReadonlySet<string>;
}

export interface CapacitySample {
  readonly pool: PoolId;
  readonly split: Split;
  readonly atMs: number;
  /** One number per CAPACITY_FEATURES. */
  readonly features: Float32Array;
  /** Observations of the engine until then. */
  readonly evidence: CapacityEvidence;
  /** Seconds until capacity ends (Infinity: unseen), and seconds watched, at most until then. */
  readonly lossS: number;
  readonly watchedS: number;
}

export interface CapacityRanges {
  readonly startMs: number;
  readonly validationMs: number;
  readonly testMs: number;
  readonly endMs: number;
}

/** Spot pools that have a series of availability. */
export const seriesOf = (trace: MarketTrace): readonly Pool[] =>
  trace.pools.filter((pool) => pool.option === 'spot' && trace.availability(pool.id) !== null);

/** A share of the pools, by type and zone, drawn from all sources that have them. */
export const unseenPools = (names: readonly string[], share: number, seed: number): ReadonlySet<string> =>
  heldOut([...new Set(names)], share, randomStream(seed, 'capacity/unseen'));

export function rangesOf(
  trace: Pick<MarketTrace, 'startMs' | 'endMs'>,
  shares: CapacityPlan['shares'],
): CapacityRanges {
  const span = spanOf(trace);
  const at = (share: number): number => span.startMs + share * (span.endMs - span.startMs);
  return {
    startMs: span.startMs,
    validationMs: at(shares.train),
    testMs: at(shares.train + shares.validation),
    endMs: span.endMs,
  };
}

/** In the order of lives, each in the order of time. The same plan gives the same samples. */
export function* sampleCapacity(trace: MarketTrace, plan: CapacityPlan): Generator<CapacitySample> {
  const pools = seriesOf(trace);
  const ranges = rangesOf(trace, plan.shares);
  const lives = Math.ceil((plan.instantsPerPool * pools.length) / INSTANTS_PER_LIFE);
  for (let n = 0; n < lives; n++) {
    const named = (what: string): Uniform => randomStream(plan.seed, `capacity/${trace.name}/${n}/${what}`);
    for (const { pool, atMs, ...known } of observationsOf(lifeIn(trace, pools, named))) {
      const of = splitOf(atMs, ranges, plan.unseen.has(typeAndZone(pool)));
      if (of === null || !availableAt(trace.availability(pool), atMs)) continue;
      const outcome = outcomeOf(lossMs(trace.availability(pool), atMs) - atMs, of.untilMs - atMs);
      if (outcome !== null) yield { pool, split: of.split, atMs, ...known, ...outcome };
    }
  }
}

/** Range of an instant and the end of that range; null for a held-out pool before the test range. */
export function splitOf(
  atMs: number,
  { validationMs, testMs, endMs }: CapacityRanges,
  isUnseen: boolean,
): { readonly split: Split; readonly untilMs: number } | null {
  if (isUnseen) return atMs < testMs ? null : { split: 'unseen', untilMs: endMs };
  if (atMs < validationMs) return { split: 'train', untilMs: validationMs };
  return atMs < testMs ? { split: 'validation', untilMs: testMs } : { split: 'test', untilMs: endMs };
}

/** Null where not even the shortest horizon could be watched. */
function outcomeOf(lossInMs: number, leftMs: number): { lossS: number; watchedS: number } | null {
  const horizonS = LABEL_HORIZONS_S.findLast((h) => h * 1000 <= leftMs);
  if (horizonS === undefined) return null;
  const lossS = lossInMs / 1000;
  return { lossS: lossS <= horizonS ? lossS : Infinity, watchedS: Math.min(lossS, horizonS) };
}

/** Time of the next end of capacity, ms since the epoch; Infinity: unseen. */
function lossMs(steps: AvailabilitySteps | null, atMs: number): number {
  if (steps === null) return Infinity;
  for (let i = indexAt(steps.atMs, atMs) + 1; i < steps.atMs.length; i++) {
    if (steps.available[i] === 0) return steps.atMs[i] ?? Infinity;
  }
  return Infinity;
}

/** Observations and questions of an engine, with their times. A notice ends the trust in an instance. */
export type Happening = { readonly pool: PoolId; readonly atMs: number } & (
  | { readonly kind: 'refused' | 'asked' }
  | { readonly kind: 'launched' | 'noticed'; readonly instance: string }
  | { readonly kind: 'ended'; readonly instance: string; readonly launchedMs: number; readonly takenMs: number | null }
);
/** In the order of time; at equal times observations come before questions. */
export const inOrder = (happenings: readonly Happening[]): readonly Happening[] =>
  happenings.toSorted((a, b) => a.atMs - b.atMs || Number(a.kind === 'asked') - Number(b.kind === 'asked'));

/** A random stream per drawn quantity, so that no draw depends on the number of others. */
type Streams = (what: string) => Uniform;

/** All happenings of one life. */
function lifeIn(trace: MarketTrace, pools: readonly Pool[], streams: Streams): readonly Happening[] {
  const random = streams('life');
  const { startMs, endMs } = spanOf(trace);
  const bornMs = startMs + random() * (endMs - startMs);
  const diesMs = Math.min(endMs, bornMs + drawn(LIFE_H, random));
  const used = usedOf(pools, random);
  const happenings = used.flatMap((pool) => [
    ...usesOf(pool.id, trace.availability(pool.id), { bornMs, diesMs, random: streams(pool.id) }),
  ]);
  for (let n = 0; n < INSTANTS_PER_LIFE; n++) {
    const pool = used[Math.floor(random() * used.length)];
    const atMs = Math.floor(bornMs + random() * (diesMs - bornMs));
    if (pool !== undefined) happenings.push({ kind: 'asked', pool: pool.id, atMs });
  }
  return inOrder(happenings);
}

const drawn = ({ least, most }: { readonly least: number; readonly most: number }, random: Uniform): number =>
  least * (most / least) ** random() * HOUR_MS;

/** Half of the engines use one pool; the others each pool with even chances. */
function usedOf(pools: readonly Pool[], random: Uniform): readonly Pool[] {
  const one = Math.floor(random() * pools.length);
  const isOne = random() < 0.5;
  return pools.filter((_, i) => i === one || (!isOne && random() < 0.5));
}

interface Using {
  readonly bornMs: number;
  readonly diesMs: number;
  readonly random: Uniform;
}

/** Happenings of wanting a pool now and then. */
function* usesOf(
  pool: PoolId,
  steps: AvailabilitySteps | null,
  { bornMs, diesMs, random }: Using,
): Generator<Happening> {
  for (let atMs = bornMs; atMs < diesMs; atMs += drawn(UNWANTED_H, random)) {
    const untilMs = Math.min(diesMs, atMs + drawn(WANTED_H, random));
    while (atMs < untilMs) {
      if (!availableAt(steps, atMs)) {
        yield { kind: 'refused', pool, atMs };
        atMs += REFUSED_FOR_MS;
        continue;
      }
      const launchedMs = atMs;
      const instance = String(launchedMs);
      const takenMs = lossMs(steps, launchedMs);
      const isTaken = takenMs <= untilMs;
      atMs = isTaken ? takenMs + WARNING_MS : untilMs;
      yield { kind: 'launched', pool, atMs: launchedMs, instance };
      if (isTaken) yield { kind: 'noticed', pool, atMs: takenMs, instance };
      yield { kind: 'ended', pool, atMs, instance, launchedMs, takenMs: isTaken ? takenMs : null };
    }
  }
}

type CapacityObservation = Pick<CapacitySample, 'pool' | 'atMs' | 'features' | 'evidence'>;

/** Observations at the sampled instants; none for a pool that the engine has not observed. */
export function* observationsOf(life: Iterable<Happening>): Generator<CapacityObservation> {
  const evidence = new CapacityEvidence();
  const held = new HeldInstances();
  for (const happening of life) {
    const { pool, atMs } = happening;
    switch (happening.kind) {
      case 'launched':
        held.add(pool, happening.instance, atMs);
        break;
      case 'noticed':
        held.remove(pool, happening.instance);
        break;
      case 'ended': {
        held.remove(pool, happening.instance);
        const [launchedMs, endedMs] = [epochMs(happening.launchedMs), epochMs(atMs)];
        const takenMs = happening.takenMs === null ? null : epochMs(happening.takenMs);
        evidence.ended(pool, { launchedMs, endedMs, takenMs });
        break;
      }
      case 'refused':
        evidence.refused(pool, epochMs(atMs));
        break;
      case 'asked': {
        const features = evidence.news.at(atMs, held.since()).features(pool);
        if (features !== null) yield { pool, atMs, features, evidence };
        break;
      }
      default:
        unreachable(happening, 'happening');
    }
  }
}

/** Launched and not to be given up yet, by pool. */
class HeldInstances {
  readonly #pools = new Map<PoolId, Map<string, number>>();

  add(pool: PoolId, instance: string, launchedMs: number): void {
    let of = this.#pools.get(pool);
    if (of === undefined) this.#pools.set(pool, (of = new Map<string, number>()));
    of.set(instance, launchedMs);
  }

  remove(pool: PoolId, instance: string): void {
    const of = this.#pools.get(pool);
    of?.delete(instance);
    if (of?.size === 0) this.#pools.delete(pool);
  }

  since(): HeldSince {
    return new Map(
      [...this.#pools].map(([pool, of]) => [pool, of.values().reduce((a, b) => Math.min(a, b), Infinity)]),
    );
  }
}
