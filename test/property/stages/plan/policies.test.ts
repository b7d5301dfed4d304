import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { raw } from '../../../../lib/kernel/units.ts';
import type { Allotment } from '../../../../lib/domain/plan.ts';
import { countFits, plusResources, times, vector } from '../../../../lib/domain/resources.ts';
import type { PlanInput } from '../../../../lib/policy/contracts.ts';
import { fcfsPlan } from '../../../../lib/stages/plan/fcfs.ts';
import { overdrawn, unitsAt, type Selection } from '../../../../lib/stages/plan/fill.ts';
import { greedyPlan, greedySelection } from '../../../../lib/stages/plan/greedy.ts';
import { lagrangian, unconstrained } from '../../../../lib/stages/plan/lagrangian.ts';
import { milpPlan, modelOf, planProblem } from '../../../../lib/stages/plan/milp.ts';
import { problemOf, type Problem } from '../../../../lib/stages/plan/problem.ts';
import { assignmentOf, requestOf } from '../../../../lib/stages/plan/request.ts';
import { deterministic } from '../../../../lib/policy/solver.ts';
import { valueOf, violations } from '../../../../lib/stages/plan/strl/value.ts';
import { affordable } from '../../../../lib/stages/plan/whole.ts';
import { scenario, type ScenarioShape } from '../../../../bench/load/scenario.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

const shapes: fc.Arbitrary<ScenarioShape> = fc.record({
  seed: fc.integer({ min: 1, max: 100_000 }),
  groups: fc.integer({ min: 1, max: 12 }),
  pools: fc.integer({ min: 2, max: 12 }),
  tasksPerGroup: fc.integer({ min: 1, max: 6 }),
  instances: fc.integer({ min: 0, max: 5 }),
  supply: fc.constantFrom(0.1, 0.4, 0.8, 3),
  gangs: fc.constantFrom(0, 0.3),
});
const RUNS = { numRuns: runs(60), seed: 20260502 };

/**
 * What the world can carry, counted from the snapshot alone: room after preemption on each pool, vCPUs, tasks, gangs.
 */
function expectPossible(input: PlanInput, allotment: Allotment): void {
  const { snapshot } = input;
  const stopped = new Set(allotment.preemptions.map((p) => p.attempt));
  const startedOf = Map.groupBy(allotment.starts, (s) => s.option.group);
  for (const group of snapshot.groups) {
    const started = (startedOf.get(group.id) ?? []).reduce((sum, s) => sum + s.count, 0);
    const waiting = allotment.waits.filter((w) => w.group === group.id).reduce((sum, w) => sum + w.count, 0);
    expect(started + waiting).toBe(group.count);
    if (group.stage.gang && group.count > 1) expect([0, group.count]).toContain(started);
  }
  // Every start fits on its pool's machines: free room first, else whole new machines within the limit.
  let milliCpu = 0;
  let emptied = 0;
  for (const view of snapshot.instances.values()) {
    milliCpu += raw(view.pool.type.capacity.cpu);
    if (view.attempts.every((r) => stopped.has(r.attempt.id))) emptied += raw(view.pool.type.capacity.cpu);
  }
  const room = new Map<string, number[]>();
  for (const view of snapshot.instances.values()) {
    const back = view.attempts.filter((r) => stopped.has(r.attempt.id)).map((r) => r.attempt.resources);
    const free = vector(back.reduce(plusResources, view.free));
    room.set(
      view.pool.id,
      (room.get(view.pool.id) ?? [0, 0, 0, 0]).map((x, i) => x + (free[i] ?? 0)),
    );
  }
  let boughtMilliCpu = 0;
  for (const [pool, starts] of Map.groupBy(allotment.starts, (s) => s.option.offer.pool)) {
    const type = snapshot.pools.find((p) => p.pool.id === pool)?.pool.type;
    if (type === undefined) throw new Error('a start names a known pool');
    let onNew = 0;
    let cpu = 0;
    for (const start of starts) {
      const need = snapshot.groups.find((g) => g.id === start.option.group)?.need;
      if (need === undefined) throw new Error('a start names a waiting group');
      cpu += raw(times(need, start.count).cpu);
      onNew += (start.count * raw(type.capacity.cpu)) / countFits(need, type.capacity);
    }
    // At least what does not fit into the room's vCPUs is bought; a fraction of a machine per task at most.
    boughtMilliCpu += Math.max(0, Math.min(onNew, cpu - (room.get(pool)?.[0] ?? 0)));
  }
  expect(boughtMilliCpu).toBeLessThanOrEqual(snapshot.limits.vcpus * 1000 - milliCpu + emptied + 1e-6);
}

const returns = (kill: Problem['kills'][number]): number =>
  kill.draws.find((d) => d.partition === 'quota')?.perUnit[0] ?? 0;

/**
 * mCPU of the machines that this cycle's purchases need: the tasks of a pool packed side by side, the last machine
 * whole.
 */
function boughtWhole(problem: Problem, { units }: Selection): number {
  const pools = new Map<string, { mcpu: number; share: number[] }>();
  problem.choices.forEach((choice, i) => {
    const member = choice.members.findIndex((m) => m.name === 'new');
    const tasks = member < 0 ? 0 : (units[unitsAt(i, member)] ?? 0);
    const need = problem.groups[choice.group]?.group.need;
    if (choice.planned.option.slot > 0 || tasks < 1 || need === undefined) return;
    const { id, type } = choice.planned.pool;
    const pool = pools.get(id) ?? { mcpu: raw(type.capacity.cpu), share: [0, 0, 0, 0] };
    const capacity = vector(type.capacity);
    pool.share = vector(need).map((x, k) => (pool.share[k] ?? 0) + (x === 0 ? 0 : (tasks * x) / (capacity[k] ?? 0)));
    pools.set(id, pool);
  });
  return [...pools.values()].reduce((sum, { mcpu, share }) => sum + mcpu * Math.ceil(Math.max(...share) - 1e-6), 0);
}

describe('plan policies', () => {
  const highs = highsSolver();
  const solver = deterministic(highs, 200);
  afterAll(() => highs.close());

  it('never plan more than there is, nor part of a gang, and account for each task', async () => {
    let started = 0;
    let waited = 0;
    let preempted = 0;
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        const input = scenario(shape);
        for (const policy of [greedyPlan, fcfsPlan, milpPlan]) {
          const allotment = await policy(input, solver);
          expectPossible(input, allotment);
          started += allotment.starts.length;
          waited += allotment.waits.length;
          preempted += allotment.preemptions.length;
        }
      }),
      RUNS,
    );
    expect(Math.min(started, waited, preempted)).toBeGreaterThan(seenMoreThan(50));
  });

  it('greedy <= plan <= every bound, and selections keep within all supply rows', async () => {
    let solved = 0;
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        const problem = problemOf(scenario(shape));
        const greedy = greedySelection(problem);
        const { selection, report } = await planProblem(problem, solver);
        const bounds = lagrangian(problem, greedy, { iterations: 60, relativeGap: 0 });
        const slack = 1e-6 * Math.max(1, Math.abs(bounds.bound));
        expect(overdrawn(problem, greedy)).toEqual([]);
        expect(overdrawn(problem, selection)).toEqual([]);
        expect(overdrawn(problem, bounds.best)).toEqual([]);
        expect(report.objective).toBeGreaterThanOrEqual(greedy.objectiveUsd - slack);
        expect(report.objective).toBeLessThanOrEqual((report.bound ?? Infinity) + slack);
        expect(report.objective).toBeLessThanOrEqual(bounds.bound + slack);
        expect(bounds.bound).toBeLessThanOrEqual(unconstrained(problem) + slack);
        if (report.status !== 'not-needed') {
          solved++;
          const lp = await solver.relax(modelOf(problem).milp, { relativeGap: 0, maxNodes: null, maxSeconds: null });
          expect(report.objective).toBeLessThanOrEqual((lp?.bound ?? Infinity) + slack);
          // The Lagrangian cannot be better than the LP where gangs are relaxed alike; never below the plan anyway.
          expect(bounds.bound).toBeGreaterThanOrEqual(report.objective - slack);
        }
      }),
      RUNS,
    );
    expect(solved).toBeGreaterThan(seenMoreThan(20));
  });

  it('stop work for quota only where whole machines can be bought for it, and keep within all supply rows', () => {
    let changed = 0;
    let kept = 0;
    fc.assert(
      fc.property(shapes, (shape) => {
        const problem = problemOf(scenario(shape));
        const greedy = greedySelection(problem);
        const real = affordable(problem, greedy);
        expect(overdrawn(problem, real)).toEqual([]);
        const stopped = (of: Selection): number[] =>
          problem.kills.flatMap((k, i) =>
            (of.kills[i] ?? 0) >= 1 && k.attempts.length > 0 && returns(k) > 0 ? [i] : [],
          );
        if (stopped(greedy).length === 0) expect(real).toBe(greedy);
        // Nothing more is stopped, and what is stopped for quota pays for whole machines.
        problem.kills.forEach((_, i) => expect(real.kills[i]).toBeLessThanOrEqual(greedy.kills[i] ?? 0));
        if (stopped(real).length > 0) {
          kept++;
          const returned = problem.kills.reduce((sum, k, i) => sum + (real.kills[i] ?? 0) * returns(k), 0);
          expect(boughtWhole(problem, real)).toBeLessThanOrEqual(problem.capacity.headroomMilliCpu + returned + 1e-6);
        }
        if (real !== greedy) changed++;
      }),
      { ...RUNS, numRuns: runs(300) },
    );
    expect(Math.min(changed, kept)).toBeGreaterThan(seenMoreThan(10));
  });

  it('the STRL request says the same of the greedy plan as the flat problem does', () => {
    fc.assert(
      fc.property(shapes, (shape) => {
        const problem = problemOf(scenario(shape));
        const greedy = greedySelection(problem);
        const { expression, supply } = requestOf(problem);
        const assignment = assignmentOf(problem, greedy);
        expect(violations(expression, supply, assignment)).toEqual([]);
        expect(valueOf(expression, assignment)).toBeCloseTo(greedy.objectiveUsd, 6);
      }),
      RUNS,
    );
  });

  it('does not depend on the order of groups, pools or instances', async () => {
    await fc.assert(
      fc.asyncProperty(shapes, async (shape) => {
        const input = scenario(shape);
        const { snapshot } = input;
        const turned: PlanInput = {
          ...input,
          snapshot: {
            ...snapshot,
            groups: [...snapshot.groups].reverse(),
            pools: [...snapshot.pools].reverse(),
            running: [...snapshot.running].reverse(),
            instances: new Map([...snapshot.instances.values()].reverse().map((view) => [view.instance.id, view])),
          },
          offers: new Map([...input.offers].reverse()),
        };
        for (const policy of [greedyPlan, fcfsPlan, milpPlan]) {
          const [a, b] = [await policy(input, solver), await policy(turned, solver)];
          expect(withoutTime(b)).toEqual(withoutTime(a));
        }
      }),
      { numRuns: runs(30), seed: 20260503 },
    );
  });
});

const withoutTime = (a: Allotment): unknown => ({ ...a, solve: { ...a.solve, elapsedMs: 0 } });
