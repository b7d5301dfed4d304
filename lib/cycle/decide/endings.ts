import type { GroupId, JobId } from '../../kernel/ids.ts';
import { gt, hoursIn, isoOf, least, lte, plus, raw, seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { meanToDo, quantileToDoS } from '../../domain/work-to-do.ts';
import { isEnding, type Job } from '../../domain/job.ts';
import type { UtilityCurve } from '../../domain/plan.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import { dominantShare } from '../../domain/resources.ts';
import { limitOf, type PendingGroup } from '../../domain/snapshot.ts';
import { worthAt } from '../../domain/utility.ts';
import type { Deliberation } from './deliberation.ts';
import { settleOrHold } from '../observe/observe.ts';
import { chargedS } from '../../market/billing.ts';
import { exitS, usdFor, usdText } from '../money/worst-cost.ts';
import type { WorkingState } from '../state/working-state.ts';

/** A job that cannot go on: none of its tasks runs or will ever start. It fails, for this reason. */
export interface Ending {
  readonly job: JobId;
  readonly reason: string;
  /** True if it was given up for being too late to be worth anything. */
  readonly late: boolean;
}

/**
 * Time for which a job waits for lower prices if its budget pays for none of the present ones, but for usual ones. A
 * day: over it best-effort work loses all of its worth that it can lose (lib/stages/value/jvusched.ts), and it covers
 * every hour of the day.
 */
export const BUDGET_PATIENCE_S: Seconds = seconds(86_400);

export interface EndingContext {
  readonly config: Pick<SchedulerConfig, 'slotS' | 'lookAheadSlots' | 'billing' | 'cyclePeriodS' | 'startDelayMaxS'>;
  /** End of the last attempt of a job with a budget; null: none. */
  readonly lastRanMs: (job: JobId) => EpochMs | null;
  /** Pools in which the preset may ever buy; absent: any. */
  readonly buys?: (pool: Pool) => boolean;
}

/**
 * Jobs that would wait for ever, by this cycle's decision:
 * - late: the deadline has passed, and finishing the waiting work is worth nothing now or later;
 * - budget: the spending and the least cost of the remaining work pass `maxCostUsd`. If only today's prices are too
 *   high, the job waits for lower ones: until its deadline, at most for BUDGET_PATIENCE_S since it last ran or was
 *   submitted.
 * O(groups), and O(pools x slots) for each group that a budget holds up.
 */
export function endingsOf(d: Deliberation, context: EndingContext): Ending[] {
  const groups = Map.groupBy(d.snapshot.groups, (g) => g.job);
  const overBudget = new Set<GroupId>(d.allotment.waits.flatMap((w) => (w.why === 'budget' ? [w.group] : [])));
  const started = startedGroups(d, overBudget);
  const backingOff = new Set<JobId>(d.snapshot.blocked.flatMap((b) => (b.why === 'backoff' ? [b.job] : [])));
  const standing = [...d.snapshot.jobs.values()].filter((job) => !job.stages.some((s) => s.running > 0));
  return standing.flatMap((job): Ending[] => {
    const mine = groups.get(job.id) ?? [];
    if (isEnding(job) || mine.some((g) => started.has(g.id))) return [];
    const late = tooLate(d, job, backingOff.has(job.id) ? [] : mine);
    if (late !== null) return [{ job: job.id, reason: late, late: true }];
    if (mine.length === 0 || !mine.every((g) => overBudget.has(g.id))) return [];
    const reason = unaffordable(d, { job, groups: mine }, context);
    return reason === null ? [] : [{ job: job.id, reason, late: false }];
  });
}

/** Ends jobs; jobs that depend on them follow in the next cycle. */
export function giveUp(state: WorkingState, endings: readonly Ending[], at: EpochMs): void {
  for (const { job: id, reason, late } of endings) {
    const job = state.jobs.get(id);
    if (job === undefined || job.doneMs !== undefined) continue;
    state.putJob({ ...job, stateReason: reason, ...(late ? { endedLate: true } : {}) });
    settleOrHold(state, id, at);
  }
}

/** `groups`: groups that could start now; empty if something waits for other reasons. */
function tooLate(d: Deliberation, job: Job, groups: readonly PendingGroup[]): string | null {
  const { nowMs } = d.snapshot;
  // Stages before the last lose their worth before the job does; a job is not given up before its deadline for that.
  if (job.deadlineMs === null || gt(job.deadlineMs, nowMs)) return null;
  const missed = `deadline missed: it was ${instant(job.deadlineMs)}`;
  const stated = job.spec.value.worthlessAfterS;
  const worthlessMs = stated === null ? null : plus(job.deadlineMs, stated);
  if (groups.length === 0) {
    // Work that waits for other reasons has no curve of its own yet; the user's value settings hold for it as well.
    if (worthlessMs === null || gt(worthlessMs, nowMs)) return null;
  } else if (!groups.every((g) => worthNothing(d.worths.groups.get(g.id)?.curve, nowMs))) return null;
  if (worthlessMs === null) return `${missed}, and finishing later is worth nothing`;
  if (lte(worthlessMs, nowMs))
    return `${missed}, and since ${instant(worthlessMs)} it is worth nothing (worthlessAfter)`;
  return `${missed}, and what is left cannot be done before ${instant(worthlessMs)}, when it is worth nothing (worthlessAfter)`;
}

/** Now and at any later time. */
function worthNothing(curve: UtilityCurve | undefined, nowMs: EpochMs): boolean {
  if (curve === undefined) return false;
  return worthAt(curve, nowMs) <= 0 && curve.points.every((p) => p.usd <= 0 || lte(p.atMs, nowMs));
}

function unaffordable(
  d: Deliberation,
  { job, groups }: { readonly job: Job; readonly groups: readonly PendingGroup[] },
  { config, lastRanMs, buys }: EndingContext,
): string | null {
  const { limitUsd, spentUsd } = limitOf(d.snapshot, job.id) ?? { limitUsd: 0, spentUsd: 0 };
  const pools = buys === undefined ? d.snapshot.pools : d.snapshot.pools.filter(({ pool }) => buys(pool));
  const of = { pools, config };
  const sharesUsd = groups.reduce((sum, g) => sum + g.count * leastTaskUsd(d, g, of), 0);
  const short = d.short.get(job.id);
  const neededUsd = short === undefined ? sharesUsd : Math.max(sharesUsd, leastInstanceUsd(d, groups, of));
  const guessed = groups.some((g) => d.forecasts.runtime.get(`${g.job}/${g.stage.name}`)?.basis === 'prior');
  const facts =
    `${usdText(spentUsd)} spent, at least ${usdText(short === undefined ? neededUsd : Math.max(neededUsd, short.neededUsd))} needed for what waits` +
    `${guessed ? ' (its running time is a guess: give expectedRuntime)' : ''}, limit ${usdText(limitUsd)}; ` +
    'raise maxCost and submit it again';
  if (spentUsd + neededUsd > limitUsd + 1e-9) return `its budget does not pay for it: ${facts}`;
  const patienceMs = plus(lastRanMs(job.id) ?? job.submittedMs, BUDGET_PATIENCE_S);
  const untilMs = job.deadlineMs === null ? patienceMs : least(patienceMs, job.deadlineMs);
  if (gt(untilMs, d.snapshot.nowMs)) return null;
  const waited = untilMs === patienceMs ? `within ${hoursIn(BUDGET_PATIENCE_S)} h` : 'by its deadline';
  return `its budget does not pay for it, and prices did not fall enough ${waited}: ${facts}`;
}

/** Pools in which the preset may buy. */
interface Priced extends Pick<EndingContext, 'config'> {
  readonly pools: readonly PoolView[];
}

/**
 * Lower bound of the cost of one task of a group, US dollars: by the offers, and by the lowest price of any allowed
 * pool, open or not, now, on average or by expectation within the look-ahead. It lies below the costs in any plan,
 * because a job is given up only if even this is too much.
 */
function leastTaskUsd(d: Deliberation, group: PendingGroup, { pools, config }: Priced): number {
  const forecast = d.forecasts.runtime.get(`${group.job}/${group.stage.name}`);
  const offers = d.offers.get(group.id);
  let leastUsd = Infinity;
  for (const o of [...(offers?.offers ?? []), ...(offers?.considered ?? [])]) {
    leastUsd = Math.min(leastUsd, o.expectedCostUsd);
  }
  const hours = forecast === undefined ? 0 : meanToDo(forecast.runtime, group) / 3600;
  for (const view of pools) {
    const share = dominantShare(group.need, view.pool.type.capacity);
    if (share > 1 || brokenConstraint(group.stage.constraints, view.pool) !== null) continue;
    leastUsd = Math.min(leastUsd, share * hours * lowestPrice(d, view, config));
  }
  return leastUsd === Infinity ? 0 : leastUsd;
}

/**
 * Lower bound of the cost of an instance for one task of the groups, start-up and rounding of bills included; 0 if a
 * live instance may take it.
 */
function leastInstanceUsd(d: Deliberation, groups: readonly PendingGroup[], { pools, config }: Priced): number {
  const may = (g: PendingGroup, pool: Pool): boolean =>
    dominantShare(g.need, pool.type.capacity) <= 1 && brokenConstraint(g.stage.constraints, pool) === null;
  for (const { pool } of d.snapshot.instances.values()) if (groups.some((g) => may(g, pool))) return 0;
  let leastUsd = Infinity;
  for (const view of pools) {
    for (const g of groups) {
      const forecast = d.forecasts.runtime.get(`${g.job}/${g.stage.name}`);
      if (forecast === undefined || !may(g, view.pool)) continue;
      const heldS = config.startDelayMaxS + Math.max(exitS([g.stage], config), quantileToDoS(forecast.runtime, g, 0.5));
      leastUsd = Math.min(leastUsd, usdFor(chargedS(heldS, config), lowestPrice(d, view, config)));
    }
  }
  return leastUsd === Infinity ? 0 : leastUsd;
}

/** Groups with starts or purchases. A group held up by its limit has a start in the plan, and no placement. */
function startedGroups(d: Deliberation, overBudget: Set<GroupId>): ReadonlySet<GroupId> {
  const placed = new Set<GroupId>();
  if (d.short.size > 0) {
    for (const { group } of [...d.placements, ...d.reserved]) placed.add(group);
    for (const group of [...d.forSlotReuse.keys(), ...d.untold.keys()]) placed.add(group);
    for (const { leftover } of d.lots.flat().flatMap((lot) => lot.taken)) placed.add(leftover.group.id);
  }
  const started = new Set<GroupId>();
  const jobOf = new Map(d.short.size === 0 ? [] : d.snapshot.groups.map((g) => [g.id, g.job]));
  for (const { option } of d.allotment.starts) {
    const job = jobOf.get(option.group);
    if (job === undefined || !d.short.has(job) || placed.has(option.group)) started.add(option.group);
    else overBudget.add(option.group);
  }
  return started;
}

/** US dollars per hour. */
function lowestPrice(d: Deliberation, { pool, quote }: PoolView, config: EndingContext['config']): number {
  const { market } = d.forecasts;
  const known = [quote, market.meanPrice?.(pool) ?? null];
  for (let slot = 1; slot < config.lookAheadSlots; slot++) {
    known.push(market.expectedPrice(pool, plus(d.snapshot.nowMs, seconds(slot * config.slotS))));
  }
  const prices = known.filter((price) => price !== null);
  return raw(prices.length === 0 ? pool.onDemandUsdPerHour : prices.reduce(least));
}

/** `2026-01-05 12:00 UTC`, in the market's time. */
const instant = (at: EpochMs): string => `${isoOf(at).slice(0, 16).replace('T', ' ')} UTC`;
