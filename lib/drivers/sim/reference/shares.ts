/**
 * Shares of an instance's cost that tasks must bear, whatever else runs there.
 *
 * Let r_ik be the need of task i for resource k, and M_k an upper bound of the sum of needs that runs at once on an
 * instance of a type: its capacity, the sum of needs that may run at the same time at all, and the largest sum of sizes
 * within the capacity (three tasks of 3 vCPUs use 9 of 10). For weights l_k >= 0 that sum to 1,
 *   share_i = sum over k of l_k r_ik / M_k,  and tasks that run together have shares of 1 in all at most.
 * So the cost of an instance is at least the sum over its tasks of share_i times price times running time. Weights may
 * differ by type; any choice gives a bound, and `sharesOf` looks for a good one.
 *
 * Billed by the hour, an hour is paid as a whole. The work in it is at most W_k, the sum over tasks of r_ik times the
 * part of an hour that each can run; so there M_k is the lesser of M_k and W_k per hour.
 */
import type { InstanceType, Pool } from '../../../domain/pool.ts';
import { KINDS, vector } from '../../../domain/resources.ts';
import type { BillingRules } from '../../../market/billing.ts';
import { kindKey, mayUse, windowOf, type Needs, type StageNeed } from './needs.ts';
import { HOUR_MS } from './rates.ts';

/** Weights that are tried for two resources; the others get none. */
const STEPS = [0, 0.25, 0.5, 0.75, 1];
const ROUNDS = 3;
/** Sizes of tasks beyond which sums are not enumerated. */
const MOST_SIZES = 16;
const MOST_SUMS = 1_000_000;
/** Kinds of tasks times pairs of types beyond which all types have the same weights. */
const MOST_TRIED = 2_000_000;

type Vector = readonly number[];

/** Share of a task of the stage on an instance of the type; above 1 where less than an hour of work pays for one. */
export type ShareOf = (need: StageNeed, type: InstanceType) => number;

/** Mean price of a type's cheapest pool: weights are chosen by it, and hold for any. */
export type UsualRate = (type: InstanceType) => number;

export function sharesOf(
  needs: Needs,
  pools: readonly Pool[],
  of: { readonly billing: BillingRules['billing']; readonly usualRate: UsualRate },
): ShareOf {
  const types = [...new Map(pools.map((p) => [p.type.name, p.type])).values()];
  const kinds = kindsOf(needs.stages, pools);
  const most = new Map(types.map((type) => [type.name, mostAtOnce(needs, type, of.billing)]));
  const weights = new Map<string, Vector>(types.map(({ name }) => [name, unit(0)]));
  const share = (need: Vector, { name }: InstanceType): number =>
    shareOf(need, most.get(name) ?? [], weights.get(name) ?? unit(0));
  const totalUsd = (): number =>
    kinds.reduce((sum, { need, workMs, types: usable }) => {
      const least = usable.reduce((usd, type) => Math.min(usd, of.usualRate(type) * share(need, type)), Infinity);
      return sum + (least === Infinity ? 0 : least * workMs);
    }, 0);
  const improve = (names: readonly string[]): void => {
    const tried = CANDIDATES.map((weight) => {
      for (const name of names) weights.set(name, weight);
      return { weight, usd: totalUsd() };
    });
    const best = tried.reduce((a, b) => (b.usd > a.usd ? b : a));
    for (const name of names) weights.set(name, best.weight);
  };
  improve(types.map((type) => type.name));
  const rounds = kinds.length * types.length ** 2 > MOST_TRIED ? 0 : ROUNDS;
  for (let round = 0; round < rounds; round++) for (const { name } of types) improve([name]);
  return (need, type) => share(vector(need.resources), type);
}

const unit = (k: number): Vector => Array.from({ length: KINDS }, (_, i) => Number(i === k));

/** Single resources, and mixtures of processors with memory. */
const CANDIDATES: readonly Vector[] = [
  ...STEPS.map((part) => [1 - part, part, ...Array.from({ length: KINDS - 2 }, () => 0)]),
  ...Array.from({ length: KINDS - 2 }, (_, i) => unit(i + 2)),
];

const shareOf = (need: Vector, most: Vector, weights: Vector): number =>
  weights.reduce((sum, l, k) => sum + (l > 0 && (most[k] ?? 0) > 0 ? (l * (need[k] ?? 0)) / (most[k] ?? 1) : 0), 0);

interface Kind {
  readonly need: Vector;
  readonly types: readonly InstanceType[];
  readonly workMs: number;
}

/** Work by equal needs and constraints. */
function kindsOf(stages: readonly StageNeed[], pools: readonly Pool[]): readonly Kind[] {
  const groups = Map.groupBy(stages, kindKey);
  return [...groups.values()].flatMap((of) => {
    const [first] = of;
    if (first === undefined) return [];
    const usable = pools.filter((p) => mayUse(first, p)).map((p) => [p.type.name, p.type] as const);
    const workMs = of.reduce((sum, s) => sum + s.runtimeMs.reduce((ms, x) => ms + x, 0), 0);
    return [{ need: vector(first.resources), types: [...new Map(usable).values()], workMs }];
  });
}

/** M_k of the type. */
function mostAtOnce(needs: Needs, type: InstanceType, billing: BillingRules['billing']): Vector {
  const capacity = vector(type.capacity);
  const fitting = needs.stages.filter((s) => vector(s.resources).every((r, k) => r <= (capacity[k] ?? 0) + 1e-6));
  return capacity.map((most, k) => {
    const sizes = new Set(fitting.map((s) => vector(s.resources)[k] ?? 0));
    const { setupMs, changeoverMs } = needs;
    const atOnce = mostDemand(fitting, setupMs, (s) => s.runtimeMs.length * (vector(s.resources)[k] ?? 0));
    const bound = Math.min(largestSum(sizes, most), atOnce);
    if (billing === 'per-second') return bound;
    const hourOf = (s: StageNeed): number =>
      s.runtimeMs.reduce((ms, x) => ms + Math.min(HOUR_MS, x + changeoverMs), 0) * (vector(s.resources)[k] ?? 0);
    return Math.min(bound, mostDemand(fitting, setupMs, hourOf, HOUR_MS) / HOUR_MS);
  });
}

/** Most demand of windows that overlap, each drawn out by `by` at its end. */
function mostDemand(
  stages: readonly StageNeed[],
  setupMs: number,
  demand: (need: StageNeed) => number,
  by = 0,
): number {
  const edges = stages.flatMap((s) => {
    const { fromMs, toMs } = windowOf(s, setupMs);
    const d = demand(s);
    return [[fromMs, d] as const, [toMs + by, -d] as const];
  });
  // Beginnings before ends of the same instant: windows that touch are counted together.
  edges.sort(([a, x], [b, y]) => (a === b ? y - x : a - b));
  let now = 0;
  let most = 0;
  for (const [, d] of edges) most = Math.max(most, (now += d));
  return most;
}

/** Largest sum of sizes, each any number of times, within the capacity. */
function largestSum(sizes: ReadonlySet<number>, capacity: number): number {
  const whole = [...sizes].filter((x) => x > 0);
  if (whole.length === 0 || whole.length > MOST_SIZES || ![...whole, capacity].every(Number.isInteger)) return capacity;
  const step = whole.reduce(gcd);
  const top = Math.floor(capacity / step);
  if (top * whole.length > MOST_SUMS) return capacity;
  const reached = new Uint8Array(top + 1);
  reached[0] = 1;
  let largest = 0;
  for (let sum = 1; sum <= top; sum++) {
    if (!whole.some((x) => x / step <= sum && reached[sum - x / step] === 1)) continue;
    reached[sum] = 1;
    largest = sum;
  }
  return largest * step;
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
