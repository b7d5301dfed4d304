import type { GroupId } from '../kernel/ids.ts';
import { raw, seconds, usdPerHour } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Offer } from '../domain/forecast.ts';
import type { ConsideredOffer } from '../domain/plan.ts';
import type { Bid, Pool } from '../domain/pool.ts';
import type { GroupOffers } from '../domain/stages.ts';
import type { Outcome } from './outcome.ts';
import type { Shape } from './shapes.ts';

/** A pool at a bid, as one shape of task sees it. */
export interface Place {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly priceUsdPerHour: number;
  readonly share: number;
  /** Fraction of the cost that preferences are worth. */
  readonly preferred: number;
  /** Of a pool that rests after refusals. */
  readonly opens: Offer['opens'] | undefined;
}

/** A place, appraised for one class of tasks. */
export interface Candidate {
  readonly place: Place;
  readonly outcome: Outcome;
}

interface Choice {
  readonly group: GroupId;
  readonly shape: Shape;
  readonly candidates: readonly Candidate[];
  readonly task: { readonly blind: boolean };
  readonly config: SchedulerConfig;
}

/** Candidates that an explanation lists. */
const MOST_CONSIDERED = 12;

/**
 * Ranks candidates and keeps the best: those that are late with a probability up to `maxLateProbability` by expected cost
 * less preferences; where there is none, by P(late). Kept are the best bid of each pool first and further bids of a pool only
 * where pools run out, always with the cheapest on-demand pool. A task of unknown running time with a deadline that
 * an interruption would set back stays off spot wherever anything else fits.
 */
export function choose({ group, shape, candidates, task, config }: Choice): GroupOffers {
  const ranked = [...candidates].sort(byCost);
  const finite = ranked.filter((c) => Number.isFinite(c.outcome.costUsd));
  const steady = finite.filter((c) => c.place.pool.option !== 'spot');
  const able = task.blind && steady.length > 0 ? steady : finite;
  const onTime = able.filter((c) => c.outcome.pLate <= config.maxLateProbability);
  const eligible = onTime.length > 0 ? onTime : [...able].sort(byLateness);
  const best = eligible[0];
  const kept = diversified(eligible, config.offersPerGroup);
  const onDemand = able.find((c) => c.place.pool.option === 'on-demand');
  if (onDemand !== undefined && !kept.includes(onDemand)) {
    if (kept.length >= config.offersPerGroup) kept.pop();
    kept.push(onDemand);
  }
  const keptSet = new Set(kept);
  const verdicts: Verdicts = { task, config, best, keptSet, eligible: new Set(eligible), steady: steady.length > 0 };
  let told: readonly ConsideredOffer[] | null = null;
  return {
    offers: kept.map((c) => offerOf(group, c, config)),
    excluded: shape.excluded,
    // Listed when it is read: only explanations do.
    get considered() {
      if (told !== null) return told;
      const rest = ranked.filter((c) => !keptSet.has(c));
      return (told = [...kept, ...oneBidPerPool(rest)].slice(0, MOST_CONSIDERED).map((c) => considered(c, verdicts)));
    },
  };
}

/** An offer as the contract has it. */
function offerOf(group: GroupId, c: Candidate, config: SchedulerConfig): Offer {
  return {
    group,
    pool: c.place.pool.id,
    bid: c.place.bid,
    priceUsdPerHour: usdPerHour(c.place.priceUsdPerHour),
    share: c.place.share,
    startDelayS: seconds(config.startDelayMeanS),
    pInterrupted: c.outcome.pInterrupted,
    pLate: c.outcome.pLate,
    expectedLostS: seconds(c.outcome.lostS),
    expectedDurationS: seconds(c.outcome.durationS),
    expectedCostUsd: c.outcome.costUsd,
    ...(c.place.opens === undefined ? {} : { opens: c.place.opens }),
    ...(c.place.preferred > 0 ? { preferenceUsd: c.place.preferred * c.outcome.costUsd } : {}),
  };
}

const net = (c: Candidate): number => c.outcome.costUsd * (1 - c.place.preferred);
const bidOf = (c: Candidate): number => (c.place.bid === 'uncapped' ? Infinity : raw(c.place.bid));

/** Cost, then safety, then id and bid, so that ties do not depend on input order. */
function byCost(a: Candidate, b: Candidate): number {
  return compare(net(a), net(b)) || compare(a.outcome.pInterrupted, b.outcome.pInterrupted) || byName(a, b);
}

function byLateness(a: Candidate, b: Candidate): number {
  return compare(a.outcome.pLate, b.outcome.pLate) || byCost(a, b);
}

function byName(a: Candidate, b: Candidate): number {
  if (a.place.pool.id !== b.place.pool.id) return a.place.pool.id < b.place.pool.id ? -1 : 1;
  return compare(bidOf(a), bidOf(b));
}

/** Also for infinities, whose difference is not a number. */
const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** The first `most` in order, second bids of a pool only after the first of every pool; the order itself is kept. */
function diversified(ranked: readonly Candidate[], most: number): Candidate[] {
  const first = oneBidPerPool(ranked);
  if (first.length >= most) return first.slice(0, most);
  const chosen = new Set(first);
  for (const c of ranked) {
    if (chosen.size >= most) break;
    chosen.add(c);
  }
  return ranked.filter((c) => chosen.has(c));
}

function oneBidPerPool(ranked: readonly Candidate[]): Candidate[] {
  const seen = new Set<string>();
  return ranked.filter((c) => {
    if (seen.has(c.place.pool.id)) return false;
    seen.add(c.place.pool.id);
    return true;
  });
}

interface Verdicts {
  readonly task: { readonly blind: boolean };
  readonly config: SchedulerConfig;
  readonly best: Candidate | undefined;
  readonly keptSet: ReadonlySet<Candidate>;
  readonly eligible: ReadonlySet<Candidate>;
  readonly steady: boolean;
}

function considered(c: Candidate, v: Verdicts): ConsideredOffer {
  return {
    pool: c.place.pool.id,
    bid: c.place.bid,
    priceUsdPerHour: c.place.priceUsdPerHour,
    pInterrupted: c.outcome.pInterrupted,
    pLate: c.outcome.pLate,
    expectedCostUsd: c.outcome.costUsd,
    // Put into words when it is read: each cycle appraises all that waits, and few of its verdicts are ever told.
    get verdict() {
      return verdict(c, v);
    },
  };
}

const percent = (p: number): string => `${(p * 100).toFixed(p < 0.1 ? 1 : 0)} %`;

function verdict(c: Candidate, v: Verdicts): string {
  if (!Number.isFinite(c.outcome.costUsd)) {
    return 'not taken: interrupted too often ever to finish, and there is no on-demand pool to go to';
  }
  if (v.task.blind && c.place.pool.option === 'spot' && v.steady) {
    return 'not taken: nothing is known of the running time, there is a deadline, and an interruption loses work, so only capacity that stays is safe';
  }
  if (v.keptSet.has(c)) return keptVerdict(c, v);
  if (!v.eligible.has(c)) {
    return `not taken: late with probability ${percent(c.outcome.pLate)}, over the allowed ${percent(v.config.maxLateProbability)}`;
  }
  const same = v.best !== undefined && [...v.keptSet].some((k) => k.place.pool.id === c.place.pool.id);
  return same
    ? `not kept: another bid in this pool is better${premium(c, v)}`
    : `not kept: others are better${premium(c, v)}`;
}

function keptVerdict(c: Candidate, v: Verdicts): string {
  const late =
    c.outcome.pLate > v.config.maxLateProbability ? `; late with probability ${percent(c.outcome.pLate)}` : '';
  if (v.task.blind && v.steady) {
    return `kept: nothing is known of the running time, there is a deadline, and an interruption loses work, so it stays off spot${late}`;
  }
  if (c.place.opens !== undefined) return `kept for later: it gave no capacity lately and rests${premium(c, v)}${late}`;
  if (c === v.best) return late === '' ? 'best: lowest expected cost' : `best: no offer is safer${late}`;
  if (c.place.pool.option !== 'spot') return `kept: is never interrupted${premium(c, v)}${late}`;
  return `kept as an alternative${premium(c, v)}${late}`;
}

function premium(c: Candidate, { best }: Verdicts): string {
  if (best === undefined || !(net(best) > 0)) return '';
  const more = net(c) / net(best) - 1;
  if (Math.abs(more) < 0.0005) return ', same expected cost';
  return more > 0 ? `, ${percent(more)} dearer in expectation` : `, ${percent(-more)} cheaper in expectation`;
}
