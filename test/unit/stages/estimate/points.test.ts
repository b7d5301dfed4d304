import { describe, expect, it } from '@jest/globals';
import { raw, seconds, type Seconds } from '../../../../lib/kernel/units.ts';
import { quantileRemaining } from '../../../../lib/domain/distribution.ts';
import { withTime, type RunningTimes } from '../../../../lib/domain/running-times.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import type { AttemptEnded } from '../../../../lib/policy/learner.ts';
import { DecisionMemory } from '../../../../lib/policy/memory.ts';
import type { EstimateContext } from '../../../../lib/policy/contracts.ts';
import { jvuPredictTasks, told } from '../../../../lib/stages/estimate/points.ts';
import { taskAverageLearner } from '../../../../lib/stages/estimate/task-average-learner.ts';
import { attempt, job, snapshot, spec, stage } from '../../../support/builders.ts';
import { config } from '../../../support/decision-world.ts';

/** The last success of a job whose tasks took these times; `open` tasks have not ended. */
function ended(name: string, times: readonly number[], open = 0): AttemptEnded {
  const tasks = times.length + open;
  const of = job({ name, spec: spec({ name: 'sort', owner: 'ada', stages: [stage({ tasks })] }) });
  const counted = times.reduce<RunningTimes | undefined>((sum, s) => withTime(sum, seconds(s)), undefined);
  const done: Job = {
    ...of,
    stages: of.stages.map((s) => ({
      ...s,
      succeeded: times.length,
      ...(tasks > 1 && counted !== undefined && { times: counted }),
    })),
  };
  const [only] = of.spec.stages;
  const runtimeS = seconds(times.at(-1) ?? NaN);
  return { kind: 'attempt-ended', job: done, stage: only, attempt: attempt(), runtimeS } as unknown as AttemptEnded;
}

const waiting = (expectedRuntimeS: Seconds | null): Job =>
  job({ name: 'j-new', spec: spec({ name: 'sort', owner: 'ada', stages: [stage({ expectedRuntimeS })] }) });

function contextOf(of: Job, events: readonly AttemptEnded[] = []): EstimateContext {
  const learner = taskAverageLearner();
  for (const event of events) learner.observe(event);
  const beliefs = { of: () => learner.belief() } as unknown as EstimateContext['beliefs'];
  return {
    snapshot: snapshot({ jobs: new Map([[of.id, of]]) }),
    config: config(),
    memory: new DecisionMemory(),
    beliefs,
  };
}

const pointOf = (estimates: ReturnType<typeof told>, of: Job): number =>
  estimates.get(`${of.id}/main`)?.runtime.atS[0] ?? NaN;

describe('told', () => {
  it('is what the user says, and nothing else', () => {
    const of = waiting(seconds(600));
    const [runtime] = [told(contextOf(of)).get(`${of.id}/main`)?.runtime];
    expect([...(runtime?.atS ?? [])]).toEqual([600]);
  });

  it('is a middling time where nothing is said', () => {
    const of = waiting(null);
    expect(told(contextOf(of)).get(`${of.id}/main`)?.basis).toBe('prior');
    expect(pointOf(told(contextOf(of)), of)).toBeGreaterThan(50);
  });

  it('takes a task past its estimate to be half done', () => {
    const of = waiting(seconds(600));
    const runtime = told(contextOf(of)).get(`${of.id}/main`)?.runtime;
    if (runtime === undefined) throw new Error('the stage has a forecast');
    expect(raw(quantileRemaining(runtime, seconds(100), 0.5))).toBe(500);
    expect(raw(quantileRemaining(runtime, seconds(600), 0.5))).toBe(600);
    expect(raw(quantileRemaining(runtime, seconds(900), 0.5))).toBe(900);
  });
});

describe('jvupredict-tasks', () => {
  const of = waiting(seconds(5));

  it('counts each job once, with its average task running time', () => {
    // Averages 20 and 40, the second of many tasks. Single tasks would say 10, or 39.8.
    const events = [
      ended('j-1', [10, 20, 30]),
      ended(
        'j-2',
        Array.from({ length: 100 }, () => 40),
      ),
    ];
    const point = pointOf(jvuPredictTasks(contextOf(of, events)), of);
    expect(point).toBeGreaterThanOrEqual(20);
    expect(point).toBeLessThanOrEqual(40);
    const one = pointOf(jvuPredictTasks(contextOf(of, [ended('j-1', [10, 20, 30])])), of);
    expect(one).toBeCloseTo(20, 9);
  });

  it('counts a job of one task, and none that has not ended', () => {
    expect(pointOf(jvuPredictTasks(contextOf(of, [ended('j-1', [70])])), of)).toBeCloseTo(70, 9);
    expect(pointOf(jvuPredictTasks(contextOf(of, [ended('j-1', [70, 80], 1)])), of)).toBe(5);
  });

  it('is as told while no earlier job is known', () => {
    expect(pointOf(jvuPredictTasks(contextOf(of)), of)).toBe(5);
  });

  it('keeps one record from decision to decision', () => {
    const context = contextOf(of, [ended('j-1', [70])]);
    const first = jvuPredictTasks(context).get(`${of.id}/main`);
    expect(jvuPredictTasks(context).get(`${of.id}/main`)).toBe(first);
  });
});

describe('learner of average task running times', () => {
  it('restores what it stored', () => {
    const learner = taskAverageLearner();
    learner.observe(ended('j-1', [10, 20, 30]));
    const rows = learner.takeDirty();
    expect([...rows.keys()].every((key) => key.startsWith(learner.prefix))).toBe(true);
    const other = taskAverageLearner();
    other.restore(rows);
    expect([...other.takeDirty()]).toEqual([]);
    const [a, b] = [learner, other].map((l) => {
      const of = waiting(null);
      const beliefs = { of: () => l.belief() } as unknown as EstimateContext['beliefs'];
      return pointOf(jvuPredictTasks({ ...contextOf(of), beliefs }), of);
    });
    expect(b).toBe(a);
  });
});
