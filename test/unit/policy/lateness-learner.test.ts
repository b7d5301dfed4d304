import { describe, expect, it } from '@jest/globals';
import { latenessLearner } from '../../../lib/policy/lateness-learner.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { AttemptEnded } from '../../../lib/policy/learner.ts';

interface Over {
  readonly outcome?: string;
  readonly done?: number;
  readonly deadlineMs?: number | null;
  readonly job?: string;
  /** Start of the job and of its last task; default: it waited for all but an instant of its time. */
  readonly beganMs?: number;
  readonly lastMs?: number;
  readonly dependsOn?: readonly string[];
  readonly number?: number;
  readonly role?: string;
  /** Start-up of its instance. */
  readonly startUpMs?: number;
}

/** The end of one of two tasks of a job that is due at 1000 and was submitted at 0. */
const end = (atMs: number, over: Over = {}): AttemptEnded => {
  const { outcome = 'succeeded', done = 2, deadlineMs = 1000, beganMs = atMs - 1, lastMs = beganMs } = over;
  const job = {
    id: jobId(over.job ?? 'j'),
    submittedMs: epochMs(0),
    startedMs: epochMs(beganMs),
    deadlineMs: deadlineMs === null ? null : epochMs(deadlineMs),
    stages: [{ tasks: 2, succeeded: done }],
  } as unknown as Job;
  const attempt = { startedMs: epochMs(lastMs), number: over.number ?? 1, role: over.role };
  const instance = { requestedMs: epochMs(0), readyMs: epochMs(over.startUpMs ?? 0) };
  const stage = { dependsOn: over.dependsOn ?? [] };
  return {
    kind: 'attempt-ended',
    atMs: epochMs(atMs),
    outcome,
    job,
    stage,
    attempt,
    instance,
  } as unknown as AttemptEnded;
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

  it('are met where a job would have been late without any risk', () => {
    const late = (over: Over): number => {
      const learner = latenessLearner();
      learner.observe(end(1500, over));
      return learner.belief().ofLast(200).late;
    };
    // Half a second late: begun at once it would have been as late.
    expect(late({ beganMs: 0 })).toBe(0);
    expect(late({ beganMs: 499 })).toBe(0);
    expect(late({ beganMs: 500 })).toBe(1);
    // Its last task waited, and depends on nothing.
    expect(late({ beganMs: 0, lastMs: 600 })).toBe(1);
    expect(late({ beganMs: 0, lastMs: 600, dependsOn: ['first'] })).toBe(0);
    // A new instance would have had to start up too.
    expect(late({ beganMs: 600, startUpMs: 100 })).toBe(1);
    expect(late({ beganMs: 600, startUpMs: 101 })).toBe(0);
    // A copy begins late because the original is slow.
    expect(late({ beganMs: 0, lastMs: 600, role: 'copy' })).toBe(0);
  });

  it('are met in spite of a stop, where what ended last was not stopped and waited for nothing', () => {
    const late = (over: Over): number => {
      const learner = latenessLearner();
      learner.observe(end(300, { outcome: 'moved', done: 0 }));
      learner.observe(end(1500, { beganMs: 0, ...over }));
      return learner.belief().ofLast(200).late;
    };
    expect(late({ number: 1 })).toBe(0);
    expect(late({ number: 2 })).toBe(1);
    expect(late({ number: 1, dependsOn: ['first'] })).toBe(1);
  });

  it('are missed by a job whose last task was stopped, whatever it waited', () => {
    for (const outcome of ['interrupted', 'moved', 'preempted']) {
      const learner = latenessLearner();
      learner.observe(end(300, { outcome, done: 0 }));
      learner.observe(end(1500, { job: 'other', beganMs: 0 }));
      const again = latenessLearner();
      again.restore(learner.takeDirty());
      for (const one of [learner, again]) {
        one.observe(end(1500, { beganMs: 0, number: 2 }));
        expect(one.belief().ofLast(200)).toEqual({ ended: 2, late: 1 });
        expect(one.takeDirty().get('lateness/lost')).toBe('');
      }
    }
  });

  it('remembers no more than 1,000 jobs that lost a task', () => {
    const learner = latenessLearner();
    for (let n = 0; n < 1500; n++) learner.observe(end(300, { outcome: 'interrupted', done: 0, job: `j-${n}` }));
    expect(learner.takeDirty().get('lateness/lost')?.split(' ')).toHaveLength(1000);
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
