/**
 * Options of a waiting group: begin its tasks on one of its offers, now or at a later slot of the window.
 * Worth of one task (USD): the utility curve over the distribution of the remaining running time, from the start plus
 * the start-up delay (JamaisVu section 4.3 for the curve; distributions instead of points as 3Sigma does). An
 * interruption stretches the run: with probability pInterrupted the task takes as long as makes the offer's expected
 * duration come out right, else its undisturbed time. Cost (USD): the offer's, times the expected price of that slot
 * over the price now.
 */
import {
  add,
  epochMs,
  isPositive,
  msBetween,
  plus,
  ratio,
  raw,
  seconds,
  secondsBetween,
  type EpochMs,
} from '../../kernel/units.ts';
import type { JobId, PoolId } from '../../kernel/ids.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { certain, mean, type Distribution, meanS } from '../../domain/distribution.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { StartOption, Worth } from '../../domain/plan.ts';
import { usdPerHourOf, type Pool, type PoolView } from '../../domain/pool.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { workToDo } from '../../domain/work-to-do.ts';
import { slowed } from '../../domain/slowdown.ts';
import { worthAt } from '../../domain/utility.ts';
import { GUARD_CYCLES, isGuarded } from '../../policy/last-safe-moment.ts';
import { deadlineAnswer, type DeadlineAnswer } from './deadline-choice.ts';
import { leftOfBudgets, type Capacity } from './supply.ts';
import { relocationS } from '../../policy/work-left.ts';
import { milliCpuIn } from '../../domain/resources.ts';

/**
 * Saving that justifies waiting one slot, as a fraction of the cost: price forecasts are uncertain, and a plan that
 * waits for a thousandth of a cent would never start. Chosen well under the spread of spot prices from hour to hour (5
 * to 20 %).
 */
export const PATIENCE_PER_SLOT = 0.005;

/** A start option with further facts for the plan. */
export interface PlannedOption {
  readonly option: StartOption;
  readonly pool: Pool;
  /** Worth less cost, patience and soft preferences counted; USD per task. */
  readonly netUsd: number;
  /** Slots that a task occupies from its start; >= 1. */
  readonly slots: number;
  /** True if nothing is to be bought for it. */
  readonly roomOnly?: boolean;
  /** The answer in dollars that the option follows: a start on spot now, or a wait for it. */
  readonly answer?: DeadlineAnswer;
}

/** Rules of a plan besides worth and cost. */
export interface StartRules {
  /**
   * The deadline guard: offers that are likely late are left out, and from the last safe start on only
   * non-interruptible capacity is used. Baselines without deadlines turn it off.
   */
  readonly guardsDeadlines: boolean;
  /** The deadline program decides between spot, on-demand and waiting, where it applies (deadline-choice.ts). */
  readonly asksProgram: boolean;
  /**
   * The plan has an order of its own and stops nothing that runs: only idle instances are given back for it, and short
   * jobs count no more than others.
   */
  readonly hasOrder: boolean;
}
export const GUARDED: StartRules = { guardsDeadlines: true, asksProgram: false, hasOrder: false };
export const UNGUARDED: StartRules = { guardsDeadlines: false, asksProgram: false, hasOrder: false };
export const IN_ORDER: StartRules = { guardsDeadlines: false, asksProgram: false, hasOrder: true };
export const BY_PROGRAM: StartRules = { guardsDeadlines: true, asksProgram: true, hasOrder: false };

/** Facts that all groups of a cycle share. */
export interface OptionContext {
  readonly input: PlanInput;
  readonly pools: ReadonlyMap<PoolId, PoolView>;
  /** Pools with an instance that takes tasks. */
  readonly held: Pick<ReadonlySet<PoolId>, 'has'>;
  /** Start of each slot. */
  readonly slotMs: readonly EpochMs[];
  /** Expected price over price now, per pool and slot. */
  readonly priceFactor: (pool: Pool, slot: number) => number;
  /**
   * True if all waiting work finds vCPUs at once, bought or on instances that are there: then interrupted work finds
   * on-demand capacity in time.
   */
  readonly canFlee: boolean;
  /** USD left per job with a limit. */
  readonly leftUsd: ReadonlyMap<JobId, number>;
  readonly rules: StartRules;
}

export function optionContext(
  input: PlanInput,
  { headroomMilliCpu, rooms }: Pick<Capacity, 'headroomMilliCpu' | 'rooms'>,
  rules: StartRules = GUARDED,
): OptionContext {
  const { snapshot, config, forecasts } = input;
  const pools = new Map(snapshot.pools.map((view) => [view.pool.id, view]));
  const slotMs = Array.from({ length: config.lookAheadSlots }, (_, slot) =>
    plus(snapshot.nowMs, seconds(slot * config.slotS)),
  );
  const factors = new Map<PoolId, Float64Array>();
  const factorsOf = (pool: Pool): Float64Array => {
    const nowUsd = usdPerHourOf(pool, pools.get(pool.id)?.quote);
    return Float64Array.from(slotMs, (at, slot) => {
      if (slot === 0 || pool.option !== 'spot' || nowUsd <= 0) return 1;
      const later = forecasts.market.expectedPrice(pool, at);
      return later === null ? 1 : raw(later) / nowUsd;
    });
  };
  const priceFactor = (pool: Pool, slot: number): number => {
    let known = factors.get(pool.id);
    if (known === undefined) factors.set(pool.id, (known = factorsOf(pool)));
    return known[slot] ?? 1;
  };
  const waiting = snapshot.groups.reduce((sum, group) => sum + group.count * milliCpuIn(group.need), 0);
  return {
    input,
    pools,
    held: rooms,
    slotMs,
    priceFactor,
    canFlee: waiting <= headroomMilliCpu || waiting <= headroomMilliCpu + freeMilliCpu(rooms),
    leftUsd: leftOfBudgets(input),
    rules,
  };
}

/** Room on live instances, whose vCPUs are free again when the market takes them, mCPU. O(instances). */
const freeMilliCpu = (rooms: Capacity['rooms']): number =>
  rooms
    .values()
    .flatMap((room) => Array.from({ length: room.count }, (_, i) => milliCpuIn(room.free(i))))
    .reduce((sum, milliCpu) => sum + milliCpu, 0);

/** Offers with acceptable lateness; if there is none, the safest ones. */
export function acceptableOffers(offers: readonly Offer[], maxLateProbability: number): readonly Offer[] {
  const safest = offers.reduce((least, offer) => Math.min(least, offer.pLate), 1);
  const limit = Math.max(maxLateProbability, safest);
  return offers.filter((offer) => offer.pLate <= limit + 1e-12);
}

/**
 * Offers within the budget of the job, all tasks of the group together; all offers if none is. A deadline asks for
 * non-interruptible capacity: if the budget does not pay for that, spot may still be in time, and waiting cannot.
 */
function payableOffers({ id, job, count }: PendingGroup, { input, leftUsd }: OptionContext): readonly Offer[] {
  const offers = input.offers.get(id)?.offers ?? [];
  const left = leftUsd.get(job);
  if (left === undefined) return offers;
  const payable = offers.filter((o) => o.expectedCostUsd * count <= left + 1e-9);
  return payable.length > 0 ? payable : offers;
}

/** All options of a group, in the order of slots, then offers. Options with a net loss are included. */
export function startOptions(group: PendingGroup, context: OptionContext): readonly PlannedOption[] {
  const worth = context.input.worths.groups.get(group.id);
  if (worth === undefined) return [];
  const offered = payableOffers(group, context);
  const left = leftToRun(group, context.input);
  const { canFlee, pools, input, rules } = context;
  const viewOf = ({ pool }: Offer): PoolView | undefined => pools.get(pool);
  const answer = rules.asksProgram
    ? deadlineAnswer({ group, worth, left, offers: offered, viewOf, canFlee }, input)
    : null;
  const of = { group, worth, left, offered };
  return answer === null ? optionsByRisk(of, context) : optionsByProgram({ ...of, answer }, context);
}

interface Optioned {
  readonly group: PendingGroup;
  readonly worth: Worth;
  readonly left: Distribution | null;
  readonly offered: readonly Offer[];
}

/** Options by P(late) and the last safe start. */
function optionsByRisk({ worth, offered, ...of }: Optioned, context: OptionContext): readonly PlannedOption[] {
  const { config } = context.input;
  const { guardsDeadlines } = context.rules;
  const usable = guardsDeadlines ? acceptableOffers(offered, config.maxLateProbability) : offered;
  const make = optionMaker({ ...of, worth, offered, usable }, context);
  const options: PlannedOption[] = [];
  context.slotMs.forEach((startMs, slot) => {
    const guarded = guardsDeadlines && isGuarded(worth, startMs, config.cyclePeriodS);
    const safe = guarded ? offered.filter((offer) => !isSpot(offer, context)) : [];
    for (const offer of safe.length > 0 ? safe : usable)
      if (offer.opens === undefined) options.push(...make(offer, slot, startMs));
    if (slot === 0 && safe.length === 0) options.push(...inHeldRoom(usable, make, context));
    // A group that waits for a pool in back-off waits for the next plan, whenever the back-off ends.
    if (slot === 1) {
      const nonInterruptible = cheapestRate(usable.filter((o) => !isSpot(o, context)));
      for (const offer of usable) {
        if (offer.opens !== undefined && mayWaitFor({ offer, worth, nonInterruptible, left: of.left }, context))
          options.push(...make(offer, slot, nextPlanMs(context)));
      }
    }
  });
  return options;
}

/**
 * Options that follow the deadline program: its answer leaves on-demand, spot, or a wait for a pool in back-off. Spot
 * may still be put off to a slot with a lower price while the last safe start allows, and room on instances that are
 * there may always be used, if it is not spot where the answer is on-demand.
 */
function optionsByProgram(
  { worth, offered, answer, ...of }: Optioned & { readonly answer: DeadlineAnswer },
  context: OptionContext,
): readonly PlannedOption[] {
  const make = optionMaker({ ...of, worth, offered, usable: offered }, context);
  const now = context.input.snapshot.nowMs;
  const open = offered.filter((offer) => offer.opens === undefined);
  const staying = open.filter((offer) => !isSpot(offer, context));
  if (answer.take === 'on-demand')
    return context.slotMs.flatMap((startMs, slot) => staying.flatMap((offer) => make(offer, slot, startMs)));
  const inRoom = staying.filter((offer) => context.held.has(offer.pool));
  const spot = open.filter((offer) => isSpot(offer, context) && answer.spot?.has(offer) !== false);
  const roomOnly = inRoom.flatMap((offer) => make(offer, 0, now)).map((option) => ({ ...option, roomOnly: true }));
  const weighed = spot.flatMap((offer) => make(offer, 0, now)).map((option) => ({ ...option, answer }));
  const options: PlannedOption[] = [...roomOnly, ...weighed];
  options.push(...inHeldRoom(offered, make, context));
  context.slotMs.forEach((startMs, slot) => {
    if (slot === 0 || isGuarded(worth, startMs, context.input.config.cyclePeriodS)) return;
    for (const offer of spot) options.push(...make(offer, slot, startMs));
  });
  if (answer.take === 'spot') return options;
  const closed = offered.filter((offer) => offer.opens !== undefined);
  const waits = closed.flatMap((offer) => make(offer, 1, nextPlanMs(context)));
  return [...options, ...waits.map((option) => ({ ...option, answer }))];
}

type MakeOption = (offer: Offer, slot: number, startMs: EpochMs) => readonly PlannedOption[];

function optionMaker(
  { offered, usable, ...of }: Optioned & { readonly usable: readonly Offer[] },
  context: OptionContext,
): MakeOption {
  const elsewhereUsd = usable.reduce((least, o) => (o.opens ? least : Math.min(least, o.expectedCostUsd)), Infinity);
  const nonInterruptibleUsd = offered.reduce(
    (least, o) => (isSpot(o, context) ? least : Math.min(least, o.expectedCostUsd)),
    Infinity,
  );
  return (offer, slot, startMs) => {
    const pool = poolOf(offer, context);
    if (pool === undefined) return [];
    return [plannedOption({ ...of, offer, pool, slot, startMs, elsewhereUsd, nonInterruptibleUsd }, context)];
  };
}

/** A pool in back-off sells nothing now, but its instances may have room. */
const inHeldRoom = (
  usable: readonly Offer[],
  make: MakeOption,
  { held, slotMs, input }: OptionContext,
): PlannedOption[] =>
  usable.flatMap(({ opens, ...offer }) =>
    opens !== undefined && held.has(offer.pool) ? make(offer, 0, slotMs[0] ?? input.snapshot.nowMs) : [],
  );

const isSpot = (offer: Offer, context: OptionContext): boolean => poolOf(offer, context)?.option === 'spot';
const nextPlanMs = ({ input: { snapshot, config } }: OptionContext): EpochMs =>
  plus(snapshot.nowMs, seconds(config.cyclePeriodS));

interface Waiting {
  readonly offer: Offer;
  readonly worth: Worth;
  /** USD per hour of a task on the cheapest capacity that stays. */
  readonly nonInterruptible: number;
  readonly left: Distribution | null;
}

/**
 * True if a group may wait for a pool in back-off. Work on on-demand can be put off at no cost while the deadline
 * allows: an hour later costs the same, and may turn out not to be needed. But returning from on-demand to spot takes
 * time too, once there and, after an interruption, once back: Wu et al., "Can't Be Late" (NSDI 2024), reserve as much,
 * 2d. Waiting into that reserve is a bet on a short outage:
 *   it ends within the remaining x:  saved are (R - r) x / 2, on average, and two changeovers d (R + r)
 *   it does not:                     lost is the way back later, (R - r) L less those changeovers
 * with R and r the rates of on-demand and spot, L the expected life of spot. The outage ends within k tries with k / (n
 * + 1 + k) after n refusals (rule of succession): young outages are waited out, old ones are not. The next plan decides
 * again, so the slack must last until then.
 */
function mayWaitFor({ offer, worth, nonInterruptible, left }: Waiting, { input }: OptionContext): boolean {
  const { config, snapshot } = input;
  const { cyclePeriodS, startDelayMaxS, restoreS } = config;
  const changeoverS = startDelayMaxS + restoreS;
  const guardedAfter = (s: number): boolean => isGuarded(worth, plus(snapshot.nowMs, seconds(s)), cyclePeriodS);
  if (!guardedAfter(cyclePeriodS + changeoverS + relocationS(config))) return true;
  if (guardedAfter(cyclePeriodS) || offer.opens === undefined || worth.latestSafeStartMs === null) return false;
  const spot = rateOf(offer);
  if (!(spot < nonInterruptible)) return false;
  const waitS = secondsBetween(snapshot.nowMs, worth.latestSafeStartMs) - (GUARD_CYCLES + 1) * cyclePeriodS;
  const tries = waitS / Math.max(1, secondsBetween(snapshot.nowMs, offer.opens.atMs) + cyclePeriodS);
  const pEnds = tries / (1 / offer.opens.p - 1 + tries);
  const changeoversUsd = changeoverS * (nonInterruptible + spot);
  const shortUsd = ((nonInterruptible - spot) * waitS) / 2 + changeoversUsd;
  const longUsd = Math.max(0, (nonInterruptible - spot) * expectedLifeS(offer, left) - changeoversUsd);
  return pEnds * shortUsd >= (1 - pEnds) * longUsd;
}

/** Time until an interruption or the end at a constant hazard that agrees with the offer's probability. */
function expectedLifeS({ pInterrupted, expectedDurationS }: Offer, left: Distribution | null): number {
  const leftS = raw(left === null ? expectedDurationS : mean(left));
  const p = Math.min(pInterrupted, 1 - 1e-9);
  return p < 1e-6 ? leftS : (leftS * p) / -Math.log1p(-p);
}

const rateOf = (offer: Offer): number => raw(offer.priceUsdPerHour) * offer.newShare;
const cheapestRate = (offers: readonly Offer[]): number =>
  offers.reduce((least, offer) => Math.min(least, rateOf(offer)), Infinity);

interface Appraised {
  readonly group: PendingGroup;
  readonly offer: Offer;
  readonly pool: Pool;
  readonly slot: number;
  readonly startMs: EpochMs;
  readonly worth: Worth;
  readonly left: Distribution | null;
  /** Cost of the task on the cheapest open offer; for offers whose pool is in back-off. */
  readonly elsewhereUsd: number;
  /** Cost of the task on the cheapest non-interruptible capacity. */
  readonly nonInterruptibleUsd: number;
}

/**
 * Expected price over price now. A lower price is waited for as long as the window is once: a fall that was promised
 * for every hour of a day would be waited for until the deadline is near.
 */
function laterFactor(
  { submittedMs }: PendingGroup,
  { pool, slot }: { readonly pool: Pool; readonly slot: number },
  { input: { snapshot, config }, priceFactor }: OptionContext,
): number {
  const factor = priceFactor(pool, slot);
  const hasWaited = secondsBetween(submittedMs, snapshot.nowMs) >= config.lookAheadSlots * config.slotS;
  return hasWaited ? Math.max(1, factor) : factor;
}

function plannedOption(a: Appraised, context: OptionContext): PlannedOption {
  const { offer, pool, slot, startMs, group } = a;
  const { slotS } = context.input.config;
  const there = offer.expectedCostUsd * laterFactor(group, { pool, slot }, context);
  const elsewhere = Number.isFinite(a.elsewhereUsd) ? a.elsewhereUsd : there;
  const costUsd = offer.opens === undefined ? there : offer.opens.p * there + (1 - offer.opens.p) * elsewhere;
  const left = a.left === null ? certain(offer.expectedDurationS) : slowed(a.left, offer.slowdown ?? 1);
  const worthUsd = expectedWorthOf(a, startMs, left, context.canFlee);
  const preferred = group.stage.preferences.reduce(
    (sum, p) => sum + (brokenConstraint(p.prefer, pool) === null ? p.weight : 0),
    0,
  );
  // Patience is for prices that may not fall; the risk that a pool stays closed is in the cost.
  const patience = offer.opens === undefined ? slot * PATIENCE_PER_SLOT : 0;
  const felt = costUsd * (1 - Math.min(preferred, 1) + patience) + (patience > 0 ? slackUsd(a, there, context) : 0);
  return {
    option: { group: group.id, offer, slot, startMs: offer.opens?.atMs ?? startMs, worthUsd, costUsd },
    pool,
    netUsd: worthUsd - felt,
    slots: Math.max(1, Math.ceil(ratio(add(offer.startDelayS, offer.expectedDurationS), seconds(slotS)) - 1e-9)),
  };
}

/**
 * Price of the slack that waiting uses up. Slack absorbs interruptions: without any, the remaining work runs on
 * non-interruptible capacity at its price; with all of it, on spot; in proportion between. So the awaited saving must
 * exceed P(interrupted) x extra cost of the task x share of the slack gone by then (Wu et al., "Can't Be Late", NSDI
 * 2024, keep slack for this). 0 without a deadline, and for non-interruptible capacity.
 */
function slackUsd(
  { worth, offer, startMs, nonInterruptibleUsd }: Appraised,
  there: number,
  { input }: OptionContext,
): number {
  const { latestSafeStartMs } = worth;
  if (latestSafeStartMs === null || !Number.isFinite(nonInterruptibleUsd)) return 0;
  const slackMs = msBetween(input.snapshot.nowMs, latestSafeStartMs);
  const gone = slackMs <= 0 ? 1 : Math.min(1, msBetween(input.snapshot.nowMs, startMs) / slackMs);
  return offer.pInterrupted * Math.max(0, nonInterruptibleUsd - there) * gone;
}

function expectedWorthOf(
  { worth, offer }: Pick<Appraised, 'worth' | 'offer'>,
  start: EpochMs,
  left: Distribution,
  canFlee: boolean,
): number {
  const fromMs = plus(start, offer.startDelayS);
  const undisturbedS = meanS(left);
  const p = offer.pInterrupted;
  const undisturbed = stretchedWorth(worth, { fromMs, left, factor: 1, late: 1 });
  const lateAnyway = lateShare(worth, fromMs, left);
  if (p <= 1e-9 || undisturbedS <= 0) return undisturbed;
  const disturbedS = (raw(offer.expectedDurationS) - (1 - p) * undisturbedS) / p;
  const factor = Math.max(1, disturbedS / undisturbedS);
  const late = canFlee ? Math.min(1, Math.max(0, offer.pLate - lateAnyway) / p) : 1;
  return (1 - p) * undisturbed + p * stretchedWorth(worth, { fromMs, left, factor, late });
}

/** Share of runs that miss the deadline without any interruption. */
function lateShare({ taskDeadlineMs }: Worth, fromMs: EpochMs, left: Distribution): number {
  const slackS = taskDeadlineMs === null ? Infinity : secondsBetween(fromMs, taskDeadlineMs);
  return left.atS.reduce((share, s, i) => (s > slackS ? share + (left.weight[i] ?? 0) : share), 0);
}

interface Stretch {
  readonly fromMs: EpochMs;
  readonly left: Distribution;
  /** Ratio of the stretched to the undisturbed running time. */
  readonly factor: number;
  /** Share of runs stretched past the deadline that really are late. */
  readonly late: number;
}

/**
 * E[curve(from + factor * T)] without building the stretched distribution. Runs that interruptions would carry past the
 * deadline flee to on-demand in time (deadline-guard.ts), except the offer's additional P(late) over an undisturbed
 * run's. With too few vCPUs they cannot flee.
 */
function stretchedWorth({ curve, taskDeadlineMs }: Worth, { left, factor, late, ...from }: Stretch): number {
  const fromMs = raw(from.fromMs);
  const deadlineMs = taskDeadlineMs === null ? Infinity : raw(taskDeadlineMs);
  let worth = 0;
  for (let i = 0; i < left.atS.length; i++) {
    const atMs = (left.atS[i] ?? 0) * 1000;
    const endMs = fromMs + atMs * factor;
    const flees = late < 1 && endMs > deadlineMs && fromMs + atMs <= deadlineMs;
    const stretched = worthAt(curve, epochMs(endMs));
    const usd = flees ? late * stretched + (1 - late) * worthAt(curve, epochMs(deadlineMs)) : stretched;
    worth += (left.weight[i] ?? 0) * usd;
  }
  return worth;
}

/**
 * Remaining running time with the checkpoint read first, as offers count it: else reading it would look like a cost of
 * interruptions.
 */
function leftToRun(group: PendingGroup, input: PlanInput): Distribution | null {
  const forecast = input.forecasts.runtime.get(`${group.job}/${group.stage.name}`);
  if (forecast === undefined) return null;
  const left = workToDo(forecast.runtime, group);
  const { restoreS } = input.config;
  return isPositive(group.keptS) ? { atS: left.atS.map((s) => s + restoreS), weight: left.weight } : left;
}

const poolOf = (offer: { readonly pool: PoolId }, context: OptionContext): Pool | undefined =>
  context.pools.get(offer.pool)?.pool;
