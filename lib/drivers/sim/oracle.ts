/**
 * The `oracle` preset: decisions with knowledge of every running time and every pool's capacity. Only a simulator can
 * make it, from the truth of its run; it is no preset of the registry, and no other preset gets the truth.
 * Each task with a deadline follows its own cheapest strategy (offline.ts), as if it were alone: a bound for other
 * presets if the vCPU limit does not bind. Tasks share machines as in `ebbtide`, which the strategies ignore, so with
 * many small tasks it is a good policy and no strict bound. Strategies change pools as if all work were saved; so a
 * task without checkpoints takes only spot that lasts until it is done, and stays there. Work without a deadline waits
 * for spot for a day at most.
 */
import { appraise } from '../../stages/appraise/appraise.ts';
import { moving } from '../../stages/move/moves.ts';
import { scaling, type Acquire } from '../../stages/scale/acquire.ts';
import { cheapestSpot } from '../../stages/scale/cheapest-spot.ts';
import { releaseIdle } from '../../stages/scale/release.ts';
import { presetNamed } from '../../stages/registry.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { distribution, type Distribution } from '../../domain/distribution.ts';
import { NEVER_INTERRUPTED, type Offer } from '../../domain/forecast.ts';
import type { StageSpec } from '../../domain/job.ts';
import { bidNumber, type Pool, onDemandUsdOf } from '../../domain/pool.ts';
import { countFits, fits } from '../../domain/resources.ts';
import {
  membersOf,
  workDoneS,
  type InstanceView,
  type PendingGroup,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import {
  withOffers,
  type AppraisePolicy,
  type DecisionContext,
  type Move,
  type EstimatePolicy,
  type GroupOffers,
  type Host,
  type PlacePolicy,
  type PlanPolicy,
  type TaskToPlace,
} from '../../policy/contracts.ts';
import { forecastStages } from '../../stages/estimate/stage-forecasts.ts';
import type { GroupId, InstanceId, JobId } from '../../kernel/ids.ts';
import {
  FOREVER,
  add,
  epochMs,
  gte,
  most,
  plus,
  raw,
  seconds,
  secondsBetween,
  usdPerHour,
  type EpochMs,
  excess,
} from '../../kernel/units.ts';
import { availableAt, indexAt, priceAt } from '../../market/price-steps.ts';
import { hasSpot, strategyPlan, type Choice } from '../../stages/plan/strategy.ts';
import { OfflineStrategy, type On } from './offline.ts';
import type { Deciders } from './simulation.ts';
import type { Truth } from './truth.ts';

export const ORACLE_ABOUT = 'true running times and future interruptions: the bound, in simulations only';

/** Time for which work without a deadline waits for spot. */
const PATIENCE_S = 86_400;
/** Memory of cached strategies: one takes 25 MB for hours of work, less than one for minutes. */
const MOST_BYTES = 512 * 2 ** 20;
/**
 * Deadlines of inner stages move by seconds as tasks end; a strategy is for the earliest deadline within this width.
 */
const ALIKE_S = 60;
/** Points of a stage's distribution of true running times. */
const MOST_POINTS = 32;

export function oracle(truth: Truth): Deciders {
  const strategies = new Strategies(truth);
  const { stages: ebbtide } = presetNamed('ebbtide');
  const open = (snapshot: Snapshot): Snapshot => openNow(snapshot, truth);
  const seeing: AppraisePolicy = (context) => {
    const { snapshot, config } = context;
    return lasting(appraise({ ...context, snapshot: open(snapshot) }), { snapshot, config, truth });
  };
  const acquire: Acquire = (input) => cheapestSpot({ ...input, snapshot: open(input.snapshot) });
  const planned = strategyPlan((group, input) => strategies.pending(group, input));
  const plan: PlanPolicy<unknown> = (input, solver) => planned({ ...input, snapshot: open(input.snapshot) }, solver);
  const place: PlacePolicy = (tasks, hosts, context) =>
    ebbtide.place(whereTheyLast(tasks, { ...context, truth }), hosts, context);
  return {
    name: 'oracle',
    stages: {
      ...ebbtide,
      estimate: trueRuntimes(truth),
      appraise: seeing,
      move: moving((context) => followedMoves(strategies, context)),
      plan,
      place,
      scale: scaling(acquire, releaseIdle),
    },
    forecast: () => trueForecast(truth),
  };
}

/** Running work that its cheapest strategy has elsewhere now. */
function followedMoves(strategies: Strategies, { snapshot, config, worths }: DecisionContext): readonly Move[] {
  const moves = snapshot.running.flatMap((running) => {
    const view = snapshot.instances.get(running.attempt.instance);
    if (view === undefined || running.attempt.state !== 'running') return [];
    const deadlineMs = worths.ofRunning(running)?.taskDeadlineMs ?? null;
    return strategies.running(running, view, { nowMs: snapshot.nowMs, config, deadlineMs }) ?? [];
  });
  return moves.sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}

/** Pools that a launch would get now, and capacity that stays. Nothing has to be tried. */
function openNow(snapshot: Snapshot, { capacity }: Truth): Snapshot {
  const pools = snapshot.pools
    .filter(({ pool }) => pool.option !== 'spot' || capacity.launch(pool.id, snapshot.nowMs, 'uncapped') === 'ok')
    .map(({ pool, quote }) => ({ pool, quote, open: true, closedReason: null }));
  return { ...snapshot, pools };
}

interface Picture {
  readonly snapshot: Snapshot;
  readonly config: SchedulerConfig;
  readonly truth: Truth;
}

/** Offers without the spot ones whose instance is taken before a task without checkpoints is done. */
function lasting(
  offers: ReadonlyMap<GroupId, GroupOffers>,
  { snapshot, config, truth }: Picture,
): ReadonlyMap<GroupId, GroupOffers> {
  const kept = new Map(offers);
  const takenMs = whenTaken(snapshot.nowMs, truth);
  for (const group of snapshot.groups) {
    const all = offers.get(group.id);
    if (all === undefined || group.stage.checkpoint !== null) continue;
    const longestS = longestOf(group, truth);
    const doneMs = plus(snapshot.nowMs, seconds(config.startDelayMaxS + setupOf(truth) + longestS));
    const lasts = (offer: Offer): boolean => gte(takenMs(offer), doneMs);
    kept.set(group.id, withOffers(all, all.offers.filter(lasts)));
  }
  return kept;
}

/**
 * Time of the interruption notice for a purchase now, by offer: looked up once for all groups, in a trace of many
 * prices.
 */
function whenTaken(nowMs: EpochMs, { capacity }: Truth): (offer: Pick<Offer, 'pool' | 'bid'>) => EpochMs {
  const known = new Map<string, EpochMs>();
  return ({ pool, bid }) => {
    const key = `${pool} ${bidNumber(bid)}`;
    let takenMs = known.get(key);
    if (takenMs === undefined) {
      takenMs = capacity.interruption(pool, nowMs, bid)?.warnMs ?? FOREVER;
      known.set(key, takenMs);
    }
    return takenMs;
  };
}

/**
 * Keeps tasks without checkpoints off instances that are taken before they are done. A live instance was bought at
 * another time, and maybe at a lower bid, than the appraised offer.
 */
function whereTheyLast(tasks: readonly TaskToPlace[], { snapshot, config, truth }: Picture): readonly TaskToPlace[] {
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const takenMs = new Map<InstanceId, EpochMs>();
  const lasts = (host: Host, group: PendingGroup): boolean => {
    const view = snapshot.instances.get(host.on);
    if (view === undefined || view.pool.option !== 'spot') return true;
    const { id, pool, bid, launchedMs, requestedMs, readyMs } = view.instance;
    let until = takenMs.get(id);
    if (until === undefined) {
      until = truth.capacity.interruption(pool, launchedMs ?? requestedMs, bid)?.warnMs ?? FOREVER;
      takenMs.set(id, until);
    }
    const { nowMs } = snapshot;
    const upMs = most(nowMs, readyMs ?? plus(nowMs, seconds(config.startDelayMaxS)));
    return gte(until, plus(upMs, seconds(setupOf(truth) + longestOf(group, truth))));
  };
  // Tasks that share who is allowed go on sharing it: packers count on that.
  const shared = new Map<TaskToPlace['allowed'], TaskToPlace['allowed']>();
  return tasks.map((task) => {
    const group = groups.get(task.group);
    if (group === undefined || group.stage.checkpoint !== null) return task;
    let allowed = shared.get(task.allowed);
    if (allowed === undefined) shared.set(task.allowed, (allowed = (host) => task.allowed(host) && lasts(host, group)));
    return { ...task, allowed };
  });
}

const setupOf = ({ setupS }: Truth): number => raw(setupS);

/** Time scale of strategies: seconds since 1970. */
const secondOf = (t: EpochMs): number => raw(t) / 1000;

/** Running time of the longest task of a group. */
function longestOf(group: PendingGroup, truth: Truth): number {
  const runtimes = truth.runtimesS(group.job, group.stage.name);
  return membersOf(group).reduce((longest, i) => Math.max(longest, runtimes[i] ?? 0), 0);
}

/** Running times with the set-up of one attempt, as a user would give them. */
const trueRuntimes =
  (truth: Truth): EstimatePolicy =>
  ({ snapshot }) =>
    forecastStages(snapshot, (job, stage) => ({
      runtime: thinned(truth.runtimesS(job.id, stage.name), setupOf(truth)),
      basis: 'history',
      reason: 'the true running times',
    }));

function thinned(runtimeS: Float64Array, setupS: number): Distribution {
  const sorted = Float64Array.from(runtimeS).sort();
  const points = Math.min(MOST_POINTS, sorted.length);
  return distribution(
    Array.from({ length: points }, (_, i) => {
      const at = points === 1 ? sorted.length - 1 : Math.round((i * (sorted.length - 1)) / (points - 1));
      return [(sorted[at] ?? 0) + setupS, 1] as const;
    }),
  );
}

/**
 * Forecast without risk: the plan itself knows each interruption, and no other stage may keep work from a pool for its
 * risk.
 */
const trueForecast = ({ trace }: Truth): MarketForecast => ({
  interruption: () => NEVER_INTERRUPTED,
  expectedPrice: (pool, at) => {
    if (pool.option !== 'spot') return pool.onDemandUsdPerHour;
    const price = priceAt(trace.prices(pool.id), at);
    return price === null ? null : usdPerHour(price);
  },
  correlation: () => 0,
});

interface Wanted {
  readonly job: JobId;
  readonly stage: StageSpec;
  readonly nowMs: EpochMs;
  readonly deadlineMs: EpochMs;
  readonly config: SchedulerConfig;
}

class Strategies {
  readonly #truth: Truth;
  readonly #known = new Map<string, OfflineStrategy>();
  #bytes = 0;

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  pending(group: PendingGroup, input: Parameters<PlanPolicy<unknown>>[0]): Choice {
    const { nowMs } = input.snapshot;
    const deadlineMs = input.worths.groups.get(group.id)?.taskDeadlineMs ?? null;
    if (deadlineMs === null) {
      if (hasSpot(group, input)) return { take: 'spot', why: 'a spot pool has capacity' };
      const waitedS = secondsBetween(group.submittedMs, nowMs);
      return waitedS < PATIENCE_S
        ? { take: 'wait', why: 'no spot pool has capacity now' }
        : { take: 'on-demand', why: 'it has waited for a day' };
    }
    const wanted = { job: group.job, stage: group.stage, nowMs, deadlineMs, config: input.config };
    // The saved part includes the first set-up; a strategy counts the next one as its changeover.
    const keptS = Math.max(0, raw(group.keptS) - setupOf(this.#truth));
    const leftS = Math.max(0, longestOf(group, this.#truth) - keptS);
    const best = this.#of(wanted).best(secondOf(nowMs), leftS, 'nowhere');
    if (best === 'spot' && hasSpot(group, input))
      return { take: 'spot', why: 'the cheapest strategy goes on spot now' };
    return best === 'nowhere'
      ? { take: 'wait', why: 'the cheapest strategy waits for spot' }
      : { take: 'on-demand', why: 'the cheapest strategy needs on-demand now' };
  }

  running(
    running: RunningTask,
    view: InstanceView,
    of: Pick<Wanted, 'nowMs' | 'config'> & { readonly deadlineMs: EpochMs | null },
  ): Move | null {
    const { attempt, stage } = running;
    const on: On = view.pool.option === 'spot' ? 'spot' : 'non-interruptible';
    if (of.deadlineMs === null || stage.gang || stage.checkpoint === null || view.pool.option === 'reserved')
      return null;
    if (view.instance.state !== 'ready') return null;
    const wanted = { ...of, deadlineMs: of.deadlineMs, job: attempt.job, stage };
    const runtimeS = this.#truth.runtimeS(attempt.job, attempt.stage, attempt.index);
    const leftS = excess(add(runtimeS, this.#truth.setupS), workDoneS(running, of.nowMs));
    const best = this.#of(wanted).best(secondOf(of.nowMs), leftS, on);
    if (best === 'nowhere' || best === on) return null;
    const reason = `its cheapest strategy goes on on ${best === 'spot' ? 'spot' : 'on-demand'} now`;
    return { attempt: attempt.id, reason, running, view, ...(best === 'spot' ? { to: 'spot' as const } : {}) };
  }

  #of(w: Wanted): OfflineStrategy {
    // The cost of a strategy depends only on the work left, so tasks of a stage share theirs.
    const deadlineS = Math.floor(secondOf(w.deadlineMs) / ALIKE_S) * ALIKE_S;
    const key = `${w.job}/${w.stage.name}/${deadlineS}`;
    const { startDelayMaxS, restoreS, cyclePeriodS } = w.config;
    let strategy = this.#known.get(key);
    if (strategy === undefined) {
      strategy = new OfflineStrategy({
        fromS: secondOf(w.nowMs),
        // A strategy is followed from cycle to cycle, a cycle may pass before a changeover begins, and spot offers that
        // leave no time for a start on on-demand are never taken (appraise.ts).
        deadlineS: deadlineS - 2 * cyclePeriodS - startDelayMaxS - restoreS,
        workS: this.#truth.runtimesS(w.job, w.stage.name).reduce((longest, s) => Math.max(longest, s), 0),
        changeoverS: setupOf(this.#truth) + startDelayMaxS,
        ...this.#pricesFor(w.stage),
      });
      this.#bytes += strategy.bytes;
    }
    this.#known.delete(key);
    this.#known.set(key, strategy);
    for (const [oldest, known] of this.#known) {
      if (this.#bytes <= MOST_BYTES || known === strategy) break;
      this.#known.delete(oldest);
      this.#bytes -= known.bytes;
    }
    return strategy;
  }

  #pricesFor(stage: StageSpec) {
    const { trace } = this.#truth;
    const suited = trace.pools.filter(
      (pool) => fits(stage.resources, pool.type.capacity) && brokenConstraint(stage.constraints, pool) === null,
    );
    // An instance that other work does not fill is paid for as a whole: tasks of the stage share it.
    const perS = (pool: Pool, usd: number): number =>
      usd / Math.max(1, Math.min(stage.tasks, countFits(stage.resources, pool.type.capacity))) / 3600;
    const nonInterruptible = suited
      .filter((p) => p.option === 'on-demand')
      .reduce((least, p) => Math.min(least, perS(p, onDemandUsdOf(p))), Infinity);
    const spot = suited.filter((p) => p.option === 'spot');
    return {
      nonInterruptibleUsdPerS: nonInterruptible === Infinity ? null : nonInterruptible,
      spotUsdPerS: (fromS: number, untilS: number): number | null => {
        let least = Infinity;
        for (const pool of spot) {
          const price = priceAt(trace.prices(pool.id), epochMs(fromS * 1000));
          if (price !== null && perS(pool, price) < least && this.#lasts(pool, fromS * 1000, untilS * 1000)) {
            least = perS(pool, price);
          }
        }
        return least === Infinity ? null : least;
      },
    };
  }

  #lasts(pool: Pool, fromMs: number, untilMs: number): boolean {
    const steps = this.#truth.trace.availability(pool.id);
    if (steps === null) return true;
    if (!availableAt(steps, fromMs)) return false;
    for (let i = indexAt(steps.atMs, fromMs) + 1; i < steps.atMs.length && (steps.atMs[i] ?? 0) < untilMs; i++) {
      if (steps.available[i] === 0) return false;
    }
    return true;
  }
}
