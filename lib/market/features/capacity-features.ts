/**
 * Features of a pool's capacity, from the knowledge of its user: an instance was there for a time, one was taken, a
 * launch was refused for lack of capacity. A pool without requests is unobserved, so a share of time up is one of the
 * observed time. The same code makes data sets (capacity-dataset.ts) and serves forecasts.
 * Simultaneous instances of one pool are one observation of it, and simultaneous losses are one loss: the features
 * describe the pool's capacity and not its use, so that a model learned from one instance says something to a hundred.
 * Lifecycle: `held` and `refused` for each event, in any order of time except for overlapping stretches of a pool; `at`
 * an instant, with the instances held then. O(1) per event.
 */
import { isSpotPool, poolParts } from '../../domain/pool.ts';
import { z } from 'zod';
import type { PoolId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { once } from '../../kernel/once.ts';
import { Calendars, type Calendar } from './calendar.ts';

const HOUR_MS = 3_600_000;
/** Time constants of the exponential windows, hours. */
const WINDOWS_H = [1, 6, 24, 168] as const;
/** Index of the window for neighbours. */
const NEAR = WINDOWS_H.indexOf(6);
/** Time without capacity that a refusal stands for: the back-off of a pool, and so the time between two refusals. */
export const REFUSED_FOR_MS = 300_000;
/** Losses, and refusals, of one pool within this time are one. */
const TOGETHER_MS = 150_000;
/** Added to the hours that losses are divided by: one loss in a minute is no rate of sixty an hour. */
const LEAST_HOURS = 1;
/** Value of a feature without observations. */
const NONE = -1;

const GROUPS = ['zone', 'family'] as const;

/** In the order of their columns. Hours as log(1 + h); NONE without observations. */
export const CAPACITY_FEATURES = [
  ...WINDOWS_H.map((h) => `upShare${h}h`),
  ...WINDOWS_H.map((h) => `lossesPerHour${h}h`),
  ...WINDOWS_H.map((h) => `seen${h}hLog`),
  'upForHLog',
  'sinceUpHLog',
  'sinceLossHLog',
  'sinceRefusedHLog',
  'lastOutageHLog',
  'knownHLog',
  'weekdaySin',
  'weekdayCos',
  'timeOfDaySin',
  'timeOfDayCos',
  'workingNewYork',
  'workingLosAngeles',
  'workingBerlin',
  ...GROUPS.flatMap((of) => [`${of}UpShare6h`, `${of}LossesPerHour6h`, `${of}Seen6hLog`]),
] as const;

const sums = z.array(z.number().nonnegative()).length(WINDOWS_H.length);
const instant = z.number().nullable();
/** Observations of a pool, stored as JSON. Instants are ms since the epoch. */
export const poolNews = z.object({
  /** Sums in which an event's weight falls by a factor of e in each window: hours up, losses, hours refused. */
  upH: sums,
  losses: sums,
  refusedH: sums,
  /** The first news. */
  firstMs: z.number(),
  /** The instant that the sums are weighted for: the last news. */
  atMs: z.number(),
  /** The last stretch observed as up without a gap; null: none yet. */
  upFromMs: instant,
  upUntilMs: instant,
  lostMs: instant,
  refusedMs: instant,
  /** Start of the present lack of capacity; null: none. */
  downMs: instant,
  /** Length of the last lack, ms; null: its end was never observed. */
  outageMs: instant,
});
export type PoolNews = z.output<typeof poolNews>;
type Sums = Pick<PoolNews, 'upH' | 'losses' | 'refusedH'>;

/** A time for which an instance was there; `isTaken`: it ended for lack of capacity. */
export interface Held {
  readonly fromMs: number;
  readonly toMs: number;
  readonly isTaken: boolean;
}

/** Since when there has been an instance, by pool, of pools that hold one. */
export type HeldSince = ReadonlyMap<PoolId, number>;

/** Features of all pools at one instant. */
export interface CapacityView {
  /** One number per CAPACITY_FEATURES; null for a pool never observed. */
  features(pool: PoolId): Float32Array | null;
}

export class CapacityNews {
  readonly #pools = new Map<PoolId, PoolNews>();
  readonly #calendars = new Calendars();

  /** Observations of a pool, to be stored; undefined: none. */
  of(pool: PoolId): PoolNews | undefined {
    return this.#pools.get(pool);
  }

  /** Takes over stored observations. */
  restore(pool: PoolId, news: PoolNews): void {
    this.#pools.set(pool, news);
  }

  clear(): void {
    this.#pools.clear();
  }

  held(pool: PoolId, { fromMs, toMs, isTaken }: Held): void {
    const news = this.#newsOf(pool, fromMs);
    seenUp(news, fromMs, toMs);
    if (isTaken) lost(news, toMs);
  }

  /** A launch was refused because there was no capacity. */
  refused(pool: PoolId, atMs: number): void {
    const news = this.#newsOf(pool, atMs);
    if (news.refusedMs !== null && Math.abs(atMs - news.refusedMs) < TOGETHER_MS) return;
    weightedFor(news, atMs);
    add(news.refusedH, REFUSED_FOR_MS / HOUR_MS, news.atMs - atMs);
    news.refusedMs = Math.max(news.refusedMs ?? atMs, atMs);
    news.downMs ??= atMs;
  }

  /** O(observed pools). Instants ascend. */
  at(nowMs: number, since: HeldSince): CapacityView {
    const known = new Map<PoolId, PoolNews>();
    for (const pool of new Set([...this.#pools.keys(), ...since.keys()]))
      known.set(pool, this.#now(pool, nowMs, since));
    const groups = new Map<string, Sums>();
    const calendar = once(() => this.#calendars.at(nowMs));
    for (const [pool, news] of known) {
      for (const key of groupsOf(pool)) {
        let sums = groups.get(key);
        if (sums === undefined) groups.set(key, (sums = noSums()));
        addAll(sums, news);
      }
    }
    return {
      features: (pool) => {
        const news = known.get(pool);
        if (news === undefined) return null;
        return rowOf(news, { nowMs, calendar: calendar(), groups: groupsOf(pool).map((key) => groups.get(key)) });
      },
    };
  }

  /** A copy with the instances held now. */
  #now(pool: PoolId, nowMs: number, since: HeldSince): PoolNews {
    const before = this.#pools.get(pool);
    const fromMs = since.get(pool);
    const news = before === undefined ? newNews(fromMs ?? nowMs) : copyOf(before);
    weightedFor(news, nowMs);
    if (fromMs !== undefined) seenUp(news, fromMs, Math.max(fromMs, nowMs));
    return news;
  }

  #newsOf(pool: PoolId, atMs: number): PoolNews {
    let news = this.#pools.get(pool);
    if (news === undefined) this.#pools.set(pool, (news = newNews(atMs)));
    news.firstMs = Math.min(news.firstMs, atMs);
    return news;
  }
}

const zeros = (): number[] => WINDOWS_H.map(() => 0);
const noSums = (): Sums => ({ upH: zeros(), losses: zeros(), refusedH: zeros() });
const newNews = (atMs: number): PoolNews => ({
  ...noSums(),
  firstMs: atMs,
  atMs,
  upFromMs: null,
  upUntilMs: null,
  lostMs: null,
  refusedMs: null,
  downMs: null,
  outageMs: null,
});
const copyOf = (news: PoolNews): PoolNews => ({
  ...news,
  upH: [...news.upH],
  losses: [...news.losses],
  refusedH: [...news.refusedH],
});

/** `zone/us-east-1a` and `family/c5` of `c5.large/us-east-1a/spot`. */
function groupsOf(pool: PoolId): string[] {
  const { family, zone } = poolParts(pool);
  return [`zone/${zone}`, `family/${family}`];
}

/** Lets the sums fade to an instant, if that lies ahead. */
function weightedFor(news: PoolNews, atMs: number): void {
  const passedMs = atMs - news.atMs;
  if (passedMs <= 0) return;
  WINDOWS_H.forEach((h, w) => {
    const kept = Math.exp(-passedMs / (h * HOUR_MS));
    for (const sums of [news.upH, news.losses, news.refusedH]) sums[w] = (sums[w] ?? 0) * kept;
  });
  news.atMs = atMs;
}

/** Something that happened `agoMs` before the instant of the sums. */
function add(sums: number[], amount: number, agoMs: number): void {
  WINDOWS_H.forEach((h, w) => (sums[w] = (sums[w] ?? 0) + amount * Math.exp(-agoMs / (h * HOUR_MS))));
}

/** Adds a stretch; its overlap with the last one is not counted again. */
function seenUp(news: PoolNews, fromMs: number, toMs: number): void {
  weightedFor(news, toMs);
  const { upFromMs, upUntilMs } = news;
  if (upFromMs === null || upUntilMs === null || fromMs > upUntilMs) {
    if (news.downMs !== null && fromMs >= news.downMs) {
      news.outageMs = fromMs - news.downMs;
      news.downMs = null;
    }
    addUp(news, fromMs, toMs);
    [news.upFromMs, news.upUntilMs] = [fromMs, toMs];
    return;
  }
  addUp(news, fromMs, Math.min(toMs, upFromMs));
  addUp(news, Math.max(fromMs, upUntilMs), toMs);
  if (toMs < upFromMs) return;
  news.upFromMs = Math.min(upFromMs, fromMs);
  news.upUntilMs = Math.max(upUntilMs, toMs);
}

/** The integral of the weights over a stretch, hours. */
function addUp(news: PoolNews, fromMs: number, toMs: number): void {
  if (toMs <= fromMs) return;
  WINDOWS_H.forEach((h, w) => {
    const weightAt = (ms: number): number => Math.exp((ms - news.atMs) / (h * HOUR_MS));
    news.upH[w] = (news.upH[w] ?? 0) + h * (weightAt(toMs) - weightAt(fromMs));
  });
}

function lost(news: PoolNews, atMs: number): void {
  const isNew = news.lostMs === null || Math.abs(atMs - news.lostMs) >= TOGETHER_MS;
  if (isNew) add(news.losses, 1, news.atMs - atMs);
  news.lostMs = Math.max(news.lostMs ?? atMs, atMs);
  news.downMs ??= atMs;
}

function addAll(sums: Sums, more: Sums): void {
  for (const key of ['upH', 'losses', 'refusedH'] as const) {
    more[key].forEach((value, w) => (sums[key][w] = (sums[key][w] ?? 0) + value));
  }
}

const hoursLog = (ms: number): number => Math.log1p(Math.max(0, ms) / HOUR_MS);

/** Observations in a window: share up of the observed time, losses per hour up, hours observed. */
function seenIn(sums: Sums, w: number, less: Sums = NOTHING): [number, number, number] {
  const of = (key: keyof Sums): number => Math.max(0, (sums[key][w] ?? 0) - (less[key][w] ?? 0));
  const [upH, refusedH] = [of('upH'), of('refusedH')];
  const seenH = upH + refusedH;
  return [seenH < LEAST_SEEN_H ? NONE : upH / seenH, of('losses') / (upH + LEAST_HOURS), Math.log1p(seenH)];
}
const NOTHING: Sums = noSums();
/** Less than a second counts as unobserved: it is rounding in a faded sum, or in a difference of sums. */
const LEAST_SEEN_H = 1 / 3600;

interface Around {
  readonly nowMs: number;
  readonly calendar: Calendar;
  /** Sums of the pool's groups, itself among them. */
  readonly groups: readonly (Sums | undefined)[];
}

function rowOf(news: PoolNews, { nowMs, calendar, groups }: Around): Float32Array {
  const own = WINDOWS_H.map((_, w) => seenIn(news, w));
  const since = (ms: number | null): number => (ms === null ? NONE : hoursLog(nowMs - ms));
  const isUp = news.upUntilMs !== null && news.upUntilMs >= nowMs;
  const { working, weekdaySin, weekdayCos, timeOfDaySin, timeOfDayCos } = calendar;
  return Float32Array.of(
    ...[0, 1, 2].flatMap((k) => own.map((of) => of[k] ?? NONE)),
    isUp ? since(news.upFromMs) : NONE,
    since(news.upUntilMs),
    since(news.lostMs),
    since(news.refusedMs),
    news.outageMs === null ? NONE : hoursLog(news.outageMs),
    since(news.firstMs),
    weekdaySin,
    weekdayCos,
    timeOfDaySin,
    timeOfDayCos,
    ...working,
    ...groups.flatMap((sums) => seenIn(sums ?? NOTHING, NEAR, news)),
  );
}

/**
 * Start of the present uninterrupted holding of each spot pool, by its live instances that stay. Other pools say
 * nothing: no data set has them as neighbours.
 */
export function heldSince(instances: Iterable<Pick<Instance, 'pool' | 'launchedMs' | 'state'>>): HeldSince {
  const since = new Map<PoolId, number>();
  for (const { pool, launchedMs, state } of instances) {
    if (!isSpotPool(pool) || launchedMs === null || state === 'warned' || state === 'ended') continue;
    since.set(pool, Math.min(since.get(pool) ?? Infinity, raw(launchedMs)));
  }
  return since;
}
