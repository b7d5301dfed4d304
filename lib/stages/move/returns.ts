/**
 * The way back: running work on on-demand that goes to spot because it pays.
 * Work is on on-demand because no spot could be had when it had to start, or because its deadline was near. Where there
 * is spot again and slack again, two strategies for the rest of the work are compared, in USD for a whole instance,
 * which costs the same as long as one task is left on it (under billing by the hour nothing, until the started one
 * ends):
 *   stay:  R t                                    R  price here, t time until its last task is done
 *   move:  r u + R (t - u) + r restore + R migration + q (R (start-up + restore) + R redone + lateness)
 *                                                 r  price of the spot machines that hold the same tasks
 * (migration: the longest stop of its tasks, move-cost.ts)
 *                                                 u  expected time until an interruption or the end, q = P(interrupted)
 * A visit to spot is taken to end with its first interruption, back on on-demand: what comes after is decided then. The
 * move must save HYSTERESIS of what staying costs, less when the spot instance is there already, so that a move that
 * was begun is finished. For work with a deadline the slack must hold both changeovers, the guard's margin included (Wu
 * et al., "Can't Be Late", NSDI 2024: R(t) >= C(t) + 2d), so that the deadline guard (deadline-guard.ts) cannot want it
 * back at once. Each move uses up slack that does not come back, or costs money that the forecast hazard must promise
 * to bring in: no flapping. Nor is a move begun that an appraisal of the same work as waiting would not choose
 * (lib/cycle/decide/decide.ts).
 * Gangs stay: they stop as a whole and start as a whole, and their spot pool may not have room for all of them.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { gte, plus, raw, seconds, secondsBetween, excess } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { meanS } from '../../domain/distribution.ts';
import { pInterruptedWithin, type InterruptionCurve } from '../../domain/forecast.ts';
import { startedHourEndMs, type Instance } from '../../domain/instance.ts';
import { type Pool, type PoolView, onDemandUsdOf } from '../../domain/pool.ts';
import { fits, machinesFor, plusResources, NO_RESOURCES, vector, type Resources } from '../../domain/resources.ts';
import { worthAt } from '../../domain/utility.ts';
import { workDoneS, workKeptS, type InstanceView, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import type { MoveUsd } from '../../domain/job.ts';
import { moveStopS } from '../../policy/move-cost.ts';
import { guardMoves, pLeftOver, restartOf } from './deadline-guard.ts';
import { byDollars } from './late-dollars.ts';
import { latePrice, lateUsd } from '../../policy/late-budget.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { DeadlineChoice, upFactorOf } from '../../policy/deadline-program/choice.ts';
import { lastRefusal } from '../../policy/deadline-program/spells.ts';
import { hasSettled, lossOf, relocationS, workLeft } from '../../policy/work-left.ts';

/**
 * Saving that a move to spot must bring, as a fraction of the cost of staying. Ours: well over the error of a day's
 * hazard forecast.
 */
export const HYSTERESIS = 0.1;
/** And in USD: below the cost of a minute on the smallest instance nothing is worth a restart. */
const LEAST_USD = 1e-4;

/** The deadline guard's moves, and those back to spot that pay. */
export function movesThatPay(input: DecisionContext): readonly Move[] {
  const guarded = guardMoves(input, byDollars);
  const returning = returnMoves(input);
  return returning.length === 0 ? guarded : [...guarded, ...returning].sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}

/** Attempts on on-demand that go to spot. O(instances on on-demand x spot pools), nothing without either. */
export function returnMoves(input: DecisionContext): readonly Move[] {
  const spot = input.snapshot.pools.filter((v) => v.pool.option === 'spot' && v.open && v.quote !== null);
  if (spot.length === 0) return [];
  const moves: Move[] = [];
  const idle = once(() => poolsWithIdle(input.snapshot));
  for (const view of input.snapshot.instances.values()) {
    if (view.pool.option !== 'on-demand' || view.instance.state !== 'ready' || view.attempts.length === 0) continue;
    if (!view.attempts.every((r) => mayReturn(r, input))) continue;
    if (!view.attempts.every((r) => paysByProgram(r, view, { spot, input }))) continue;
    const visit = bestVisit(view, { spot, idle }, input);
    if (visit === null) continue;
    const reason = reasonToReturn(view, visit);
    const expected = ofEach(visit, view.attempts.length);
    for (const running of view.attempts) {
      const { id: attempt } = running.attempt;
      moves.push({ attempt, reason, running, view, to: 'spot', ...expected, ...restartOf(running) });
    }
  }
  return moves;
}

/**
 * True if an attempt has the slack for a visit to spot: the way there, and the margin of its last safe start after it.
 */
export function mayReturn(running: RunningTask, input: DecisionContext): boolean {
  const { snapshot, worths, config } = input;
  if (running.attempt.state !== 'running' || running.stage.gang) return false;
  const worth = worths.ofRunning(running);
  if (worth === undefined || !hasSettled(running, input)) return false;
  const awayS = relocationS(config, moveStopS(running, config));
  return !isGuarded(worth, plus(snapshot.nowMs, seconds(awayS)), config.cyclePeriodS);
}

/**
 * True if the deadline program sends an attempt back to spot, on the cheapest pool for its instance; also where the
 * program has nothing to say. The slack is the one that is left after a cycle: the target has to start first.
 */
function paysByProgram(
  running: RunningTask,
  view: InstanceView,
  { spot, input }: { readonly spot: readonly PoolView[]; readonly input: DecisionContext },
): boolean {
  const { config, forecasts } = input;
  const worth = input.worths.ofRunning(running);
  const onDemandUsd = raw(view.pool.onDemandUsdPerHour);
  if (worth === undefined || worth.latestSafeStartMs === null || lossOf(running.stage) > 0) return true;
  const pools = cheapestFor(view, spot);
  const [cheapest] = pools;
  if (cheapest === undefined) return true;
  const left = workLeft(running, input);
  const meanUsd = forecasts.market.meanPrice?.(cheapest.pool, seconds(meanS(left))) ?? null;
  const rates = {
    spotUsd: Math.max(cheapest.usdPerHour, meanUsd === null ? 0 : cheapest.machines * raw(meanUsd)),
    onDemandUsd,
    pools: pools.length,
    upFactor: upFactorOf(cheapest.pool, forecasts.market, config),
  };
  const task = { worth, left, lateUsd: Infinity };
  const foundMs = lastRefusal(spot.filter(({ pool }) => pools.some((p) => p.pool.id === pool.id)));
  const knownS = secondsBetween(foundMs, input.snapshot.nowMs);
  const { action } = new DeadlineChoice(task, rates, input).onDemand(knownS, config.cyclePeriodS);
  return action === 'spot';
}

interface Visit {
  readonly pool: Pool;
  readonly stayUsd: number;
  readonly savedUsd: number;
  /** Expected loss by lateness after an interruption there; counted in what it saves. */
  readonly risksUsd: number;
  readonly pInterrupted: number;
  readonly there: boolean;
}

/** Spot pools that can be had now, and those with an instance that nothing runs on. */
interface Spot {
  readonly spot: readonly PoolView[];
  readonly idle: () => ReadonlySet<PoolId>;
}

/** An instance's dollars are shared by its tasks, because all of them go or none. */
const ofEach = ({ savedUsd, risksUsd }: Visit, tasks: number): Required<MoveUsd> => ({
  savedUsd: savedUsd / tasks,
  riskUsd: risksUsd / tasks,
});

function bestVisit(view: InstanceView, { spot, idle }: Spot, input: DecisionContext): Visit | null {
  let best: Visit | null = null;
  for (const candidate of cheapestFor(view, spot)) {
    const visit = visitTo(candidate, { view, idle }, input);
    if (visit !== null && (best === null || visit.savedUsd > best.savedUsd)) best = visit;
  }
  if (best === null) return null;
  const least = Math.max(LEAST_USD, best.there ? 0 : HYSTERESIS * best.stayUsd);
  return best.savedUsd <= least ? null : best;
}

const reasonToReturn = (view: InstanceView, { pool, savedUsd, stayUsd, pInterrupted }: Visit): string =>
  `going on in ${pool.id} is expected to save $${savedUsd.toPrecision(2)} of the $${stayUsd.toPrecision(2)} that the rest ` +
  `costs on ${view.pool.id}, moving, restarts and an interruption (${(100 * pInterrupted).toFixed(1)} %) counted`;

/** A spot pool that all of an instance's tasks may use, with their cost there now. */
interface Candidate {
  readonly pool: Pool;
  readonly machines: number;
  readonly usdPerHour: number;
}

/** Pools appraised in full per instance: the cheapest now. Dearer ones would have to be much safer to win. */
const MOST_CANDIDATES = 8;

function cheapestFor(view: InstanceView, spot: readonly PoolView[]): readonly Candidate[] {
  const limit = onDemandUsdOf(view.pool);
  return spot
    .flatMap(({ pool, quote }): Candidate[] => {
      if (quote === null || gte(quote, view.pool.onDemandUsdPerHour)) return [];
      if (view.attempts.some((r) => brokenConstraint(r.stage.constraints, pool) !== null)) return [];
      const machines = machinesToHold(view.attempts, pool);
      const usdPerHour = machines * raw(quote);
      return machines === 0 || usdPerHour >= limit ? [] : [{ pool, machines, usdPerHour }];
    })
    .sort((a, b) => a.usdPerHour - b.usdPerHour || (a.pool.id < b.pool.id ? -1 : 1))
    .slice(0, MOST_CANDIDATES);
}

function visitTo(
  { pool, machines, usdPerHour }: Candidate,
  { view, idle }: Pick<Spot, 'idle'> & { readonly view: InstanceView },
  input: DecisionContext,
): Visit | null {
  const { config, forecasts, snapshot } = input;
  const here = onDemandUsdOf(view.pool) / 3600;
  const stayS = longest(view.attempts, (r) => meanS(workLeft(r, input)));
  // An uncapped bid also rides through spikes, which the mean holds.
  const meanPrice = forecasts.market.meanPrice?.(pool, seconds(stayS)) ?? null;
  const there = Math.max(usdPerHour, meanPrice === null ? 0 : machines * raw(meanPrice)) / 3600;
  if (there >= here) return null;
  const redoneS = longest(view.attempts, (r) =>
    r.stage.checkpoint === null ? excess(workDoneS(r, snapshot.nowMs), workKeptS(r, snapshot.nowMs)) : 0,
  );
  const curve = forecasts.market.interruption(pool, 'uncapped');
  const visitS = stayS + redoneS + config.restoreS;
  const q = pInterruptedWithin(curve, seconds(visitS));
  const aliveS = expectedAliveS(curve, visitS);
  // Work lost to an interruption: none if the program saves at the warning, else half of the visit on average.
  const lostS = view.attempts.some((r) => r.stage.checkpoint === null) ? aliveS / 2 : 0;
  const usefulS = Math.max(0, aliveS - redoneS - config.restoreS);
  const back = q * here * (config.startDelayMeanS + config.restoreS + lostS);
  const stopS = longest(view.attempts, (r) => moveStopS(r, config));
  const way = here * stopS + there * (config.restoreS + config.startDelayMeanS + redoneS);
  const paidS = paidForS(view.instance, input);
  const awayS = Math.min(stayS, usefulS);
  const stayUsd = here * Math.max(0, stayS - paidS);
  const onDemandUsd = onDemandUsdOf(view.pool);
  const risksUsd = view.attempts.reduce((sum, r) => sum + lateUsdAfter(r, { onDemandUsd, pInterrupted: q }, input), 0);
  const savedUsd = stayUsd - here * (stayS - awayS) - there * awayS - back - way - risksUsd;
  return { pool, stayUsd, savedUsd, risksUsd, pInterrupted: q, there: idle().has(pool.id) };
}

/**
 * Risk of lateness in dollars, of work that goes to spot and loses something to an interruption there; 0 for work that
 * loses nothing, which the deadline program decides on. After an interruption what was lost is done again, on
 * on-demand. The price of lateness is that of waiting work, or the worth lost where a deadline must be met.
 */
function lateUsdAfter(
  running: RunningTask,
  { onDemandUsd, pInterrupted }: { readonly onDemandUsd: number; readonly pInterrupted: number },
  input: DecisionContext,
): number {
  const { snapshot, config, worths } = input;
  const worth = worths.ofRunning(running);
  const lossS = lossOf(running.stage);
  if (worth === undefined || worth.taskDeadlineMs === null || lossS === 0) return 0;
  const price = lateUsd(latePrice(snapshot.jobs.get(running.attempt.job), input), onDemandUsd);
  const awayS = relocationS(config, moveStopS(running, config));
  const lostUsd =
    worthAt(worth.curve, worth.taskDeadlineMs) - worthAt(worth.curve, plus(worth.taskDeadlineMs, seconds(awayS)));
  const spareS = secondsBetween(snapshot.nowMs, worth.taskDeadlineMs) - 2 * awayS;
  // Without a save the whole task is run again: what is left twice, and what was done.
  const overS = lossS === Infinity ? (spareS - raw(workDoneS(running, snapshot.nowMs))) / 2 : spareS - lossS;
  return pInterrupted * pLeftOver(running, overS, input) * (price === Infinity ? Math.max(0, lostUsd) : price);
}

/** Pools with an instance that takes tasks and has none. O(instances). */
const poolsWithIdle = (snapshot: Snapshot): ReadonlySet<PoolId> =>
  new Set(
    snapshot.instances
      .values()
      .flatMap((v) =>
        v.attempts.length === 0 && ['requested', 'starting', 'ready'].includes(v.instance.state) ? [v.pool.id] : [],
      ),
  );

/** Time for which staying is already paid: the rest of the started hour under per-hour billing. */
function paidForS({ launchedMs }: Instance, { config, snapshot }: DecisionContext): number {
  if (config.billing !== 'per-hour' || launchedMs === null) return 0;
  return secondsBetween(snapshot.nowMs, startedHourEndMs(launchedMs, snapshot.nowMs));
}

/**
 * Integral of the survival curve from 0 to `untilS`: expected time until an interruption, at most `untilS`. Midpoints.
 */
function expectedAliveS(curve: InterruptionCurve, untilS: number): number {
  const steps = 16;
  const step = untilS / steps;
  let alive = 0;
  for (let i = 0; i < steps; i++) alive += step * (1 - pInterruptedWithin(curve, seconds((i + 0.5) * step)));
  return alive;
}

/** Machines of the pool's type that hold all these tasks by the sum of their needs; 0 if one of them fits none. */
function machinesToHold(attempts: readonly RunningTask[], pool: Pool): number {
  const { capacity } = pool.type;
  if (!attempts.every((r) => fits(r.attempt.resources, capacity))) return 0;
  const sum = attempts.reduce<Resources>((n, r) => plusResources(n, r.attempt.resources), NO_RESOURCES);
  return Math.max(1, machinesFor(vector(sum), capacity));
}

const longest = (attempts: readonly RunningTask[], of: (r: RunningTask) => number): number =>
  attempts.reduce((most, r) => Math.max(most, of(r)), 0);
