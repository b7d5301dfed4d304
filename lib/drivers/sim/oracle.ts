/**
 * The `oracle` preset: decisions with knowledge of every running time and every pool's capacity. Only a simulator can
 * make it, from the truth of its run; it is no preset of the registry, and no other preset gets the truth.
 * Each task with a deadline follows its own cheapest strategy (strategies.ts), as if it were alone, in the pool that
 * the strategy names. Tasks share machines as in `ebbtide`; strategies count equal shares of a stage's machines. So it
 * is a good policy and no bound: reference/lower-bound.ts is one. A task without checkpoints takes only spot that lasts
 * until it is done, and stays there. Work without a deadline waits for spot for a day at most.
 */
import { appraise } from '../../stages/appraise/appraise.ts';
import { moving } from '../../stages/move/moves.ts';
import { scaling, type Acquire } from '../../stages/scale/acquire.ts';
import { cheapestSpot } from '../../stages/scale/cheapest-spot.ts';
import { releaseIdle } from '../../stages/scale/release.ts';
import { presetNamed } from '../../stages/registry.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { distribution, type Distribution } from '../../domain/distribution.ts';
import { NEVER_INTERRUPTED, type Offer } from '../../domain/forecast.ts';
import { bidNumber, isSpotPool } from '../../domain/pool.ts';
import type { PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import {
  withOffers,
  type AppraiseContext,
  type AppraisePolicy,
  type DecisionContext,
  type EstimatePolicy,
  type GroupOffers,
  type Host,
  type Move,
  type PlacePolicy,
  type PlanPolicy,
  type TaskToPlace,
} from '../../policy/contracts.ts';
import { forecastStages } from '../../stages/estimate/stage-forecasts.ts';
import type { GroupId, InstanceId } from '../../kernel/ids.ts';
import { FOREVER, gte, most, plus, seconds, usdPerHour, type EpochMs } from '../../kernel/units.ts';
import { priceAt } from '../../market/price-steps.ts';
import { strategyPlan } from '../../stages/plan/strategy.ts';
import type { Deciders } from './simulation.ts';
import { longestOf, setupOf, Strategies } from './strategies.ts';
import type { Truth } from './truth.ts';

export const ORACLE_ABOUT = 'true running times and future interruptions, in simulations only';

/** Offers of a group: the most that the setting allows. */
const MOST_OFFERS = 64;
/** Points of a stage's distribution of true running times. */
const MOST_POINTS = 32;

export function oracle(truth: Truth): Deciders {
  const strategies = new Strategies(truth);
  const { stages: ebbtide } = presetNamed('ebbtide');
  const open = (snapshot: Snapshot): Snapshot => openNow(snapshot, truth);
  const seeing: AppraisePolicy = (context) => {
    const { snapshot } = context;
    const config = withoutMargins(context.config);
    const picture = { snapshot, config, truth };
    const offers = lasting(appraise({ ...context, config, snapshot: open(snapshot) }), picture);
    return inTheirPools(strategies, offers, { ...context, truth });
  };
  const acquire: Acquire = (input) => cheapestSpot({ ...input, snapshot: open(input.snapshot) });
  const planned = strategyPlan((group, input) => strategies.pending(group, input));
  const plan: PlanPolicy<unknown> = (input, solver) =>
    planned({ ...input, config: withoutMargins(input.config), snapshot: open(input.snapshot) }, solver);
  const place: PlacePolicy = (tasks, hosts, context) =>
    ebbtide.place(whereTheyLast(tasks, { ...context, truth, strategies }), hosts, context);
  return {
    name: 'oracle',
    stages: {
      ...ebbtide,
      estimate: trueRuntimes(truth),
      value: (context) => ebbtide.value({ ...context, config: withoutMargins(context.config) }),
      appraise: seeing,
      move: moving((context) => followedMoves(strategies, context)),
      plan,
      place,
      scale: scaling(acquire, releaseIdle),
    },
    forecast: () => trueForecast(truth),
  };
}

/**
 * Settings for policies that keep room for what they cannot know. A strategy counts each changeover itself, and its
 * pool may not be among the cheapest few.
 */
const withoutMargins = (config: SchedulerConfig): SchedulerConfig => ({
  ...config,
  offersPerGroup: MOST_OFFERS,
  restoreS: 0,
});

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

/**
 * As many of the cheapest offers as the setting says, and those of the pool that the group's strategy takes. Where that
 * has one, spot that is taken before the work is done is left out; pools that last are as good, and other work may
 * share their instances.
 */
function inTheirPools(
  strategies: Strategies,
  offers: ReadonlyMap<GroupId, GroupOffers>,
  context: AppraiseContext & Picture,
): ReadonlyMap<GroupId, GroupOffers> {
  const { snapshot, config, truth } = context;
  const kept = new Map(offers);
  const takenMs = whenTaken(snapshot.nowMs, truth);
  for (const group of snapshot.groups) {
    const all = offers.get(group.id);
    if (all === undefined) continue;
    const pool = strategies.choose(group, context);
    const isBound = pool !== null && all.offers.some((o) => o.pool === pool);
    const neededS = config.startDelayMaxS + setupOf(truth) + longestOf(group, truth);
    const doneMs = plus(snapshot.nowMs, seconds(neededS));
    const suits = (o: Offer, rank: number): boolean =>
      o.pool === pool || !isSpotPool(o.pool) || (rank < config.offersPerGroup && (!isBound || gte(takenMs(o), doneMs)));
    kept.set(group.id, withOffers(all, all.offers.filter(suits)));
  }
  return kept;
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
 * Keeps tasks off instances that are taken before they are done, unless they save their state and the instance is in
 * the pool of their strategy. A live instance was bought at another time, and maybe at a lower bid, than the appraised
 * offer.
 */
function whereTheyLast(
  tasks: readonly TaskToPlace[],
  { snapshot, config, truth, strategies }: Picture & { readonly strategies: Strategies },
): readonly TaskToPlace[] {
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const takenMs = new Map<InstanceId, EpochMs>();
  const lasts = (host: Host, group: PendingGroup): boolean => {
    const view = snapshot.instances.get(host.on);
    if (view === undefined || view.pool.option !== 'spot') return true;
    const { id, pool, bid, launchedMs, requestedMs, readyMs } = view.instance;
    if (group.stage.checkpoint !== null && pool === strategies.chosen(group.id)) return true;
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
    if (group === undefined || (group.stage.checkpoint !== null && strategies.chosen(group.id) === null)) return task;
    let allowed = shared.get(task.allowed);
    if (allowed === undefined) shared.set(task.allowed, (allowed = (host) => task.allowed(host) && lasts(host, group)));
    return { ...task, allowed };
  });
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
