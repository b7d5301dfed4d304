/**
 * Reads of answers from users' policies: the contract of each stage, field by field. Plans, moves and starts have files
 * of their own. Each read gives a plain copy of a usable answer, in which records that the policy was given are the
 * very records of the cycle. Each throws `Unusable` (read.ts) with the first fault, for people. Decisions are not
 * judged. Linear in the size of the answer and of the snapshot's lists; no answer is read beyond what its input can
 * call for.
 */
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import { raw, seconds } from '../../kernel/units.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { StageKey } from '../../domain/forecasts.ts';
import type { Purchase, Release, UtilityCurve, Worth } from '../../domain/plan.ts';
import { isBid, vcpusOf, type Bid } from '../../domain/pool.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type {
  AppraiseContext,
  Copy,
  DecisionContext,
  Leftover,
  ScaleInput,
  Scaling,
  ValueContext,
  Worths,
} from '../contracts.ts';
import { wrongCopy } from '../copies.ts';
import { bidIn, offersByGroup, poolNamed, poolsById, whyNotIn, type Pools, type ReadOffers } from './offers.ts';
import {
  amount,
  answerWith,
  fields,
  figure,
  instant,
  list,
  oneOf,
  orNull,
  refuse,
  shown,
  text,
  whole,
} from './read.ts';
import { byGroup, expectAll, groupsById, once, reasonOf, targetOf } from './records.ts';

/** Points of a distribution or curve; those of shipped policies have a few dozen. */
const MOST_POINTS = 4096;
/** Longest running time, seconds: three centuries. */
const LONGEST_S = 1e10;
/** Weights are sums of rounded parts. */
const OF_WEIGHT = 1e-6;
/** Most bids asked about in one pool. */
const MOST_BIDS = 100;
/** Most vCPUs that are no vCPU: sums of thousandths. */
const OF_VCPU = 1e-6;
/** Most instances of one answer, where fewer tasks need a place. */
const MOST_BOUGHT = 10_000;

export const bids = (answer: unknown): readonly Bid[] =>
  list(answer, { what: 'the answer of `asks.bids`', most: MOST_BIDS }).map((bid) =>
    isBid(bid as Bid) ? (bid as Bid) : refuse(`\`asks.bids\` answers the bid ${shown(bid)}`),
  );

export const truth =
  (what: string) =>
  (answer: unknown): boolean =>
    typeof answer === 'boolean' ? answer : refuse(`${what} answers neither true nor false`);

/** Forecasts are read when they are asked for. */
export const estimate = (made: unknown): { readonly get: (key: StageKey) => unknown } => {
  const of = made as { readonly get: (key: StageKey) => unknown } | null | undefined;
  if (typeof of?.get === 'function') return of;
  return refuse('the answer has no `get`: it must be a map of forecasts by stage');
};

export function runtime(forecast: unknown, key: StageKey): RuntimeForecast {
  if (forecast === undefined) return refuse(`no forecast for the stage ${key}`);
  const at = `the forecast for ${key}`;
  const of = fields(forecast, at);
  const { atS, weight } = fields(of['runtime'], `the running time of ${at}`);
  if (!(atS instanceof Float64Array) || !(weight instanceof Float64Array) || atS.length !== weight.length)
    return refuse(`${at} has no distribution: make one with kit.distribution`);
  if (atS.length === 0 || atS.length > MOST_POINTS) return refuse(`${at} has ${atS.length} points`);
  const copy = { atS: atS.slice(), weight: weight.slice() };
  let sum = 0;
  copy.atS.forEach((s, i) => {
    const w = copy.weight[i] ?? 0;
    sum += w;
    if (!(s >= 0 && s <= LONGEST_S)) refuse(`${at} has a running time of ${s} s`);
    if (i > 0 && !(s > (copy.atS[i - 1] ?? 0))) refuse(`${at} has running times that do not ascend`);
    if (!(w > 0)) refuse(`${at} has a weight that is no number above 0: ${w}`);
  });
  if (!(Math.abs(sum - 1) <= OF_WEIGHT)) return refuse(`${at} has weights whose sum is ${sum}, not 1`);
  const { evidence } = of;
  return {
    runtime: copy,
    basis: oneOf(of['basis'], ['history', 'hint', 'prior'] as const, `basis of ${at}`),
    reason: reasonOf(of, at),
    ...(evidence !== undefined && { evidence: evidenceOf(evidence, at) }),
  };
}

function evidenceOf(given: unknown, at: string): NonNullable<RuntimeForecast['evidence']> {
  const { feature, estimator, broad, samples, nrmse, hitRate, worthRuns, pointS } = fields(
    given,
    `the evidence of ${at}`,
  );
  return {
    feature: text(feature, `evidence.feature of ${at}`),
    estimator: text(estimator, `evidence.estimator of ${at}`),
    broad: truth(`evidence.broad of ${at}`)(broad),
    samples: whole(samples, `evidence.samples of ${at}`),
    ...(nrmse !== undefined && { nrmse: nrmse === Infinity ? nrmse : amount(nrmse, `evidence.nrmse of ${at}`) }),
    ...(hitRate !== undefined && { hitRate: amount(hitRate, `evidence.hitRate of ${at}`) }),
    ...(worthRuns !== undefined && { worthRuns: amount(worthRuns, `evidence.worthRuns of ${at}`) }),
    pointS: seconds(amount(pointS, `evidence.pointS of ${at}`)),
  };
}

export function value(answer: unknown, { snapshot }: ValueContext): Worths {
  const of = answerWith(answer, ['groups', 'ofRunning']);
  const { ofRunning, mayBeDue } = of as Partial<Worths>;
  if (typeof ofRunning !== 'function') return refuse('ofRunning is no function');
  if (mayBeDue !== undefined && typeof mayBeDue !== 'function') return refuse('mayBeDue is no function');
  const groups = groupsById(snapshot);
  const made = byGroup(of['groups'], groups, { what: 'worths by group', read: worth });
  return {
    groups: expectAll(made, groups.keys(), 'worth'),
    ofRunning: (running) => ofRunning.call(of, running),
    ...(mayBeDue && { mayBeDue: (running, withinS) => mayBeDue.call(of, running, withinS) }),
  };
}

export function worth(given: unknown): Worth {
  const of = fields(given, 'a worth');
  const limit = (name: keyof Worth) => orNull(of[name], (at) => instant(at, `${name} of a worth`));
  return {
    curve: curveOf(of['curve']),
    taskDeadlineMs: limit('taskDeadlineMs'),
    latestSafeStartMs: limit('latestSafeStartMs'),
    reason: reasonOf(of, 'a worth'),
  };
}

function curveOf(given: unknown): UtilityCurve {
  const what = 'the list of points of a worth';
  const points = list(fields(given, 'the curve of a worth')['points'], { what, most: MOST_POINTS }).map((point) => {
    const { atMs, usd } = fields(point, 'a point of a worth');
    return { atMs: instant(atMs, 'a point of a worth'), usd: figure(usd, 'a point of a worth') };
  });
  if (points.length === 0) return refuse('a worth has no points');
  const isOrdered = points.every((p, i) => i === 0 || raw(p.atMs) >= raw(points[i - 1]?.atMs ?? p.atMs));
  return isOrdered ? { points } : refuse('the points of a worth do not ascend in time');
}

export function appraise(answer: unknown, { snapshot }: AppraiseContext): ReadOffers {
  const groups = groupsById(snapshot);
  return expectAll(offersByGroup(answer, groups, poolsById(snapshot)), groups.keys(), 'list of offers');
}

export function speculate(answer: unknown, { snapshot }: DecisionContext): readonly Copy[] {
  const most = snapshot.running.length;
  const copies = list(answer, { what: 'the list of copies', most }).map((given): Copy => {
    const of = fields(given, 'a copy');
    const id = text(of['of'], 'the attempt that is copied') as AttemptId;
    const { to, attempts } = of;
    return {
      of: id,
      reason: reasonOf(of, `the copy of ${id}`),
      ...(to !== undefined && { to: targetOf(to, 'a copy') }),
      ...(attempts !== undefined && { attempts: whole(attempts, `attempts of the copy of ${id}`) }),
    };
  });
  const why = wrongCopy(copies, snapshot);
  return why === null ? copies : refuse(why);
}

export function scale(answer: unknown, { snapshot, used, leftovers, later }: ScaleInput): Scaling {
  const of = answerWith(answer, ['purchases', 'releases']);
  const pools = poolsById(snapshot);
  const most = Math.max(
    MOST_BOUGHT,
    leftovers.reduce((tasks, l) => tasks + l.count, 0),
  );
  const purchases = list(of['purchases'], { what: 'purchases', most }).map((p) =>
    purchaseOf(p, pools, { leftovers, later }),
  );
  const bought = purchases.reduce((sum, p) => sum + p.count, 0);
  expectVcpus(purchases, snapshot, pools);
  if (bought > most) return refuse(`it buys ${bought} instances, more than ${most}`);
  const releases = list(of['releases'], { what: 'releases', most: snapshot.instances.size }).map((given): Release => {
    const { instance, ...more } = fields(given, 'a release');
    const view = snapshot.instances.get(instance as InstanceId);
    if (view === undefined) return refuse(`it gives back ${shown(instance)}, which is not held`);
    const { id, state } = view.instance;
    if (used.has(id) || view.attempts.length > 0) return refuse(`it gives back ${id}, on which there is work`);
    if (state !== 'starting' && state !== 'ready') return refuse(`it gives back ${id}, which is ${state}`);
    return { instance: id, reason: reasonOf(more, `the release of ${id}`) };
  });
  return { purchases, releases: once(releases, (r) => r.instance, 'it gives back') };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

function purchaseOf(
  given: unknown,
  pools: Pools,
  { leftovers, later }: Pick<ScaleInput, 'leftovers' | 'later'>,
): Purchase {
  const of = fields(given, 'a purchase');
  const view = poolNamed(of['pool'], pools);
  const { id: pool } = view.pool;
  if (!view.open || view.quote === null) return refuse(`the pool ${pool} sells nothing now`);
  const { count } = of;
  if (!isCount(count)) return refuse(`it buys ${shown(count)} instances in ${pool}`);
  const bid = bidIn(view, of['bid'], `the purchase in ${pool}`);
  const reason = reasonOf(of, `the purchase in ${pool}`);
  const isUseful = (demand: readonly Leftover[]): boolean => demand.some((l) => whyNotIn(view, l.group) === null);
  if (of['serves'] === undefined) {
    if (!isUseful(leftovers)) return refuse(`it buys in ${pool}, where no task may run`);
    return { pool, bid, count, reason };
  }
  const demand = later();
  const serves = list(of['serves'], { what: `whom the purchase in ${pool} serves`, most: demand.length }).map((id) => {
    const named = demand.find((l) => l.group.id === id);
    return named?.group.id ?? refuse(`it buys in ${pool} for ${shown(id)}, which does not wait for later`);
  });
  const named = demand.filter((l) => serves.includes(l.group.id));
  if (!isUseful(named)) return refuse(`it buys in ${pool}, where no task that it serves may run`);
  return { pool, bid, count, reason, serves };
}

/** Held and purchased vCPUs stay within the limit. */
function expectVcpus(purchases: readonly Purchase[], { instances, limits }: Snapshot, pools: Pools): void {
  let held = 0;
  for (const { pool } of instances.values()) held += vcpusOf(pool);
  const vcpus = purchases.reduce((sum, p) => sum + p.count * vcpusOf(poolNamed(p.pool, pools).pool), held);
  if (purchases.length === 0 || vcpus <= limits.vcpus + OF_VCPU) return;
  refuse(`it would hold ${vcpus} vCPUs, ${held} of them now; the limit is ${limits.vcpus}`);
}
