/**
 * STRL to MILP: JamaisVu, Algorithm 1, for every operator, with the model kept small.
 *
 * Sets        L leaves; M_l members of leaf l's equivalence set; R supply rows (partition x kind x slot; non-renewable:
 *             partition x kind); C_e children of operator e.
 * Parameters  k_l units; v_l value or c_l cost for k_l units (objective's unit, USD); u_lm most units of a member;
 *             a_lmr use of row r by one unit (the row's unit: mCPU, MiB, tasks, USD); cap_r capacity of row r.
 * Variables   I_e in {0,1}      operator or leaf e is chosen; only where something depends on it
 *             P_lm in [0, u_lm] units of leaf l from member m; integer for leaves that begin by `integerThrough`,
 *                               continuous for later ones, which the next cycle decides again (their I likewise)
 *             V_e free          value of a `min`;   B_e in {0,1}  a `barrier` is reached
 * Objective   maximise the root's value: v_l I_l (nCk), v_l/k_l sum_m P_lm (lnCk), -c_l ... (kill), composed upwards.
 * Rows        demand_l    sum_m P_lm = k_l I_l (nCk, killnCk);  sum_m P_lm <= k_l I_l (linear forms; I_l = 1 if unconditional)
 *             choose_e    sum_{c in C_e} I_c <= I_e (max)
 *             link_e      I_e <= I_parent, where an indicator hangs below a shared one
 *             least_e_c   V_e <= value of child c (min);   reach_e   value of child >= low + (threshold - low) B_e (barrier;
 *                         low = least value the child can have)
 *             supply_r    sum of a_lmr P_lm (kills negative) <= cap_r
 *
 * Left out: indicators of unconditional leaves; P of an nCk with a single member (its use is k_l I_l); supply rows that
 * cannot bind; of the rows of one partition and slot those that another kind's row implies (for a, b > 0 capacities,
 * row a is implied by row b when every column takes no larger fraction of a than of b).
 */
import { unreachable } from '../../../kernel/errors.ts';
import {
  isKill,
  isLeaf,
  leavesOf,
  type Assignment,
  type Expression,
  type KillnCk,
  type Leaf,
  type Max,
  type Min,
  type NCk,
} from '../strl/expression.ts';
import { supplyRows, type Supply, type SupplyRows } from '../strl/supply.ts';
import { isChosen, unitsOf, valueOf } from '../strl/value.ts';
import type { Milp } from '../../../policy/solver.ts';
import { MilpBuilder, type Terms } from './builder.ts';

export interface CompileOptions {
  readonly name: string;
  /** Leaves that start at this slot or before are integer. Infinity: all. */
  readonly integerThrough: number;
}

/** Source of a leaf's units: `units[m] = value[column[m]] * factor`. */
export interface LeafColumns {
  readonly leaf: Leaf;
  readonly column: readonly number[];
  readonly factor: number;
  readonly integer: boolean;
}

export interface Compiled {
  readonly milp: Milp;
  readonly leaves: readonly LeafColumns[];
  /** The point of the model that stands for an assignment: a start for the solver. */
  readonly point: (assignment: Assignment) => Float64Array;
}

/** Place of an expression: the indicator above it (null: unconditional), and whether it has that indicator alone. */
interface Place {
  readonly indicator: number | null;
  readonly own: boolean;
}

interface Context {
  readonly builder: MilpBuilder;
  readonly rows: SupplyRows;
  /** Entries of each supply row so far. */
  readonly supply: { column: number[]; coefficient: number[] }[];
  readonly leaves: LeafColumns[];
  readonly setters: ((assignment: Assignment, point: Float64Array) => void)[];
  readonly integerThrough: number;
  operators: number;
}

const NOTHING: Terms = { column: [], coefficient: [] };

export function compile(expression: Expression, supply: Supply, options: CompileOptions): Compiled {
  const rows = supplyRows(supply);
  const context: Context = {
    builder: new MilpBuilder(),
    rows,
    supply: Array.from({ length: rows.count }, () => ({ column: [], coefficient: [] })),
    leaves: [],
    setters: [],
    integerThrough: options.integerThrough,
    operators: 0,
  };
  context.builder.addObjective(generate(expression, { indicator: null, own: false }, context));
  addSupplyRows(context);
  const milp = context.builder.build(options.name);
  return {
    milp,
    leaves: context.leaves,
    point: (assignment) => {
      const point = new Float64Array(milp.columns);
      for (const set of context.setters) set(assignment, point);
      return point;
    },
  };
}

/** `gen` of Algorithm 1: adds the variables and rows of the expression and returns its value as a linear expression. */
function generate(e: Expression, place: Place, context: Context): Terms {
  switch (e.kind) {
    case 'nCk':
    case 'killnCk':
      return allOrNothing(e, place, context);
    case 'lnCk':
    case 'killLnCk':
      return linear(e, place, context);
    case 'max':
      return choice(e, place, context);
    case 'min':
      return least(e, place, context);
    case 'sum':
      return concat(e.of.map((child) => generate(child, { ...place, own: place.own && e.of.length === 1 }, context)));
    case 'scale':
      return times(generate(e.of, place, context), e.factor);
    case 'barrier': {
      const { builder } = context;
      const number = context.operators++;
      const value = generate(e.of, { ...place, own: false }, context);
      const reached = builder.column({ lower: 0, upper: 1, integer: true, name: () => `B_${number}` });
      // Not reached, the child may still be worth anything it can be: kills below it have negative values.
      const least = lowest(e.of);
      const row = concat([value, { column: [reached], coefficient: [least - e.threshold] }]);
      builder.row(row, least, Infinity, () => `reach_${number}`);
      context.setters.push((assignment, point) => {
        point[reached] = valueOf(e, assignment) > 0 ? 1 : 0;
      });
      return { column: [reached], coefficient: [e.threshold] };
    }
    default:
      return unreachable(e, 'generate');
  }
}

function allOrNothing(leaf: NCk | KillnCk, place: Place, context: Context): Terms {
  const { builder } = context;
  const integer = leaf.start <= context.integerThrough;
  const indicator = ownIndicator(leaf, place, context);
  const only = leaf.set.length === 1 ? leaf.set[0] : undefined;
  if (only !== undefined && only.atMost >= leaf.k) {
    context.leaves.push({ leaf, column: [indicator], factor: leaf.k, integer });
    addUse(leaf, 0, { column: indicator, units: leaf.k }, context);
  } else {
    const columns = unitColumns(leaf, integer, context);
    context.leaves.push({ leaf, column: columns, factor: 1, integer });
    const row = { column: [...columns, indicator], coefficient: [...columns.map(() => 1), -leaf.k] };
    builder.row(row, 0, 0, () => `demand_${leaf.id}`);
  }
  return { column: [indicator], coefficient: [isKill(leaf) ? -leaf.cost : leaf.value] };
}

function linear(leaf: Exclude<Leaf, NCk | KillnCk>, place: Place, context: Context): Terms {
  const integer = leaf.start <= context.integerThrough;
  const columns = unitColumns(leaf, integer, context);
  context.leaves.push({ leaf, column: columns, factor: 1, integer });
  const all = { column: columns, coefficient: columns.map(() => 1) };
  const name = (): string => `demand_${leaf.id}`;
  if (place.indicator !== null) {
    const row = concat([all, { column: [place.indicator], coefficient: [-leaf.k] }]);
    context.builder.row(row, -Infinity, 0, name);
  } else if (leaf.set.reduce((total, member) => total + Math.min(member.atMost, leaf.k), 0) > leaf.k) {
    context.builder.row(all, -Infinity, leaf.k, name);
  }
  return times(all, (isKill(leaf) ? -leaf.cost : leaf.value) / leaf.k);
}

function choice(e: Max, place: Place, context: Context): Terms {
  const { builder } = context;
  const number = context.operators++;
  const indicators: number[] = [];
  const values = e.of.map((child, position) => {
    const indicator = newIndicator(child, context, () => `I_${isLeaf(child) ? child.id : `max${number}_${position}`}`);
    indicators.push(indicator);
    return generate(child, { indicator, own: true }, context);
  });
  const sum: Terms = { column: indicators, coefficient: indicators.map(() => 1) };
  const name = (): string => `choose_${e.of.flatMap(leavesOf)[0]?.id ?? number}`;
  if (place.indicator === null) builder.row(sum, -Infinity, 1, name);
  else builder.row(concat([sum, { column: [place.indicator], coefficient: [-1] }]), -Infinity, 0, name);
  return concat(values);
}

function least(e: Min, place: Place, context: Context): Terms {
  if (e.of.length === 0) return NOTHING;
  const { builder } = context;
  const number = context.operators++;
  const values = e.of.map((child) => generate(child, { ...place, own: false }, context));
  const value = builder.column({ lower: -Infinity, upper: Infinity, integer: false, name: () => `V_${number}` });
  values.forEach((child, position) => {
    const row = concat([{ column: [value], coefficient: [1] }, times(child, -1)]);
    builder.row(row, -Infinity, 0, () => `least_${number}_${position}`);
  });
  context.setters.push((assignment, point) => {
    point[value] = valueOf(e, assignment);
  });
  return { column: [value], coefficient: [1] };
}

/** The leaf's own indicator: the one it hangs on if that is its alone, else a new one linked below it. */
function ownIndicator(leaf: Leaf, place: Place, context: Context): number {
  if (place.own && place.indicator !== null) return place.indicator;
  const indicator = newIndicator(leaf, context, () => `I_${leaf.id}`);
  if (place.indicator !== null) {
    const row = { column: [indicator, place.indicator], coefficient: [1, -1] };
    context.builder.row(row, -Infinity, 0, () => `link_${leaf.id}`);
  }
  return indicator;
}

function newIndicator(e: Expression, context: Context, name: () => string): number {
  const integer = leavesOf(e).some((leaf) => leaf.start <= context.integerThrough);
  const indicator = context.builder.column({ lower: 0, upper: 1, integer, name });
  context.setters.push((assignment, point) => {
    point[indicator] = isChosen(e, assignment) ? (isLeaf(e) ? shareOf(e, assignment) : 1) : 0;
  });
  return indicator;
}

/** 1 for an all-or-nothing leaf; a continuous one may be chosen in part. */
const shareOf = (leaf: Leaf, assignment: Assignment): number =>
  leaf.kind === 'nCk' || leaf.kind === 'killnCk' ? unitsOf(leaf, assignment) / leaf.k : 1;

function unitColumns(leaf: Leaf, integer: boolean, context: Context): readonly number[] {
  return leaf.set.map((member, index) => {
    const upper = Math.min(member.atMost, leaf.k);
    const suffix = leaf.set.length > 1 ? `_${member.name}` : '';
    const column = context.builder.column({ lower: 0, upper, integer, name: () => `P_${leaf.id}${suffix}` });
    addUse(leaf, index, { column, units: 1 }, context);
    context.setters.push((assignment, point) => {
      point[column] = assignment.get(leaf.id)?.[index] ?? 0;
    });
    return column;
  });
}

/** Records a column's use of each supply row, for `units` of a member; kills return. */
function addUse(
  leaf: Leaf,
  member: number,
  { column, units }: { readonly column: number; readonly units: number },
  context: Context,
): void {
  const use = context.rows.use(leaf.set[member]?.draws ?? [], leaf.start, leaf.start + leaf.duration);
  const sign = isKill(leaf) ? -units : units;
  use.row.forEach((row, i) => {
    const entries = context.supply[row];
    if (entries === undefined) return;
    const amount = sign * (use.coefficient[i] ?? 0);
    // Draws of one member on the same partition add up, so that a column occurs once per row.
    if (entries.column.at(-1) === column) {
      entries.coefficient[entries.coefficient.length - 1] = (entries.coefficient.at(-1) ?? 0) + amount;
    } else {
      entries.column.push(column);
      entries.coefficient.push(amount);
    }
  });
}

function addSupplyRows(context: Context): void {
  const { builder, rows, supply } = context;
  const kept = supply.map((entries, row) => canBind(entries, rows.capacity[row] ?? 0, builder));
  for (let row = 0; row < rows.count; row++) {
    const entries = supply[row];
    if (entries === undefined || kept[row] !== true) continue;
    if (impliedByAnother(row, kept, context)) {
      kept[row] = false;
      continue;
    }
    builder.row(entries, -Infinity, rows.capacity[row] ?? 0, () => rows.name(row));
  }
}

function canBind(entries: Terms, capacity: number, builder: MilpBuilder): boolean {
  let most = 0;
  entries.column.forEach((column, i) => {
    most += Math.max(0, entries.coefficient[i] ?? 0) * builder.upperOf(column);
  });
  return most > capacity * (1 + 1e-9);
}

function impliedByAnother(row: number, kept: readonly boolean[], context: Context): boolean {
  const { rows, supply } = context;
  for (let other = rows.block[row] ?? row; rows.block[other] === rows.block[row]; other++) {
    const a = supply[row];
    const b = supply[other];
    if (other === row || kept[other] !== true || a === undefined || b === undefined) continue;
    if (implied(a, rows.capacity[row] ?? 0, b, rows.capacity[other] ?? 0)) return true;
  }
  return false;
}

/** True if row `b <= capB` implies `a <= capA`: every column's fraction of capA is no larger than of capB. */
function implied(a: Terms, capA: number, b: Terms, capB: number): boolean {
  if (capA <= 0 || capB <= 0) return false;
  const fraction = new Map(b.column.map((column, i) => [column, (b.coefficient[i] ?? 0) / capB]));
  for (let i = 0; i < a.column.length; i++) {
    const column = a.column[i] ?? -1;
    if ((a.coefficient[i] ?? 0) / capA > (fraction.get(column) ?? 0) + 1e-12) return false;
    fraction.delete(column);
  }
  // Columns in b alone: capacity returned in b only would have no match in a.
  return [...fraction.values()].every((f) => f >= 0);
}

/** A lower bound of the expression's value. */
function lowest(e: Expression): number {
  if (isLeaf(e)) return isKill(e) ? -e.cost : 0;
  if (e.kind === 'scale') return e.factor * lowest(e.of);
  if (e.kind === 'barrier') return 0;
  const values = e.of.map(lowest);
  return e.kind === 'sum' ? values.reduce((a, b) => a + b, 0) : Math.min(0, ...values);
}

const times = (terms: Terms, factor: number): Terms => ({
  column: terms.column,
  coefficient: terms.coefficient.map((c) => c * factor),
});

/** Sum of linear expressions; a column that occurs twice is merged. */
function concat(parts: readonly Terms[]): Terms {
  const merged = new Map<number, number>();
  for (const part of parts) {
    part.column.forEach((column, i) => merged.set(column, (merged.get(column) ?? 0) + (part.coefficient[i] ?? 0)));
  }
  return { column: [...merged.keys()], coefficient: [...merged.values()] };
}
