/**
 * Whole instances, which the plan's model does not know. A task draws its part of a machine's vCPUs from the quota, so
 * the plan may preempt work on a small instance for a quarter of a large one that cannot be bought. Then work stops,
 * nothing starts, and the next plan, which finds another instance idle, does the same again.
 * So a plan that preempts for quota must be able to buy its purchases in whole machines. If they do not fit into the
 * quota with the returned vCPUs, stops are taken back, those with the highest cost per returned vCPU first, until they
 * fit or no stop is left; starts without quota then wait, the least worth first. Plans without stops are not changed:
 * the remaining quota may still buy smaller machines than planned. O(stops x (choices + rows)), and nothing if nothing
 * is stopped for quota.
 */
import { KINDS, machinesFor, vector } from '../../domain/resources.ts';
import { milliCpuOf, type Pool } from '../../domain/pool.ts';
import { QUOTA } from './supply.ts';
import { Filling, keepRunning, stop, unitsAt, type Selection } from './fill.ts';
import type { Choice, Problem } from './problem.ts';

export function affordable(problem: Problem, selection: Selection): Selection {
  const returning = quotaStops(problem, selection);
  if (returning.length === 0 || fitsWhole(problem, selection)) return selection;
  const filling = Filling.of(problem, selection);
  for (const kill of returning) {
    while ((filling.kills[kill] ?? 0) >= 1 && !fitsWhole(problem, filling)) {
      stop(filling, kill, -1);
      dropOverdrawn(filling);
    }
  }
  const stopped = problem.kills.flatMap((_, index) => ((filling.kills[index] ?? 0) > 0 ? [index] : []));
  keepRunning(filling, stopped);
  // The beneficiaries of the undone stops are gone; choices that they crowded out may have room again.
  const order = problem.choices.map((_, index) => index).sort((a, b) => netOf(problem, b) - netOf(problem, a) || a - b);
  for (const index of order) if (problem.choices[index]?.members[0]?.name === 'room') filling.choose(index, Infinity);
  return filling.selection();
}

const netOf = (problem: Problem, index: number): number => problem.choices[index]?.netUsd ?? 0;

/** Stops of running work that return quota, dearest per vCPU first. */
function quotaStops(problem: Problem, { kills }: Selection): readonly number[] {
  const dear = new Map<number, number>();
  problem.kills.forEach((kill, index) => {
    const returned = quotaOf(kill.draws);
    if ((kills[index] ?? 0) >= 1 && kill.attempts.length > 0 && returned > 0) dear.set(index, kill.costUsd / returned);
  });
  return [...dear.keys()].sort((a, b) => (dear.get(b) ?? 0) - (dear.get(a) ?? 0) || a - b);
}

const quotaOf = (draws: Problem['kills'][number]['draws']): number =>
  draws.find((d) => d.partition === QUOTA)?.perUnit[0] ?? 0;

/** True if this cycle's purchases, in whole machines, fit into the free quota and the vCPUs returned by stops. */
function fitsWhole(problem: Problem, { units, kills }: Pick<Selection, 'units' | 'kills'>): boolean {
  const needs = new Map<Pool, Float64Array>();
  problem.choices.forEach((choice, index) => {
    const { option, pool } = choice.planned;
    const member = choice.members.findIndex((m) => m.name === 'new');
    const tasks = member < 0 ? 0 : (units[unitsAt(index, member)] ?? 0);
    const group = problem.groups[choice.group]?.group;
    if (option.slot > 0 || tasks < 1 || group === undefined) return;
    const sum = needs.get(pool) ?? new Float64Array(KINDS);
    vector(group.need).forEach((x, kind) => (sum[kind] = (sum[kind] ?? 0) + x * tasks));
    needs.set(pool, sum);
  });
  let wanted = 0;
  for (const [pool, sum] of needs) {
    wanted += machinesFor(sum, pool.type.capacity) * milliCpuOf(pool);
  }
  const returned = problem.kills.reduce((n, kill, index) => n + (kills[index] ?? 0) * quotaOf(kill.draws), 0);
  return wanted <= problem.capacity.headroomMilliCpu + returned + 1e-6;
}

/** Takes starts back, the least worth first, until no supply is overdrawn. All-or-nothing groups go whole. */
function dropOverdrawn(filling: Filling): void {
  const { problem } = filling;
  const order = problem.choices.map((_, index) => index).sort((a, b) => netOf(problem, a) - netOf(problem, b) || a - b);
  for (const index of order) {
    const choice = problem.choices[index];
    if (choice === undefined || !filling.free.some((left) => left < -1e-6)) continue;
    choice.members.forEach((_, member) => dropMember(filling, { choice, index, member }));
  }
}

function dropMember(
  filling: Filling,
  { choice, index, member }: { readonly choice: Choice; readonly index: number; readonly member: number },
): void {
  const use = choice.members[member]?.use;
  const overdraws = (): boolean => use?.row.some((row) => (filling.free[row] ?? 0) < -1e-6) === true;
  const gang = filling.problem.groups[choice.group]?.gang === true;
  const taken = (m: number): number => filling.unitsOf(index, m);
  const give = (m: number, count: number): void => {
    filling.change(index, m, -count);
    filling.waiting[choice.group] = (filling.waiting[choice.group] ?? 0) + count;
  };
  while (taken(member) >= 1 && overdraws()) {
    if (gang) choice.members.forEach((_, m) => give(m, taken(m)));
    else give(member, 1);
  }
}
