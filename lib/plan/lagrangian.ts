/**
 * Bound and plan for problems too large for the MILP: Lagrangian relaxation of the shared supply rows.
 *
 *   L(price) = sum_r price_r cap_r + sum_g max over the group's choices of sum_c (net_c - sum_r price_r use_cr) x_c
 *                                  + sum_k atMost_k max(0, sum_r price_r give_kr - cost_k),      price >= 0
 *
 * For each price L is an upper bound on every plan, because each group alone (its count, each choice's own limit, all or
 * nothing for gangs) is maximised exactly. Prices follow the subgradient with Polyak's step towards the best plan known
 * (Held, Wolfe and Crowder 1974: the step's factor is halved when the bound stands still). Rows are scaled to capacity 1. Each
 * iteration is linear in the choices. From time to time the prices give the order of a greedy fill: a plan.
 */
import { fill, type Selection } from './fill.ts';
import { byPricedDensity } from './order.ts';
import type { Problem } from './problem.ts';

export interface LagrangianResult {
  /** Upper bound on every plan's objective, USD. */
  readonly bound: number;
  readonly best: Selection;
  readonly iterations: number;
}

export interface LagrangianLimits {
  readonly iterations: number;
  /** Stops when (bound - best) / bound is this small. */
  readonly relativeGap: number;
}

/** Standstill after which the step is halved, and iterations between repairs. */
const PATIENCE = 8;
const REPAIR_EVERY = 30;

export function lagrangian(problem: Problem, start: Selection, limits: LagrangianLimits): LagrangianResult {
  const flat = flatten(problem);
  const price = new Float64Array(problem.rows.count);
  const bestPrice = new Float64Array(problem.rows.count);
  let bound = Infinity;
  let best = start;
  let factor = 1;
  let standstill = 0;
  let iteration = 0;
  const repair = (at: Float64Array): void => {
    const plan = fill(problem, byPricedDensity(problem, unscaled(at, flat)), true);
    if (plan.objectiveUsd > best.objectiveUsd) best = plan;
  };
  for (; iteration < limits.iterations; iteration++) {
    const { value, slack } = evaluate(flat, price);
    if (value < bound - 1e-12 * Math.abs(bound)) {
      bound = value;
      bestPrice.set(price);
      standstill = 0;
    } else if (++standstill >= PATIENCE) {
      factor /= 2;
      standstill = 0;
      price.set(bestPrice);
    }
    if (iteration % REPAIR_EVERY === REPAIR_EVERY - 1) repair(bestPrice);
    if (bound - best.objectiveUsd <= limits.relativeGap * Math.abs(bound) || factor < 1e-4) break;
    if (!step(price, slack, factor * Math.max(value - best.objectiveUsd, 1e-9 * Math.abs(value)))) break;
  }
  repair(bestPrice);
  return { bound, best, iterations: iteration };
}

/** The problem as typed arrays, rows scaled to capacity 1 (rows without capacity are left as they are). */
interface Flat {
  readonly rows: number;
  readonly capacity: Float64Array;
  readonly scale: Float64Array;
  /** Items: members of choices in the order of groups. */
  readonly itemStart: Int32Array;
  readonly itemNet: Float64Array;
  readonly itemAtMost: Float64Array;
  readonly itemChoice: Int32Array;
  readonly useStart: Int32Array;
  readonly useRow: Int32Array;
  readonly useAmount: Float64Array;
  readonly groupCount: Float64Array;
  readonly gang: Uint8Array;
  readonly kills: readonly {
    readonly cost: number;
    readonly atMost: number;
    readonly row: Int32Array;
    readonly gives: Float64Array;
  }[];
}

function flatten(problem: Problem): Flat {
  const { rows } = problem;
  const scale = Float64Array.from(rows.capacity, (c) => (c > 1e-9 ? 1 / c : 1));
  const itemStart = [0];
  const net: number[] = [];
  const atMost: number[] = [];
  const choiceOf: number[] = [];
  const useStart = [0];
  const useRow: number[] = [];
  const useAmount: number[] = [];
  for (const group of problem.groups) {
    for (const index of group.choices) {
      const choice = problem.choices[index];
      for (const member of choice?.members ?? []) {
        net.push(choice?.netUsd ?? 0);
        atMost.push(member.atMost);
        choiceOf.push(index);
        member.use.row.forEach((row, i) => {
          useRow.push(row);
          useAmount.push((member.use.coefficient[i] ?? 0) * (scale[row] ?? 1));
        });
        useStart.push(useRow.length);
      }
    }
    itemStart.push(net.length);
  }
  return {
    rows: rows.count,
    capacity: rows.capacity.map((c, row) => c * (scale[row] ?? 1)),
    scale,
    itemStart: Int32Array.from(itemStart),
    itemNet: Float64Array.from(net),
    itemAtMost: Float64Array.from(atMost),
    itemChoice: Int32Array.from(choiceOf),
    useStart: Int32Array.from(useStart),
    useRow: Int32Array.from(useRow),
    useAmount: Float64Array.from(useAmount),
    groupCount: Float64Array.from(problem.groups, (g) => g.group.count),
    gang: Uint8Array.from(problem.groups, (g) => (g.gang ? 1 : 0)),
    kills: problem.kills.map((kill) => ({
      cost: kill.costUsd,
      atMost: kill.atMost,
      row: kill.use.row,
      gives: kill.use.coefficient.map((x, i) => x * (scale[kill.use.row[i] ?? 0] ?? 1)),
    })),
  };
}

/** L(price) and capacity less use of its maximiser (the negative subgradient). */
function evaluate(flat: Flat, price: Float64Array): { readonly value: number; readonly slack: Float64Array } {
  const slack = Float64Array.from(flat.capacity);
  let value = 0;
  for (let r = 0; r < flat.rows; r++) value += (price[r] ?? 0) * (flat.capacity[r] ?? 0);
  const reduced = reducedNet(flat, price);
  for (let g = 0; g < flat.groupCount.length; g++) {
    const from = flat.itemStart[g] ?? 0;
    const to = flat.itemStart[g + 1] ?? from;
    value += flat.gang[g] === 1 ? bestWhole(flat, reduced, slack, g) : bestParts(flat, reduced, slack, [g, from, to]);
  }
  for (const kill of flat.kills) {
    let gain = -kill.cost;
    for (let i = 0; i < kill.row.length; i++) gain += (kill.gives[i] ?? 0) * (price[kill.row[i] ?? 0] ?? 0);
    if (gain <= 0) continue;
    value += gain * kill.atMost;
    for (let i = 0; i < kill.row.length; i++) {
      const row = kill.row[i] ?? 0;
      slack[row] = (slack[row] ?? 0) + (kill.gives[i] ?? 0) * kill.atMost;
    }
  }
  return { value, slack };
}

function reducedNet(flat: Flat, price: Float64Array): Float64Array {
  const reduced = Float64Array.from(flat.itemNet);
  for (let item = 0; item < reduced.length; item++) {
    let paid = 0;
    const to = flat.useStart[item + 1] ?? 0;
    for (let u = flat.useStart[item] ?? 0; u < to; u++)
      paid += (flat.useAmount[u] ?? 0) * (price[flat.useRow[u] ?? 0] ?? 0);
    reduced[item] = (reduced[item] ?? 0) - paid;
  }
  return reduced;
}

/** Up to `count` tasks on the items that bring most: repeatedly the best one left (most groups need one or two). */
function bestParts(
  flat: Flat,
  reduced: Float64Array,
  slack: Float64Array,
  [group, from, to]: readonly [number, number, number],
): number {
  let left = flat.groupCount[group] ?? 0;
  let value = 0;
  let ceiling = Infinity;
  let after = -1;
  while (left > 0) {
    let best = -1;
    for (let item = from; item < to; item++) {
      const r = reduced[item] ?? 0;
      // Items in the order (reduced descending, index ascending), strictly after the last one taken.
      if (r <= 0 || r > ceiling || (r === ceiling && item <= after)) continue;
      if (best < 0 || r > (reduced[best] ?? 0)) best = item;
    }
    if (best < 0) break;
    ceiling = reduced[best] ?? 0;
    after = best;
    const count = Math.min(left, flat.itemAtMost[best] ?? 0);
    value += count * ceiling;
    left -= count;
    takeFrom(flat, slack, best, count);
  }
  return value;
}

/** The whole gang by one choice, its members filled from the better one on. */
function bestWhole(flat: Flat, reduced: Float64Array, slack: Float64Array, group: number): number {
  const count = flat.groupCount[group] ?? 0;
  const to = flat.itemStart[group + 1] ?? 0;
  let best = 0;
  let bestItems: readonly (readonly [number, number])[] = [];
  for (let item = flat.itemStart[group] ?? 0; item < to;) {
    const choice = flat.itemChoice[item];
    const items: number[] = [];
    for (; item < to && flat.itemChoice[item] === choice; item++) items.push(item);
    items.sort((a, b) => (reduced[b] ?? 0) - (reduced[a] ?? 0));
    let left = count;
    let value = 0;
    const taken = items.map((i) => {
      const units = Math.min(left, flat.itemAtMost[i] ?? 0);
      left -= units;
      value += units * (reduced[i] ?? 0);
      return [i, units] as const;
    });
    if (left <= 0 && value > best) {
      best = value;
      bestItems = taken;
    }
  }
  for (const [item, units] of bestItems) takeFrom(flat, slack, item, units);
  return best;
}

function takeFrom(flat: Flat, slack: Float64Array, item: number, count: number): void {
  const to = flat.useStart[item + 1] ?? 0;
  for (let u = flat.useStart[item] ?? 0; u < to; u++) {
    const row = flat.useRow[u] ?? 0;
    slack[row] = (slack[row] ?? 0) - count * (flat.useAmount[u] ?? 0);
  }
}

/** Moves the prices against the slack; false when there is nothing to correct. */
function step(price: Float64Array, slack: Float64Array, distance: number): boolean {
  let norm = 0;
  for (let r = 0; r < price.length; r++) {
    const s = slack[r] ?? 0;
    if (s < 0 || (price[r] ?? 0) > 0) norm += s * s;
  }
  if (norm <= 1e-18) return false;
  const length = distance / norm;
  for (let r = 0; r < price.length; r++) {
    const s = slack[r] ?? 0;
    if (s < 0 || (price[r] ?? 0) > 0) price[r] = Math.max(0, (price[r] ?? 0) - length * s);
  }
  return true;
}

const unscaled = (price: Float64Array, flat: Flat): Float64Array => price.map((p, row) => p * (flat.scale[row] ?? 1));

/** The maximiser without prices: each group's own best, supply not looked at. Its value bounds every plan. */
export function unconstrained(problem: Problem): { readonly value: number; readonly fits: boolean } {
  const { value, slack } = evaluate(flatten(problem), new Float64Array(problem.rows.count));
  return { value, fits: slack.every((s) => s >= -1e-9) };
}
