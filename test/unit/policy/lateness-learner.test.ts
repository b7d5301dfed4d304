import { describe, expect, it } from '@jest/globals';
import { latenessLearner } from '../../../lib/policy/lateness-learner.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { AttemptEnded } from '../../../lib/policy/learner.ts';

/** The end of one of two tasks of a job that is due at 1000. */
const end = (
  atMs: number,
  over: { outcome?: string; done?: number; deadlineMs?: number | null } = {},
): AttemptEnded => {
  const { outcome = 'succeeded', done = 2, deadlineMs = 1000 } = over;
  const job = {
    deadlineMs: deadlineMs === null ? null : epochMs(deadlineMs),
    stages: [{ tasks: 2, succeeded: done }],
  } as unknown as Job;
  return { kind: 'attempt-ended', atMs: epochMs(atMs), outcome, job } as unknown as AttemptEnded;
};

describe('deadlines met and missed', () => {
  it('are counted once per job, with its last task', () => {
    const learner = latenessLearner();
    learner.observe(end(2000, { done: 1 }));
    learner.observe(end(900));
    learner.observe(end(1000));
    learner.observe(end(1001));
    expect(learner.belief().ofLast(200)).toEqual({ ended: 3, late: 1 });
  });

  it('are not those of failed tasks, and of jobs without a deadline', () => {
    const learner = latenessLearner();
    learner.observe(end(2000, { outcome: 'failed' }));
    learner.observe(end(2000, { deadlineMs: null }));
    expect(learner.belief().ofLast(200)).toEqual({ ended: 0, late: 0 });
    expect(learner.takeDirty().size).toBe(0);
  });

  it('are forgotten after 200 more', () => {
    const learner = latenessLearner();
    learner.observe(end(2000));
    for (let n = 0; n < 199; n++) learner.observe(end(1));
    expect(learner.belief().ofLast(200)).toEqual({ ended: 200, late: 1 });
    learner.observe(end(1));
    expect(learner.belief().ofLast(200)).toEqual({ ended: 200, late: 0 });
  });

  it('survive a restart, and rows that are damaged', () => {
    const learner = latenessLearner();
    learner.observe(end(2000));
    learner.observe(end(1));
    const again = latenessLearner();
    again.restore(learner.takeDirty());
    expect(again.belief().ofLast(200)).toEqual({ ended: 2, late: 1 });
    again.restore(new Map([['lateness/deadlines', 'l?{m']]));
    expect(again.belief().ofLast(200)).toEqual({ ended: 2, late: 1 });
  });
});
