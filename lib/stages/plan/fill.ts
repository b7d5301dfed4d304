/**
 * Fills choices in a given order under the supply of the whole window. The greedy plan, the first-come-first-served
 * plan, and the repair of a Lagrangian solution differ only in the order. All-or-nothing groups start whole or not at
 * all. Choices without room then preempt the cheapest work, if that brings more than it costs.
 */
import { isUrgent } from '../../domain/job.ts';
import type { Kill } from './kills.ts';
import { slotsUntilFree } from './preempt.ts';
import { MOST_MEMBERS, type Choice, type Problem } from './problem.ts';
import type { RowUse } from './strl/supply.ts';

/** Units per member of each choice, and per kill. */
export interface Selection {
  /**
   * Indexed by `unitsAt`. One array for all, because large plans have tens of thousands of choices and make several
   * selections.
   */
  readonly units: Float64Array;
  readonly kills: Float64Array;
  readonly objectiveUsd: number;
}

export const unitsAt = (choice: number, member: number): number => choice * MOST_MEMBERS + member;

/** Units of an empty selection. */
export const noUnits = ({ choices }: Pick<Problem, 'choices'>): Float64Array =>
  new Float64Array(choices.length * MOST_MEMBERS);

/** Tasks that a selection starts by a choice, over its members. */
export function tasksBy({ units }: Pick<Selection, 'units'>, choice: number): number {
  let total = 0;
  for (let member = 0; member < MOST_MEMBERS; member++) total += units[unitsAt(choice, member)] ?? 0;
  return total;
}

const EPS = 1e-9;

/** A selection in the making, with the supply left under it. */
export class Filling {
  readonly problem: Problem;
  readonly free: Float64Array;
  readonly waiting: Float64Array;
  readonly units: Float64Array;
  readonly kills: Float64Array;

  constructor(problem: Problem) {
    this.problem = problem;
    this.free = Float64Array.from(problem.rows.capacity);
    this.waiting = Float64Array.from(problem.groups, (g) => g.group.count);
    this.units = noUnits(problem);
    this.kills = new Float64Array(problem.kills.length);
  }

  /** Filling state of a selection; the selection itself is not changed. */
  static of(problem: Problem, { units, kills }: Selection): Filling {
    const filling = new Filling(problem);
    problem.choices.forEach(({ group, members }, index) => {
      members.forEach((_, member) => {
        const count = units[unitsAt(index, member)] ?? 0;
        filling.change(index, member, count);
        filling.waiting[group] = (filling.waiting[group] ?? 0) - count;
      });
    });
    kills.forEach((count, index) => stop(filling, index, count));
    return filling;
  }

  /** Units of a member that still fit, at most `wanted`. */
  fits(use: RowUse, wanted: number): number {
    let count = wanted;
    for (let i = 0; i < use.row.length && count > 0; i++) {
      const a = use.coefficient[i] ?? 0;
      if (a > 0) {
        const left = this.free[use.row[i] ?? 0] ?? 0;
        count = Math.min(count, Math.floor(left / a + EPS));
      }
    }
    return Math.max(0, count);
  }

  take(use: RowUse, count: number): void {
    for (let i = 0; i < use.row.length; i++) {
      const row = use.row[i] ?? 0;
      this.free[row] = (this.free[row] ?? 0) - count * (use.coefficient[i] ?? 0);
    }
  }

  /** Starts as many tasks by the choice as fit, until it has `most`. */
  choose(index: number, most: number): void {
    const choice = this.problem.choices[index];
    const group = choice && this.problem.groups[choice.group];
    if (choice === undefined || group === undefined) return;
    if (most < 1 || (this.waiting[choice.group] ?? 0) < 1) return;
    const already = tasksBy(this, index);
    const waiting = Math.min(this.waiting[choice.group] ?? 0, group.gang && most > 0 ? Infinity : most - already);
    if (waiting < 1) return;
    let total = 0;
    // Most choices of a full supply find nothing: nothing is made for them.
    let taken: number[] | null = null;
    const { members } = choice;
    for (let m = 0; m < members.length; m++) {
      const member = members[m] as Choice['members'][number];
      const count = this.fits(member.use, Math.min(waiting - total, member.atMost - this.unitsOf(index, m)));
      if (count === 0) continue;
      this.change(index, m, count);
      total += count;
      (taken ??= members.map(() => 0))[m] = count;
    }
    if (group.gang && total < waiting) {
      taken?.forEach((count, m) => this.change(index, m, -count));
      return;
    }
    if (total > 0) this.waiting[choice.group] = (this.waiting[choice.group] ?? 0) - total;
  }

  unitsOf(index: number, member: number): number {
    return this.units[unitsAt(index, member)] ?? 0;
  }

  /** Adds units of a choice's member, or takes them away. */
  change(index: number, member: number, count: number): void {
    const use = this.problem.choices[index]?.members[member]?.use;
    if (use === undefined || count === 0) return;
    this.take(use, count);
    this.units[unitsAt(index, member)] = this.unitsOf(index, member) + count;
  }

  selection(): Selection {
    return { units: this.units, kills: this.kills, objectiveUsd: objectiveOf(this.problem, this.units, this.kills) };
  }
}

/** Expected worth less cost of a selection, USD. */
export function objectiveOf(problem: Problem, units: Float64Array, kills: Float64Array): number {
  let total = 0;
  problem.choices.forEach(({ members, netUsd }, i) => {
    for (let member = 0; member < members.length; member++) total += (units[unitsAt(i, member)] ?? 0) * netUsd;
  });
  problem.kills.forEach((kill, i) => (total -= (kills[i] ?? 0) * kill.costUsd));
  return total;
}

/** Rows that a selection overdraws, by name: empty for every plan. */
export function overdrawn(problem: Problem, selection: Selection): readonly string[] {
  const free = Float64Array.from(problem.rows.capacity);
  const take = (use: RowUse, count: number): void => {
    use.row.forEach((row, i) => (free[row] = (free[row] ?? 0) - count * (use.coefficient[i] ?? 0)));
  };
  problem.choices.forEach((choice, i) =>
    choice.members.forEach((m, k) => take(m.use, selection.units[unitsAt(i, k)] ?? 0)),
  );
  problem.kills.forEach((kill, i) => take(kill.use, -(selection.kills[i] ?? 0)));
  const names: string[] = [];
  free.forEach((left, row) => {
    if (left < -1e-6 * Math.max(1, problem.rows.capacity[row] ?? 0)) names.push(problem.rows.name(row));
  });
  return names;
}

export interface FillOptions {
  /**
   * Choices of this cycle that may preempt running work. `deadlines`: the order is one of strict priority, group by
   * group, and best-effort work preempts nothing. Work preempted for a later job of its own class would be first again
   * as soon as it waits. `nobody`: the same order, and running work runs to its end.
   */
  readonly preemptFor: 'all' | 'deadlines' | 'nobody';
  /** A fractional plan to follow first, as far as whole tasks go; its stops that nobody needs are undone. */
  readonly guide?: Guide;
}

/** A fractional plan: tasks per choice and units per kill, as a relaxation gives them. */
export interface Guide {
  readonly tasks: Float64Array;
  readonly kills: Float64Array;
}

/** Fills in the order of `order` (indices of choices). */
export function fill(problem: Problem, order: readonly number[], options: FillOptions): Selection {
  const filling = new Filling(problem);
  const { guide } = options;
  const stopped: number[] = [];
  if (guide !== undefined) {
    problem.kills.forEach((kill, index) => {
      const wanted = Math.ceil((guide.kills[index] ?? 0) - ROUND_DOWN);
      for (let n = 0; n < wanted && mayStop(filling, kill, index); n++) stop(filling, index, 1);
      if (wanted > 0) stopped.push(index);
    });
    // Full starts of the relaxation first, then partial ones, both in the given order.
    for (const index of order) filling.choose(index, Math.floor((guide.tasks[index] ?? 0) + ROUND_DOWN));
    for (const index of order) filling.choose(index, Math.ceil((guide.tasks[index] ?? 0) - ROUND_DOWN));
  }
  if (options.preemptFor !== 'all') return inTurn(filling, order, options).selection();
  for (const index of order) filling.choose(index, Infinity);
  if (stopped.length > 0) keepRunning(filling, stopped);
  if (problem.kills.length > 0) makeRoom(filling, order, { giving: givingByRow(problem.kills, () => true) });
  return filling.selection();
}

/**
 * Each group takes free room first, then room that can be freed: idle instances for every group, running work for
 * deadlines at most. Groups go one after another: a later group on an idle instance would keep an earlier one out, or
 * be stopped for it by the next plan.
 */
function inTurn(filling: Filling, order: readonly number[], { preemptFor }: FillOptions): Filling {
  const { problem } = filling;
  const all = givingByRow(problem.kills, () => true);
  const idle = givingByRow(problem.kills, (kill) => kill.attempts.length === 0);
  let trials = 0;
  for (const [of, choices] of Map.groupBy(order, (index) => problem.choices[index]?.group ?? -1)) {
    for (const index of choices) filling.choose(index, Infinity);
    if (problem.kills.length === 0 || (filling.waiting[of] ?? 0) < 1) continue;
    const preempts = preemptFor === 'deadlines' && isUrgent(problem.groups[of]?.group.class ?? 'best-effort');
    const giving = preempts ? all : idle;
    trials += makeRoom(filling, choices, { giving, most: MOST_TRIALS - trials });
  }
  return filling;
}

/** Fills groups one after another. Idle instances are given back where that makes room; running work runs on. */
export const fillInTurn = (filling: Filling, order: readonly number[]): Filling =>
  inTurn(filling, order, { preemptFor: 'nobody' });

/** Less than this of a unit in a fractional plan is noise. */
const ROUND_DOWN = 0.05;

/** Undoes stops whose capacity nobody took, the last one first. */
export function keepRunning(filling: Filling, stopped: readonly number[]): void {
  for (const index of [...stopped].reverse()) {
    const kill = filling.problem.kills[index];
    const spare = (): boolean =>
      kill !== undefined &&
      kill.use.row.every((row, i) => (filling.free[row] ?? 0) - (kill.use.coefficient[i] ?? 0) >= -EPS);
    while ((filling.kills[index] ?? 0) > 0 && spare()) stop(filling, index, -1);
  }
}

/** Most choices tried by the preemption pass, and most kills looked at for them: it is quadratic in their numbers. */
const MOST_TRIALS = 400;
const MOST_LOOKS = 500_000;

/** Kills that return capacity on each row, cheapest per amount first. */
interface Giving {
  readonly byRow: ReadonlyMap<number, readonly number[]>;
  looksLeft: number;
}

/**
 * For choices that found no room until stopped work would have left it, in order: stops the cheapest work that makes
 * room, where it pays.
 * Returns how many choices it looked at.
 */
function makeRoom(
  filling: Filling,
  order: readonly number[],
  { giving, most = MOST_TRIALS }: { readonly giving: Giving; readonly most?: number },
): number {
  const { problem } = filling;
  let trials = 0;
  const freeIn = slotsUntilFree(problem.input.config);
  for (const index of order) {
    const choice = problem.choices[index];
    if (choice === undefined || choice.planned.option.slot > freeIn) continue;
    const waiting = filling.waiting[choice.group] ?? 0;
    if (waiting < 1) continue;
    if (trials >= most) break;
    trials++;
    const atATime = problem.groups[choice.group]?.gang === true ? waiting : 1;
    while ((filling.waiting[choice.group] ?? 0) >= 1 && makeRoomFor(filling, choice, atATime, giving)) {
      const before = filling.waiting[choice.group];
      filling.choose(index, Infinity);
      if (filling.waiting[choice.group] === before) break;
    }
  }
  return trials;
}

function makeRoomFor(filling: Filling, choice: Choice, count: number, giving: Giving): boolean {
  const { problem } = filling;
  const member = choice.members.find((m) => m.atMost >= count);
  if (member === undefined) return false;
  const stopped: number[] = [];
  const undo = (): void => {
    for (const kill of stopped) stop(filling, kill, -1);
  };
  const gainUsd = count * choice.netUsd;
  let spent = 0;
  for (let i = 0; i < member.use.row.length; i++) {
    const row = member.use.row[i] ?? 0;
    const needed = count * (member.use.coefficient[i] ?? 0);
    for (const kill of giving.byRow.get(row) ?? []) {
      if ((filling.free[row] ?? 0) >= needed - EPS || spent >= gainUsd || giving.looksLeft-- <= 0) break;
      const draft = problem.kills[kill];
      // Capacity that a kill takes (attempts that another may stop, room of a released instance) must still be there.
      while (
        draft !== undefined &&
        spent < gainUsd &&
        (filling.free[row] ?? 0) < needed - EPS &&
        mayStop(filling, draft, kill)
      ) {
        stop(filling, kill, 1);
        stopped.push(kill);
        spent += draft.costUsd;
      }
    }
    if ((filling.free[row] ?? 0) < needed - EPS || spent >= gainUsd) {
      undo();
      return false;
    }
  }
  // Releasing an instance takes its room, so the choice may no longer fit.
  if (filling.fits(member.use, count) < count) {
    undo();
    return false;
  }
  return true;
}

function mayStop(filling: Filling, kill: Kill, index: number): boolean {
  if ((filling.kills[index] ?? 0) + 1 > kill.atMost) return false;
  const { row, coefficient } = kill.use;
  for (let i = 0; i < row.length; i++) {
    const gives = coefficient[i] ?? 0;
    if (gives < 0 && (filling.free[row[i] ?? 0] ?? 0) + gives < -EPS) return false;
  }
  return true;
}

/** Stops units of a kill, or (less than 0) lets them run on. */
export function stop(filling: Filling, index: number, count: number): void {
  const kill = filling.problem.kills[index];
  if (kill === undefined) return;
  filling.take(kill.use, -count);
  filling.kills[index] = (filling.kills[index] ?? 0) + count;
}

/** Those that `may` be chosen. */
function givingByRow(kills: readonly Kill[], may: (kill: Kill) => boolean): Giving {
  const byRow = new Map<number, { readonly kill: number; readonly price: number }[]>();
  kills.forEach((kill, index) => {
    if (!may(kill)) return;
    kill.use.row.forEach((row, i) => {
      const gives = kill.use.coefficient[i] ?? 0;
      if (gives <= 0) return;
      const list = byRow.get(row) ?? [];
      list.push({ kill: index, price: kill.costUsd / gives });
      byRow.set(row, list);
    });
  });
  const sorted = [...byRow].map(
    ([row, list]) => [row, list.sort((a, b) => a.price - b.price).map((x) => x.kill)] as const,
  );
  return { byRow: new Map(sorted), looksLeft: MOST_LOOKS };
}
