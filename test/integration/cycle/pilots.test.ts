import { describe, expect, it } from '@jest/globals';
import type { Attempt } from '../../../lib/domain/job.ts';
import type { Allotment, EarliestStart, PlannedStart } from '../../../lib/domain/plan.ts';
import { randomOrder, taskAt } from '../../../lib/domain/task-order.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { PlanInput, Stages } from '../../../lib/policy/contracts.ts';
import { plan as readPlan } from '../../../lib/policy/own/allotments.ts';
import type { Solver } from '../../../lib/policy/solver.ts';
import { POLICY_KIT } from '../../../lib/stages/kit.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { after, calmTrace, START_MS } from '../../support/mixed-workload.ts';

const J = jobId('j-sampled');
const { siblings } = POLICY_KIT;

/** One task of each stage runs first; its siblings start once it has told how long they take. */
function piloting(of: Stages<Solver>, told: number[]): Stages<Solver> {
  return {
    ...of,
    plan: async (input, solver) => {
      const { snapshot } = input;
      const planned = await of.plan(input, solver);
      const earliest: EarliestStart[] = [];
      const isUnknown = (stageName: string): boolean => {
        const times = siblings.finished(snapshot, { job: J, stage: stageName });
        if (times !== null) told.push(raw(siblings.mean(times)));
        return times === null;
      };
      for (const s of snapshot.jobs.get(J)?.stages ?? [])
        earliest.push({ job: J, stage: s.name, notBeforeMs: isUnknown(s.name) ? after(40_000) : null });
      const starts = planned.starts.flatMap((s): PlannedStart[] => {
        const group = snapshot.groups.find((g) => g.id === s.option.group);
        return group !== undefined && isUnknown(group.stage.name) ? [{ ...s, count: 1, role: 'pilot' }] : [s];
      });
      const isUp = [...snapshot.instances.values()].some((v) => v.instance.state === 'ready');
      return { ...planned, starts, ...(isUp ? { earliest } : {}) };
    },
  };
}

describe.each([
  ['in one process', false],
  ['in steps', true],
])('a plan that names pilots and earliest starts, %s', (_, stepped) => {
  it('starts one task as a pilot, and its siblings once it has ended', async () => {
    const told: number[] = [];
    const bench = new EngineBench({
      trace: calmTrace,
      startMs: START_MS,
      ...(stepped ? { stepped } : { reusesSlots: true }),
      stages: (of) => piloting(of, told),
    });
    const main = stage({ tasks: 4, env: { RUNTIME_S: '1200' }, expectedRuntimeS: seconds(1200) });
    await bench.submit([job({ name: J, submittedMs: START_MS, spec: spec({ stages: [main] }) })]);
    await bench.drive();
    expect(await discrepancies(bench)).toEqual([]);
    const attempts = [...(await bench.store.attempts(J))].sort((a, b) => raw(a.placedMs) - raw(b.placedMs));
    const TASKS = [0, 1, 2, 3];
    expect(attempts.map((a: Attempt) => a.role)).toEqual(['pilot', undefined, undefined, undefined]);
    expect(attempts.map((a) => a.index).toSorted((a, b) => a - b)).toEqual(TASKS);
    expect(attempts[0]?.index).toBe(taskAt(randomOrder(J, { name: main.name, tasks: TASKS.length }), 0));
    const endedMs = raw(attempts[0]!.endedMs!);
    for (const a of attempts.slice(1)) {
      expect(raw(a.placedMs)).toBeGreaterThanOrEqual(endedMs);
      expect(raw(a.placedMs)).toBeLessThan(endedMs + 400_000);
    }
    expect(told[0]).toBeCloseTo(1200, -2);
  });
});

describe('a plan of the user’s own', () => {
  const input = { snapshot: { jobs: new Map(), groups: [], pools: [], running: [] } } as unknown as PlanInput;
  const plan = (over: Partial<Allotment>): Allotment => ({
    ...{ starts: [], deferred: [], preemptions: [], moves: [], waits: [], solve: POLICY_KIT.unsolved(0) },
    ...over,
  });

  it('may not name earliest starts of what does not exist, nor times that are none', () => {
    const of = job({ name: J, spec: spec({ stages: [stage({ tasks: 2 })] }) });
    const known = { ...input, snapshot: { ...input.snapshot, jobs: new Map([[J, of]]) } };
    const main = { job: J, stage: 'main' };
    const said = (...earliest: EarliestStart[]) => readPlan(plan({ earliest }), known);
    const two = [
      { ...main, notBeforeMs: null },
      { ...main, index: 1, notBeforeMs: START_MS },
    ];
    expect(said(...two).earliest).toEqual(two);
    expect(() => said({ ...main, stage: 'other', notBeforeMs: null })).toThrow('which does not exist');
    expect(() => said({ ...main, index: 2, notBeforeMs: null })).toThrow('task 2 of j-sampled/main');
    expect(() => said({ ...main, notBeforeMs: NaN as never })).toThrow('an earliest start is');
  });
});
