/**
 * Features of a pool's capacity, out of what whoever asks for it and holds it can know: an instance was there for a
 * time, one was taken, a launch was refused for want of capacity. Nobody sees a pool that they do not ask, so a share
 * of time up is one of the time in which something was seen. The same code makes data sets (capacity-dataset.ts) and
 * serves forecasts.
 *
 * Instances of one pool that are there at once are one sight of it, and those that are taken together one loss: what is
 * counted is the pool's capacity and not how much of it was in use, so that a model learned from one instance says
 * something to a hundred.
 *
 * Lifecycle: `held` and `refused` as news come, in any order of their times but for a pool's overlapping stretches;
 * `at` an instant, with what is held then. O(1) per news.
 */
import { poolParts } from '../../domain/pool.ts';
import { z } from 'zod';
import type { PoolId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { once } from '../../kernel/once.ts';
import { Calendars, type Calendar } from './calendar.ts';

const HOUR_MS = 3_600_000;
/** Time constants of the exponential windows, hours. */
const WINDOWS_H = [1, 6, 24, 168] as const;
/** The window that neighbours are looked at in: its place. */
const NEAR = WINDOWS_H.indexOf(6);
/**
 * A refusal speaks of so much time without capacity: as long as a pool rests after one, and so of the time between two.
 */
export const REFUSED_FOR_MS = 300_000;
/** Losses, and refusals, of one pool within so long of each other are one. */
const TOGETHER_MS = 150_000;
/** Added to the hours that losses are divided by: one loss in a minute is no rate of sixty an hour. */
const LEAST_HOURS = 1;
/** Of a feature for which nothing was seen. */
const NONE = -1;

const GROUPS = ['zone', 'family'] as const;

/** In the order of their columns. Hours as log(1 + h); NONE where there was nothing. */
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
/** What is known of a pool, to be kept as JSON. Instants are ms since the epoch. */
export const poolNews = z.object({
  /** Sums in which an event's weight falls by a factor of e in each window: hours up, losses, hours refused. */
  upH: sums,
  losses: sums,
  refusedH: sums,
  /** The first news. */
  firstMs: z.number(),
  /** The instant that the sums are weighted for: the last news. */
  atMs: z.number(),
  /** The last stretch for which it was seen up without a gap; null: none yet. */
  upFromMs: instant,
  upUntilMs: instant,
  lostMs: instant,
  refusedMs: instant,
  /** Since when it is known to be without capacity, until it is seen up again; null: it is not. */
  downMs: instant,
  /** How long it was the last time, ms; null: that was never seen to its end. */
  outageMs: instant,
});
export type PoolNews = z.output<typeof poolNews>;
type Sums = Pick<PoolNews, 'upH' | 'losses' | 'refusedH'>;

/** A time for which an instance was there; `isTaken`: it ended because capacity did. */
export interface Held {
  readonly fromMs: number;
  readonly toMs: number;
  readonly isTaken: boolean;
}

/** Since when there has been an instance, by pool, of pools that hold one. */
export type HeldSince = ReadonlyMap<PoolId, number>;

/** What the features of one instant are asked of. */
export interface CapacityView {
  /** One number per CAPACITY_FEATURES; null for a pool of which nothing was ever seen. */
  features(pool: PoolId): Float32Array | null;
}

export class CapacityNews {
  readonly #pools = new Map<PoolId, PoolNews>();
  readonly #calendars = new Calendars();

  /** What is known of a pool, to be kept; undefined: nothing. */
  of(pool: PoolId): PoolNews | undefined {
    return this.#pools.get(pool);
  }

  /** Takes over what was kept. */
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

  /** O(pools of which anything is known). Instants ascend. */
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

  /** A copy with what is held now. */
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

/** Adds a stretch; what of it the last one holds already is not counted again. */
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

/** What was seen in a window: share up of the time seen, losses per hour up, hours seen. */
function seenIn(sums: Sums, w: number, less: Sums = NOTHING): [number, number, number] {
  const of = (key: keyof Sums): number => Math.max(0, (sums[key][w] ?? 0) - (less[key][w] ?? 0));
  const [upH, refusedH] = [of('upH'), of('refusedH')];
  const seenH = upH + refusedH;
  return [seenH < LEAST_SEEN_H ? NONE : upH / seenH, of('losses') / (upH + LEAST_HOURS), Math.log1p(seenH)];
}
const NOTHING: Sums = noSums();
/** Less than a second was not seen: what is left of a sum that has faded, or of one less another. */
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

/** Since when there has been an instance in each pool, of those that are there and stay as far as is known. */
export function heldSince(instances: Iterable<Pick<Instance, 'pool' | 'launchedMs' | 'state'>>): HeldSince {
  const since = new Map<PoolId, number>();
  for (const { pool, launchedMs, state } of instances) {
    if (launchedMs === null || state === 'warned' || state === 'ended') continue;
    since.set(pool, Math.min(since.get(pool) ?? Infinity, raw(launchedMs)));
  }
  return since;
}
