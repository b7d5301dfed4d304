import { describe, expect, it } from '@jest/globals';
import { epochMs, seconds } from '../../../../lib/kernel/units.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { withTime } from '../../../../lib/domain/running-times.ts';
import type { AttemptEnded } from '../../../../lib/policy/learner.ts';
import { samplingRatioLearner } from '../../../../lib/policy/turns/sampling-ratio.ts';
import { attempt, job } from '../../../support/builders.ts';

const NEXT = jobId('the-next-one');

/** The end of the last task of a job of two tasks of 100 s, `jctS` after its submission. */
function ended(id: string, jctS: number): AttemptEnded {
  const plain = job({ id: jobId(id), submittedMs: epochMs(0) });
  const times = withTime(withTime(undefined, seconds(100)), seconds(100));
  const stages = plain.stages.map((s) => ({ ...s, tasks: 2, nextFresh: 2, succeeded: 2, times }));
  return {
    kind: 'attempt-ended',
    atMs: epochMs(jctS * 1000),
    outcome: 'succeeded',
    job: { ...plain, stages },
    stage: plain.spec.stages[0],
    attempt: attempt({ job: jobId(id), role: 'pilot' }),
    runtimeS: seconds(100),
  } as unknown as AttemptEnded;
}

/** The next ratio after 300 jobs. `jctOf`: completion time of a job, by its ratio. */
function afterAll(jctOf: Readonly<Record<number, number>>, jobs = 300) {
  const learner = samplingRatioLearner();
  const seen: number[] = [];
  for (let n = 0; n < jobs; n++) {
    const ratio = learner.belief().ratioOf(jobId(`j-${n}`));
    seen.push(ratio);
    learner.observe(ended(`j-${n}`, jctOf[ratio] ?? 1));
  }
  return { learner, seen, next: learner.belief().ratioOf(NEXT) };
}

describe('the sampling ratio', () => {
  it('is 3, 2 and 4 % for a hundred jobs each', () => {
    const { seen } = afterAll({ 2: 100, 3: 100, 4: 100 });
    expect([0, 99, 100, 199, 200, 299].map((n) => seen[n])).toEqual([3, 3, 2, 2, 4, 4]);
  });

  it.each([
    ['the best of the three', { 2: 100, 3: 90, 4: 100 }, 3],
    ['2 % where 1.1 times as good is not reached', { 2: 100, 3: 105, 4: 130 }, 2],
    ['1 % beyond a 2 % that is much better than 3 %', { 2: 100, 3: 120, 4: 130 }, 1],
    ['4 %', { 2: 110, 3: 105, 4: 100 }, 4],
    ['5 % beyond a 4 % that is much better than 3 %', { 2: 200, 3: 120, 4: 100 }, 5],
  ])('is then %s', (_, jctOf, then) => {
    expect(afterAll(jctOf).next).toBe(then);
  });

  it('forgets all but the last hundred jobs of a ratio', () => {
    const { learner } = afterAll({ 2: 100, 3: 90, 4: 100 });
    for (let n = 0; n < 120; n++) learner.observe(ended(`late-${n}`, 400));
    // 3 % is tried until it is no longer the best.
    expect(learner.belief().ratioOf(NEXT)).not.toBe(3);
  });

  it('stays the same for a job, survives a restart, and begins anew where its row is spoiled', () => {
    const { learner, next } = afterAll({ 2: 200, 3: 120, 4: 100 });
    const again = samplingRatioLearner();
    again.restore(learner.takeDirty());
    expect(again.belief().ratioOf(NEXT)).toBe(next);
    again.restore(new Map([['sampling-ratio/scores', '{"begun":-1}']]));
    expect(again.belief().ratioOf(NEXT)).toBe(3);
    again.restore(new Map([['sampling-ratio/scores', 'NaN']]));
    expect(again.belief().ratioOf(NEXT)).toBe(3);
  });
});
