/**
 * Bound and plan for problems too large for the MILP: Lagrangian relaxation of the shared supply rows.
 *
 *   L(price) = sum_r price_r cap_r + sum_g max over the group's choices of sum_c (net_c - sum_r price_r use_cr) x_c
 *                                  + sum_k atMost_k max(0, sum_r price_r give_kr - cost_k),      price >= 0
 *
 * For each price L is an upper bound on every plan, because each group alone (its count, each choice's own limit, all
 * or nothing for gangs) is maximised exactly. Prices follow the subgradient with a step of each row's own scale (Kingma
 * and Ba 2015): violations of a small pool's room and of the quota differ by orders of magnitude, and one step length
 * for all rows stands still. Rows are in US dollars at their usual price. The average of the maximisers approaches a
 * solution of the LP relaxation (Barahona and Anbil 2000), so it guides a fill: a plan. An iteration is linear in the
 * choices.
 */
import { fill, type Guide, type Selection } from './fill.ts';
import { byReducedWorth, pricedUse } from './order.ts';
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

const REPAIR_EVERY = 50;
/** Kingma and Ba 2015, section 2: decay rates of the means of the slack and of its square. */
const MEAN_DECAY = 0.9;
const SQUARE_DECAY = 0.99;
/** First step of a price, as a fraction of the row's usual price; by the end steps are a hundredth of it. */
const FIRST_STEP = 0.5;
const LAST_OF_FIRST = 0.01;
/** Weight of the newest maximiser in the average that guides the plan. */
const NEWEST = 0.05;

export function lagrangian(problem: Problem, start: Selection, limits: LagrangianLimits): LagrangianResult {
  const flat = flatten(problem);
  const work = workFor(flat);
  const price = new Float64Array(problem.rows.count);
  const bestPrice = new Float64Array(problem.rows.count);
  const moments = { mean: new Float64Array(price.length), square: new Float64Array(price.length) };
  const average = { tasks: new Float64Array(problem.choices.length), kills: new Float64Array(problem.kills.length) };
  let bound = Infinity;
  let best = start;
  let iteration = 0;
  const repair = (): void => {
    const plan = repaired(problem, unscaled(bestPrice, flat), average);
    if (plan.objectiveUsd > best.objectiveUsd) best = plan;
  };
  while (iteration < limits.iterations) {
    const { value, slack, tasks, kills } = evaluate(work, price);
    if (value < bound) {
      bound = value;
      bestPrice.set(price);
    }
    const newest = Math.max(NEWEST, 1 / (iteration + 1));
    blend(average.tasks, tasks, newest);
    blend(average.kills, kills, newest);
    iteration++;
    if (iteration % REPAIR_EVERY === 0) repair();
    if (bound - best.objectiveUsd <= limits.relativeGap * Math.abs(bound)) break;
    step(price, slack, moments, {
      iteration,
      size: FIRST_STEP * LAST_OF_FIRST ** (iteration / limits.iterations),
    });
  }
  repair();
  return { bound, best, iterations: iteration };
}

function blend(average: Float64Array, newest: Float64Array, weight: number): void {
  for (let i = 0; i < average.length; i++) average[i] = (1 - weight) * (average[i] ?? 0) + weight * (newest[i] ?? 0);
}

/** A plan by the prices, following the average of the maximisers. */
function repaired(problem: Problem, price: Float64Array, guide: Guide): Selection {
  const reduced = Float64Array.from(problem.choices, (choice) => choice.netUsd - pricedUse(choice, price));
  return fill(problem, byReducedWorth(problem, reduced), { preemptFor: 'all', guide });
}

/** The problem as typed arrays, rows scaled to US dollars at their usual price. */
interface Flat {
  readonly rows: number;
  readonly choices: number;
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
  const scale = usualPrices(problem);
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
    choices: problem.choices.length,
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

/** Arrays are those of the work: the next evaluation overwrites them. */
interface Evaluation {
  readonly value: number;
  /** Capacity less use of the maximiser, per row: the negative subgradient. */
  readonly slack: Float64Array;
  /** The maximiser: tasks per choice, units per kill. */
  readonly tasks: Float64Array;
  readonly kills: Float64Array;
}

function evaluate(work: Work, price: Float64Array): Evaluation {
  const { flat, slack, tasks, kills } = work;
  slack.set(flat.capacity);
  tasks.fill(0);
  kills.fill(0);
  reduceNet(work, price);
  let value = 0;
  for (let r = 0; r < flat.rows; r++) value += (price[r] ?? 0) * (flat.capacity[r] ?? 0);
  for (let g = 0; g < flat.groupCount.length; g++)
    value += flat.gang[g] === 1 ? bestWhole(work, g) : bestParts(work, g);
  flat.kills.forEach((kill, index) => {
    let gain = -kill.cost;
    for (let i = 0; i < kill.row.length; i++) gain += (kill.gives[i] ?? 0) * (price[kill.row[i] ?? 0] ?? 0);
    if (gain <= 0) return;
    value += gain * kill.atMost;
    kills[index] = kill.atMost;
    for (let i = 0; i < kill.row.length; i++) {
      const row = kill.row[i] ?? 0;
      slack[row] = (slack[row] ?? 0) + (kill.gives[i] ?? 0) * kill.atMost;
    }
  });
  return { value, slack, tasks, kills };
}

/** Buffers of an evaluation, allocated once: hundreds of evaluations of a large problem would otherwise be garbage. */
interface Work {
  readonly flat: Flat;
  /** Worth of each item less its payments. */
  readonly reduced: Float64Array;
  readonly slack: Float64Array;
  readonly tasks: Float64Array;
  readonly kills: Float64Array;
}

const workFor = (flat: Flat): Work => ({
  flat,
  reduced: new Float64Array(flat.itemNet.length),
  slack: new Float64Array(flat.rows),
  tasks: new Float64Array(flat.choices),
  kills: new Float64Array(flat.kills.length),
});

function reduceNet({ flat, reduced }: Work, price: Float64Array): void {
  reduced.set(flat.itemNet);
  for (let item = 0; item < reduced.length; item++) {
    let paid = 0;
    const to = flat.useStart[item + 1] ?? 0;
    for (let u = flat.useStart[item] ?? 0; u < to; u++)
      paid += (flat.useAmount[u] ?? 0) * (price[flat.useRow[u] ?? 0] ?? 0);
    reduced[item] = (reduced[item] ?? 0) - paid;
  }
}

/** Up to `count` tasks on the items that bring most: repeatedly the best one left (most groups need one or two). */
function bestParts(work: Work, group: number): number {
  const { flat, reduced } = work;
  const from = flat.itemStart[group] ?? 0;
  const to = flat.itemStart[group + 1] ?? from;
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
    takeFrom(work, best, count);
  }
  return value;
}

/** The whole gang by one choice, its members filled from the better one on. */
function bestWhole(work: Work, group: number): number {
  const { flat, reduced } = work;
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
  for (const [item, units] of bestItems) takeFrom(work, item, units);
  return best;
}

function takeFrom({ flat, slack, tasks }: Work, item: number, count: number): void {
  const choice = flat.itemChoice[item] ?? 0;
  tasks[choice] = (tasks[choice] ?? 0) + count;
  const to = flat.useStart[item + 1] ?? 0;
  for (let u = flat.useStart[item] ?? 0; u < to; u++) {
    const row = flat.useRow[u] ?? 0;
    slack[row] = (slack[row] ?? 0) - count * (flat.useAmount[u] ?? 0);
  }
}

/** Moves the prices against the slack, each row by its own scale. */
function step(
  price: Float64Array,
  slack: Float64Array,
  { mean, square }: { readonly mean: Float64Array; readonly square: Float64Array },
  { iteration, size }: { readonly iteration: number; readonly size: number },
): void {
  const meanScale = 1 - MEAN_DECAY ** iteration;
  const squareScale = 1 - SQUARE_DECAY ** iteration;
  for (let r = 0; r < price.length; r++) {
    const s = slack[r] ?? 0;
    mean[r] = MEAN_DECAY * (mean[r] ?? 0) + (1 - MEAN_DECAY) * s;
    square[r] = SQUARE_DECAY * (square[r] ?? 0) + (1 - SQUARE_DECAY) * s * s;
    const spread = Math.sqrt((square[r] ?? 0) / squareScale);
    if (spread > 0) price[r] = Math.max(0, (price[r] ?? 0) - (size * (mean[r] ?? 0)) / meanScale / spread);
  }
}

/**
 * Usual price per unit of each row, USD: the worth that choices bring per unit of it, shared among their rows; for
 * kills, their cost.
 */
function usualPrices(problem: Problem): Float64Array {
  const worth = new Float64Array(problem.rows.count);
  const amount = new Float64Array(problem.rows.count);
  const count = (row: Int32Array, coefficient: Float64Array, usd: number): void => {
    for (let i = 0; i < row.length; i++) {
      const r = row[i] ?? 0;
      worth[r] = (worth[r] ?? 0) + usd / row.length;
      amount[r] = (amount[r] ?? 0) + Math.abs(coefficient[i] ?? 0);
    }
  };
  for (const { members, netUsd } of problem.choices)
    for (const { use } of members) count(use.row, use.coefficient, netUsd);
  for (const { use, costUsd } of problem.kills) count(use.row, use.coefficient, costUsd);
  return worth.map((usd, r) => ((amount[r] ?? 0) > 0 && usd > 0 ? usd / (amount[r] ?? 1) : 1));
}

const unscaled = (price: Float64Array, flat: Flat): Float64Array => price.map((p, row) => p * (flat.scale[row] ?? 1));

/** Value without prices: each group's own best, whatever the supply. It bounds every plan. */
export const unconstrained = (problem: Problem): number =>
  evaluate(workFor(flatten(problem)), new Float64Array(problem.rows.count)).value;
