/** What is known of how long a task takes that began before, and was interrupted. */
import { describe, expect, it } from '@jest/globals';
import { attemptId, jobId } from '../../../lib/kernel/ids.ts';
import { epochMs, plus, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import type { Attempt, StageSpec, Task } from '../../../lib/domain/job.ts';
import { certain, distribution, quantile } from '../../../lib/domain/distribution.ts';
import { begunBy, exceedsToDo, expectToDo, meanToDo, quantileToDo, workToDo } from '../../../lib/domain/work-to-do.ts';
import { endOrHold } from '../../../lib/cycle/observe/observe.ts';
import { takeSnapshot } from '../../../lib/cycle/state/snapshot.ts';
import { WorkingState } from '../../../lib/cycle/state/working-state.ts';
import { attempt, job, spec, stage } from '../../support/builders.ts';

const START_MS = epochMs(1_700_000_000_000);
const JOB = jobId('j-1');

/** Tasks of one job whose first attempts began at the start; each is ended as it is said. */
function afterEnds(
  ends: readonly {
    readonly ranS: number;
    readonly outcome: 'interrupted' | 'failed';
    readonly resumedFromS?: number;
    readonly ranBeforeS?: number;
  }[],
  checkpoint: StageSpec['checkpoint'] = null,
) {
  const tasks = ends.map(({ ranBeforeS }, index): Task => ({
    ...{ job: JOB, stage: 'main', index, state: 'running', attempts: 1, failures: 0 },
    keptS: ZERO_S,
    ...(ranBeforeS === undefined ? {} : { ranS: seconds(ranBeforeS) }),
    notBeforeMs: null,
  }));
  const attempts = ends.map(({ resumedFromS = 0 }, index): Attempt =>
    attempt({
      ...{ id: attemptId(`a-${index}`), job: JOB, stage: 'main', index, state: 'running' },
      startedMs: START_MS,
      resumedFromS: seconds(resumedFromS),
    }),
  );
  const stages = [stage({ tasks: ends.length, retries: 5, checkpoint })];
  const counts = { tasks: ends.length, nextFresh: ends.length, running: ends.length };
  const none = { waiting: 0, succeeded: 0, failed: 0, cancelled: 0 };
  const of = job({ id: JOB, spec: spec({ stages }), stages: [{ name: 'main', ...counts, ...none }] });
  const state = new WorkingState({ jobs: [of], attempts, tasks, instances: [], openEffects: [], cursors: new Map() });
  ends.forEach(({ ranS, outcome }, i) => {
    const at = plus(START_MS, seconds(ranS));
    const rest = { exitCode: null, exitSignal: null, keptS: ZERO_S, usage: null, reason: null };
    endOrHold(state, attempts[i] as Attempt, { at, outcome, ...rest });
  });
  const nowMs = plus(START_MS, seconds(1e6));
  const snapshot = () =>
    takeSnapshot({
      ...{ state, nowMs, pools: [], poolById: new Map(), dependencies: new Map(), spentUsd: new Map() },
      limits: { vcpus: 8 },
    });
  const { tasks: waiting, groups } = snapshot();
  /** What runs once each of them has begun again. */
  const againRunning = () => {
    for (const { index } of attempts) {
      const { keptS } = state.beginTask({ job: JOB, stage: 'main', index });
      const id = attemptId(`again-${index}`);
      state.putAttempt(
        attempt({ ...{ id, job: JOB, index, state: 'running', resumedFromS: keptS }, startedMs: nowMs }),
      );
    }
    return snapshot().running;
  };
  return { waiting, groups, againRunning };
}

describe('a task that was interrupted', () => {
  it('is known to take longer than it ran; one that failed, or read a checkpoint first, is not', () => {
    const ended = [
      { ranS: 700, outcome: 'interrupted' },
      { ranS: 700, outcome: 'failed' },
      { ranS: 700, outcome: 'interrupted', resumedFromS: 50 },
    ] as const;
    expect(afterEnds(ended).waiting.map((t) => t.ranS)).toEqual([700, undefined, undefined]);
  });

  it('waits with those that ran about as long, by what is true of all of them', () => {
    const { groups } = afterEnds([700, 800, 5000].map((ranS) => ({ ranS, outcome: 'interrupted' })));
    expect(groups.map((g) => [g.count, g.keptS, g.ranS])).toEqual([
      [2, 0, 700],
      [1, 0, 5000],
    ]);
  });

  it('waits with the others once it keeps more than it ran', () => {
    const kept = { ranS: 60, outcome: 'interrupted', resumedFromS: 800 } as const;
    const saving = { signal: 'SIGTERM', graceS: seconds(60), everyS: seconds(600) } as const;
    const { groups } = afterEnds([kept, { ...kept, ranBeforeS: 700 }], saving);
    expect(groups.map((g) => [g.count, g.keptS, g.ranS])).toEqual([[2, 800, undefined]]);
  });
});

describe('a task that runs again', () => {
  const runtime = distribution([
    [600, 0.5],
    [900, 0.3],
    [5000, 0.2],
  ]);

  it('is still known to take longer than it ran before, until it has run longer', () => {
    const [running] = afterEnds([{ ranS: 700, outcome: 'interrupted' }]).againRunning();
    if (running === undefined) throw new Error('nothing runs');
    const after = (s: number) => begunBy(running, plus(START_MS, seconds(1e6 + s)));
    expect(after(100)).toEqual({ keptS: 100, ranS: 700 });
    expect(quantileToDo(runtime, after(100), 0.5)).toBe(800);
    expect(after(850)).toEqual({ keptS: 850, ranS: 850 });
  });

  it('is as any other where nothing was lost', () => {
    const [running] = afterEnds([{ ranS: 700, outcome: 'failed' }]).againRunning();
    expect(running).toMatchObject({ readS: ZERO_S });
    expect(running).not.toHaveProperty('ranS');
  });
});

describe('the work to do', () => {
  const runtime = distribution([
    [600, 0.5],
    [900, 0.3],
    [5000, 0.2],
  ]);
  const points = ({ atS, weight }: typeof runtime) => [...atS].map((s, i) => [s, weight[i]]);
  const of = (keptS: number, ranS?: number) => ({
    keptS: seconds(keptS),
    ...(ranS === undefined ? {} : { ranS: seconds(ranS) }),
  });

  it('is all of a run that is longer than those before, less what is kept', () => {
    expect(workToDo(runtime, of(0))).toBe(runtime);
    expect(points(workToDo(runtime, of(0, 700)))).toEqual([
      [900, 0.6],
      [5000, 0.4],
    ]);
    expect(points(workToDo(runtime, of(200, 700)))).toEqual([
      [700, 0.6],
      [4800, 0.4],
    ]);
    // What is kept says as much.
    expect(points(workToDo(runtime, of(700, 650)))).toEqual([
      [200, 0.6],
      [4300, 0.4],
    ]);
    // Longer than any that is known: as long again.
    expect(workToDo(certain(seconds(60)), of(0, 100))).toEqual(certain(seconds(200)));
  });

  it('has the mean and quantiles that are asked for alone', () => {
    const left = workToDo(runtime, of(200, 700));
    expect(meanToDo(runtime, of(200, 700))).toBeCloseTo(700 * 0.6 + 4800 * 0.4, 9);
    for (const p of [0.1, 0.5, 0.7, 1]) expect(quantileToDo(runtime, of(200, 700), p)).toBe(quantile(left, p));
    // All is more than 699 s, 4800 s alone are more than 700.
    for (const [s, p] of [
      [699, 1],
      [700, 0.4],
      [4800, 0],
    ] as const)
      expect(exceedsToDo(runtime, of(200, 700), seconds(s))).toBeCloseTo(p, 9);
    expect(expectToDo(runtime, of(200, 700), (s) => s * s)).toBeCloseTo(700 ** 2 * 0.6 + 4800 ** 2 * 0.4, 3);
  });
});
