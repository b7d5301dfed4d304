import type { GroupId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { raw, seconds, usdPerHour } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { ConsideredOffer } from '../../domain/plan.ts';
import type { FurtherOffers, GroupOffers } from '../../policy/contracts.ts';
import type { AtLeast, EquivalenceClass, Options } from './equivalence-classes.ts';
import type { Outcome } from './outcome.ts';
import type { Place, Shares } from './request-classes.ts';
import { capUsd, onDemandUsdOf } from '../../domain/pool.ts';

/** A place, appraised for one class of tasks. */
export interface Candidate {
  readonly place: Place;
  readonly shares: Shares;
  readonly outcome: Outcome;
}

interface Choice {
  readonly group: GroupId;
  readonly excluded: GroupOffers['excluded'];
  readonly equivalenceClass: Pick<EquivalenceClass, 'nonInterruptible' | 'spot' | 'together' | 'sizes'>;
  /** Candidates of the deadline class from options. */
  readonly candidates: (options: Options) => readonly Candidate[];
  readonly task: { readonly blind: boolean };
  readonly config: SchedulerConfig;
}

/** Candidates that an explanation lists. */
const MOST_CONSIDERED = 12;

/**
 * Ranks candidates and keeps the best. Candidates with P(late) up to `maxLateProbability` are ranked by expected cost
 * less preferences; if there is none, all are ranked by P(late). The least P(late) of on-demand is added to that limit,
 * because a task may be late wherever it runs. The best bid of each pool comes first, further bids of a pool only if
 * pools run out; the cheapest on-demand pool is always kept. A task with an unknown running time and a deadline that
 * must be met, whose work an interruption would lose, stays off spot wherever anything else fits.
 */
export function choose(choice: Choice): GroupOffers {
  const { group, excluded, config } = choice;
  const { found, allowed } = candidatesFor(choice);
  const able = found.filter((c) => Number.isFinite(c.outcome.costUsd)).sort(byCost);
  const onTime = able.filter((c) => isOnTime(c, allowed));
  const eligible = onTime.length > 0 ? onTime : [...able].sort(byLateness);
  const kept = diversified(eligible, config.offersPerGroup);
  const onDemand = able.find((c) => c.place.pool.option === 'on-demand');
  if (onDemand !== undefined && !kept.includes(onDemand)) {
    if (kept.length >= config.offersPerGroup) kept.pop();
    kept.push(onDemand);
  }
  const chosen: Chosen = { kept, best: eligible[0], anyOnTime: onTime.length > 0, allowed };
  const offers = kept.map((c) => offerOf(group, c, config));
  const seen = consideredOf(found, chosen, choice);
  const further = new Further(choice);
  return {
    offers,
    excluded,
    further: { together: () => further.of('together'), sizes: () => further.of('sizes') },
    get considered() {
      further.end();
      return seen();
    },
  };
}

/**
 * Offers worked out on first use: only purchases read them. It holds everything appraised until it was told what was
 * considered, which is the last question of a decision.
 */
class Further {
  #choice: Choice | null;
  readonly #known = new Map<keyof FurtherOffers, readonly Offer[]>();

  constructor(choice: Choice) {
    this.#choice = choice;
  }

  of(which: keyof FurtherOffers): readonly Offer[] {
    let known = this.#known.get(which);
    if (known === undefined && this.#choice !== null) {
      known = furtherOf(this.#choice, this.#choice.equivalenceClass[which]());
      this.#known.set(which, known);
    }
    return known ?? [];
  }

  end(): void {
    this.#choice = null;
  }
}

/** The best bid of each of these pools, whatever its cost for the task alone. */
function furtherOf(choice: Choice, options: readonly Options[]): readonly Offer[] {
  const { group, candidates, config } = choice;
  const all = options
    .flatMap(candidates)
    .filter((c) => Number.isFinite(c.outcome.costUsd) && isBounded(c, choice))
    .filter((c) => !isOffSpot(choice) || c.place.pool.option !== 'spot');
  return oneBidPerPool(all.sort(byCost)).map((c) => offerOf(group, c, config));
}

const isOffSpot = ({ equivalenceClass, task }: Choice): boolean =>
  task.blind && equivalenceClass.nonInterruptible.length > 0;

/**
 * True if the price paid per hour has an acceptable bound. Work that may only use spot cannot leave a pool whose price
 * soars, so it bids at most the on-demand price.
 */
const isBounded = (
  { place: { pool, bid } }: Candidate,
  { equivalenceClass }: Pick<Choice, 'equivalenceClass'>,
): boolean =>
  equivalenceClass.nonInterruptible.length > 0 ||
  pool.option !== 'spot' ||
  (bid !== 'uncapped' && raw(bid) <= onDemandUsdOf(pool) + 1e-9);

/** All non-interruptible candidates, and all spot candidates that may be kept. */
function candidatesFor(choice: Choice): { readonly found: readonly Candidate[]; readonly allowed: number } {
  const { equivalenceClass, candidates, config } = choice;
  const found = equivalenceClass.nonInterruptible.flatMap(candidates);
  const least = found.length === 0 ? 0 : found.reduce((p, c) => Math.min(p, c.outcome.pLate), 1);
  const allowed = config.maxLateProbability + least;
  if (isOffSpot(choice)) return { found, allowed };
  const standing = new Standing(config.offersPerGroup, allowed);
  for (const c of found) standing.add([c]);
  for (const some of equivalenceClass.spot) {
    if (standing.beats(some)) break;
    for (const pool of some.pools()) {
      if (standing.beats(pool)) break;
      const bids = candidates(pool.options()).filter((c) => isBounded(c, choice));
      standing.add(bids);
      found.push(...bids);
    }
  }
  return { found, allowed };
}

/** Relative rounding error of floating-point sums in different orders. */
const ROUNDING = 1e-9;

/** Costs of the pools kept so far. */
class Standing {
  readonly #most: number;
  readonly #allowed: number;
  /** Best on-time bid of each pool, ascending; at most as many as are kept. */
  readonly #netUsd: number[] = [];

  constructor(most: number, allowed: number) {
    this.#most = most;
    this.#allowed = allowed;
  }

  /** All bids of a pool. */
  add(bids: readonly Candidate[]): void {
    const best = bids.reduce((usd, c) => (isOnTime(c, this.#allowed) ? Math.min(usd, net(c)) : usd), Infinity);
    if (best === Infinity) return;
    this.#netUsd.push(best);
    this.#netUsd.sort((a, b) => a - b);
    this.#netUsd.length = Math.min(this.#netUsd.length, this.#most);
  }

  /** True if a pool with this lower bound is surely not kept. */
  beats({ leastUsd }: AtLeast): boolean {
    const last = this.#netUsd[this.#most - 1];
    return last !== undefined && last < leastUsd * (1 - ROUNDING);
  }
}

const isOnTime = (c: Candidate, allowed: number): boolean => c.outcome.pLate <= allowed;

interface Chosen {
  readonly kept: readonly Candidate[];
  readonly best: Candidate | undefined;
  readonly anyOnTime: boolean;
  /** Largest P(late) of what is on time. */
  readonly allowed: number;
}

/**
 * Considered offers: those kept, and the best others of those appraised. Described on first use, for explanations.
 * Where spot is out of the question, its offers are appraised for them alone.
 */
function consideredOf(
  found: readonly Candidate[],
  { kept, best, anyOnTime, allowed }: Chosen,
  choice: Choice,
): () => readonly ConsideredOffer[] {
  const keptSet = new Set(kept);
  const listedOf = (all: readonly Candidate[]): readonly Candidate[] => {
    const rest = all.filter((c) => !keptSet.has(c) && isBounded(c, choice)).sort(byCost);
    return [...kept, ...oneBidPerPool(rest)].slice(0, MOST_CONSIDERED);
  };
  const listed = listedOf(found);
  const acceptable = choice.config.maxLateProbability;
  const verdicts: Verdicts = { acceptable, allowed, best, keptSet, anyOnTime, isOffSpot: isOffSpot(choice) };
  const spot = (): readonly Candidate[] => {
    const pools = choice.equivalenceClass.spot.flatMap((some) => some.pools());
    return pools.flatMap((pool) => choice.candidates(pool.options()));
  };
  return once(() => {
    const all = verdicts.isOffSpot ? listedOf([...listed, ...spot()]) : listed;
    return all.map((c) => considered(c, verdicts));
  });
}

/** An offer as the contract has it. */
function offerOf(group: GroupId, c: Candidate, config: SchedulerConfig): Offer {
  return {
    group,
    pool: c.place.pool.id,
    bid: c.place.bid,
    priceUsdPerHour: usdPerHour(c.place.priceUsdPerHour),
    share: c.shares.own,
    roomShare: c.shares.inRoom ?? c.shares.own,
    newShare: c.shares.ofNew,
    startDelayS: seconds(config.startDelayMeanS),
    pInterrupted: c.outcome.pInterrupted,
    pLate: c.outcome.pLate,
    expectedLostS: seconds(c.outcome.lostS),
    expectedDurationS: seconds(c.outcome.durationS),
    expectedCostUsd: c.outcome.costUsd,
    ...(c.place.opens === undefined ? {} : { opens: c.place.opens }),
    ...(c.place.slowdown === 1 ? {} : { slowdown: c.place.slowdown }),
    ...(c.place.preferred > 0 ? { preferenceUsd: c.place.preferred * c.outcome.costUsd } : {}),
  };
}

const net = (c: Candidate): number => c.outcome.costUsd * (1 - c.place.preferred);

/** Cost, then safety, then id and bid, so that ties do not depend on input order. */
function byCost(a: Candidate, b: Candidate): number {
  return compare(net(a), net(b)) || compare(a.outcome.pInterrupted, b.outcome.pInterrupted) || byName(a, b);
}

function byLateness(a: Candidate, b: Candidate): number {
  return compare(a.outcome.pLate, b.outcome.pLate) || byCost(a, b);
}

function byName(a: Candidate, b: Candidate): number {
  if (a.place.pool.id !== b.place.pool.id) return a.place.pool.id < b.place.pool.id ? -1 : 1;
  return compare(capUsd(a.place.bid), capUsd(b.place.bid));
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
  /** P(late) that need not be told. */
  readonly acceptable: number;
  /** Largest P(late) of what is on time. */
  readonly allowed: number;
  readonly best: Candidate | undefined;
  readonly keptSet: ReadonlySet<Candidate>;
  /** Only then lateness rules out. */
  readonly anyOnTime: boolean;
  /** True if it stays off spot because its running time is unknown. */
  readonly isOffSpot: boolean;
}

function considered(c: Candidate, v: Verdicts): ConsideredOffer {
  return {
    pool: c.place.pool.id,
    bid: c.place.bid,
    priceUsdPerHour: c.place.priceUsdPerHour,
    pInterrupted: c.outcome.pInterrupted,
    pLate: c.outcome.pLate,
    expectedCostUsd: c.outcome.costUsd,
    verdict: `${verdict(c, v)}${slower(c)}`,
  };
}

const percent = (p: number): string => `${(p * 100).toFixed(p < 0.1 ? 1 : 0)} %`;

function verdict(c: Candidate, v: Verdicts): string {
  if (!Number.isFinite(c.outcome.costUsd)) {
    return 'not taken: interrupted too often ever to finish, and there is no on-demand pool to go to';
  }
  if (v.isOffSpot && c.place.pool.option === 'spot') {
    return 'not taken: nothing is known of the running time, there is a deadline, and an interruption loses work, so only capacity that stays is safe';
  }
  if (v.keptSet.has(c)) return keptVerdict(c, v);
  if (v.anyOnTime && !isOnTime(c, v.allowed)) {
    return `not taken: late with probability ${percent(c.outcome.pLate)}, over the allowed ${percent(v.allowed)}`;
  }
  const same = v.best !== undefined && [...v.keptSet].some((k) => k.place.pool.id === c.place.pool.id);
  return same
    ? `not kept: another bid in this pool is better${premium(c, v)}`
    : `not kept: others are better${premium(c, v)}`;
}

/** A soft constraint that the pool does not meet, and neighbours that matter, as part of a verdict. */
function slower({ place: { slowdown, beside } }: Candidate): string {
  const times = (factor: number): string => `takes ${Number(factor.toFixed(2))} times as long`;
  const soft = slowdown / beside.factor;
  const wishes = Math.abs(soft - 1) < 0.005 ? '' : `; does not meet a soft constraint, ${times(soft)}`;
  const neighbours =
    Math.abs(beside.factor - 1) < 0.005 ? '' : `; beside others like it ${times(beside.factor)} as usual`;
  return `${wishes}${neighbours}`;
}

function keptVerdict(c: Candidate, v: Verdicts): string {
  const late = c.outcome.pLate > v.acceptable ? `; late with probability ${percent(c.outcome.pLate)}` : '';
  if (v.isOffSpot) {
    return `kept: nothing is known of the running time, there is a deadline, and an interruption loses work, so it stays off spot${late}`;
  }
  if (c.place.opens !== undefined)
    return `kept for later: it gave no capacity lately and is in back-off${premium(c, v)}${late}`;
  if (c === v.best)
    return late === '' ? 'best: lowest expected cost' : `best: lowest expected cost, and no offer is much safer${late}`;
  if (c.place.pool.option !== 'spot') return `kept: is never interrupted${premium(c, v)}${late}`;
  return `kept as an alternative${premium(c, v)}${late}`;
}

function premium(c: Candidate, { best }: Verdicts): string {
  if (best === undefined || !(net(best) > 0)) return '';
  const more = net(c) / net(best) - 1;
  if (Math.abs(more) < 0.0005) return ', same expected cost';
  return more > 0 ? `, ${percent(more)} dearer in expectation` : `, ${percent(-more)} cheaper in expectation`;
}
