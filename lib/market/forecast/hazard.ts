import { poolParts } from '../../domain/pool.ts';
import { poolId, type PoolId } from '../../kernel/ids.ts';
import { between, hoursIn, isPositive, raw, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { CapacityNews, poolNews, type PoolNews } from '../features/capacity-features.ts';

/**
 * Rate of capacity losses, learned from our own instances: interruptions are Poisson in instance-hours, their rate has
 * a Gamma posterior per pool. Instances still running count as exposure without an event, which is all that
 * right-censoring needs under a constant rate.
 * Partial pooling: a pool's prior mean is the posterior mean of its siblings (same type family and zone, itself left
 * out), and theirs is the posterior mean of all other families and zones, whose own prior is the configured one.
 * Families share hosts, so a family that loses instances in a zone warns its other sizes.
 */
export interface HazardPosterior {
  /** Gamma shape: interruptions. */
  readonly shape: number;
  /** Gamma rate: instance-hours. Mean hazard = shape / rateHours. */
  readonly rateHours: number;
}

type HazardPrior = Pick<SchedulerConfig, 'hazardPriorPerHour' | 'hazardPriorHours'>;

interface Observed {
  readonly exposureS: number;
  readonly interruptions: number;
}

/**
 * Evidence kept per pool, instance-hours; more is scaled down to it as new evidence comes, so that a pool's past is
 * forgotten at the speed of its use: at 0.03 per hour this holds about 30 interruptions, a standard error of 18 %.
 */
const MEMORY_HOURS = 1000;
const KEY_PREFIX = 'hazard/';
const NOTHING: Observed = { exposureS: 0, interruptions: 0 };
/**
 * Weight of the configured prior against the evidence of other families, instance-hours. Ours: five of the pools'
 * priors, because families differ, and quiet hours in a row are no independent evidence.
 */
const ELSEWHERE_HOURS = 100;

const sumOf = (a: Observed, b: Observed): Observed => ({
  exposureS: a.exposureS + b.exposureS,
  interruptions: a.interruptions + b.interruptions,
});

/** A spot instance that has ended. */
export interface EndedInstance {
  readonly launchedMs: EpochMs;
  readonly endedMs: EpochMs;
  /** Time of the notice of an interruption for lack of capacity, before the end; null: there was none. */
  readonly takenMs: EpochMs | null;
}

/**
 * Observations per pool, including the inputs to features of a trained forecast (`news`). Lifecycle: `fromMemory` at
 * start, `observe` as instances run and end, `takeDirty` into the store's `memory` rows in the same commit as the
 * observations, so that nothing counts twice after a crash.
 */
export class CapacityEvidence {
  readonly #pools = new Map<PoolId, Observed>();
  readonly #families = new Map<string, Observed>();
  #all: Observed = NOTHING;
  readonly #changed = new Set<PoolId>();
  readonly news = new CapacityNews();

  readonly prefix = KEY_PREFIX;

  /** Reads rows whose key starts with `hazard/`; other rows and rows that do not parse as two numbers are ignored. */
  static fromMemory(rows: ReadonlyMap<string, string>): CapacityEvidence {
    const evidence = new CapacityEvidence();
    evidence.restore(rows);
    return evidence;
  }

  /** Replaces all state, stored or not, by these rows, as `fromMemory` does. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#pools.clear();
    this.#families.clear();
    this.#all = NOTHING;
    this.#changed.clear();
    this.news.clear();
    for (const [key, value] of rows) {
      if (!key.startsWith(KEY_PREFIX)) continue;
      const parsed = parseRow(value);
      if (parsed === null) continue;
      const pool = poolId(key.slice(KEY_PREFIX.length));
      this.#add(pool, parsed.observed);
      if (parsed.news !== null) this.news.restore(pool, parsed.news);
    }
  }

  ended(pool: PoolId, { launchedMs, endedMs, takenMs }: EndedInstance): void {
    this.observe(pool, between(launchedMs, endedMs), takenMs === null ? 0 : 1);
    this.news.held(pool, { fromMs: raw(launchedMs), toMs: raw(takenMs ?? endedMs), isTaken: takenMs !== null });
    this.#changed.add(pool);
  }

  /** A launch was refused for want of capacity. */
  refused(pool: PoolId, at: EpochMs): void {
    this.news.refused(pool, raw(at));
    this.#changed.add(pool);
  }

  /** Adds instance-time in a pool and the capacity interruptions in it. Interruptions by price belong to no call. */
  observe(pool: PoolId, exposureS: Seconds, interruptions: number): void {
    if (!isPositive(exposureS) && interruptions <= 0) return;
    this.#add(pool, { exposureS: raw(exposureS), interruptions });
    this.#changed.add(pool);
  }

  of(pool: PoolId): Observed {
    return this.#pools.get(pool) ?? NOTHING;
  }

  /** The posterior of a pool's hazard; the prior itself where nothing was observed. */
  posterior(pool: PoolId, prior: HazardPrior): HazardPosterior {
    const own = this.of(pool);
    const family = this.#families.get(familyKey(pool)) ?? NOTHING;
    const siblingHours = Math.max(0, family.exposureS - own.exposureS) / 3600;
    const siblingEvents = Math.max(0, family.interruptions - own.interruptions);
    const { hazardPriorHours } = prior;
    const mean =
      (this.#elsewhere(family, prior) * hazardPriorHours + siblingEvents) / (hazardPriorHours + siblingHours);
    return {
      shape: mean * hazardPriorHours + own.interruptions,
      rateHours: hazardPriorHours + own.exposureS / 3600,
    };
  }

  /** Posterior mean of all families but one. */
  #elsewhere(family: Observed, { hazardPriorPerHour }: HazardPrior): number {
    const otherHours = Math.max(0, this.#all.exposureS - family.exposureS) / 3600;
    const otherEvents = Math.max(0, this.#all.interruptions - family.interruptions);
    return (hazardPriorPerHour * ELSEWHERE_HOURS + otherEvents) / (ELSEWHERE_HOURS + otherHours);
  }

  /** Memory rows of the pools observed since the last call. */
  takeDirty(): ReadonlyMap<string, string> {
    const rows = new Map<string, string>();
    for (const pool of this.#changed) {
      rows.set(KEY_PREFIX + pool, JSON.stringify({ ...this.of(pool), news: this.news.of(pool) }));
    }
    this.#changed.clear();
    return rows;
  }

  #add(pool: PoolId, more: Observed): void {
    const before = this.of(pool);
    const exposureS = before.exposureS + more.exposureS;
    const kept = Math.min(1, (MEMORY_HOURS * 3600) / Math.max(exposureS, 1));
    const after = { exposureS: exposureS * kept, interruptions: (before.interruptions + more.interruptions) * kept };
    this.#pools.set(pool, after);
    const gained = {
      exposureS: after.exposureS - before.exposureS,
      interruptions: after.interruptions - before.interruptions,
    };
    const key = familyKey(pool);
    this.#families.set(key, sumOf(this.#families.get(key) ?? NOTHING, gained));
    this.#all = sumOf(this.#all, gained);
  }
}

/** The evidence as forecasts read it. */
export interface CapacityBelief extends Pick<CapacityEvidence, 'posterior'> {
  readonly news: Pick<CapacityNews, 'at'>;
}

/**
 * P(not interrupted within h), the rate integrated out: a pool little is known of keeps a heavier tail than its mean
 * says.
 */
export const survivesCapacity = ({ shape, rateHours }: HazardPosterior, h: Seconds): number =>
  (rateHours / (rateHours + hoursIn(h))) ** shape;

/** `c5/us-east-1a` of `c5.large/us-east-1a/spot`. */
function familyKey(pool: PoolId): string {
  const { family, zone } = poolParts(pool);
  return `${family}/${zone}`;
}

/** Null for another row. Without news: a row of an earlier version, or one with unreadable news. */
function parseRow(text: string): { readonly observed: Observed; readonly news: PoolNews | null } | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { exposureS, interruptions, news } = value as Partial<Record<keyof Observed | 'news', unknown>>;
  const amount = (n: unknown): n is number => typeof n === 'number' && Number.isFinite(n) && n >= 0;
  if (!amount(exposureS) || !amount(interruptions)) return null;
  return { observed: { exposureS, interruptions }, news: poolNews.safeParse(news).data ?? null };
}
