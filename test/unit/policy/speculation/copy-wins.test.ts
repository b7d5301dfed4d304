import { describe, expect, it } from '@jest/globals';
import type { AttemptOutcome, AttemptRole } from '../../../../lib/domain/job.ts';
import type { AttemptEnded } from '../../../../lib/policy/learner.ts';
import { copyWinsLearner } from '../../../../lib/policy/speculation/copy-wins.ts';
import { attempt } from '../../../support/builders.ts';

const ended = (outcome: AttemptOutcome, role?: AttemptRole): AttemptEnded =>
  ({
    kind: 'attempt-ended',
    outcome,
    attempt: attempt(role === undefined ? {} : { role }),
  }) as unknown as AttemptEnded;

describe('how many copies end first', () => {
  it('is one of two before anything is seen, and follows what is seen', () => {
    const learner = copyWinsLearner();
    expect(learner.belief().chance()).toBe(0.5);
    for (let n = 0; n < 100; n++) learner.observe(ended('superseded', 'copy'));
    expect(learner.belief().chance()).toBeLessThan(0.05);
    for (let n = 0; n < 400; n++) learner.observe(ended('succeeded', 'copy'));
    expect(learner.belief().chance()).toBeGreaterThan(0.8);
  });

  it('is told by copies that won or lost alone', () => {
    const learner = copyWinsLearner();
    learner.observe(ended('superseded'));
    learner.observe(ended('succeeded', 'pilot'));
    learner.observe(ended('interrupted', 'copy'));
    learner.observe(ended('failed', 'copy'));
    expect(learner.belief().chance()).toBe(0.5);
    expect(learner.takeDirty().size).toBe(0);
  });

  it('survives a restart, and begins anew where its row is spoiled', () => {
    const learner = copyWinsLearner();
    for (let n = 0; n < 10; n++) learner.observe(ended('superseded', 'copy'));
    const again = copyWinsLearner();
    again.restore(learner.takeDirty());
    expect(again.belief().chance()).toBe(learner.belief().chance());
    for (const text of ['{', '{"won":-1,"ended":0}', 'null']) {
      again.restore(new Map([['copy-wins/counts', text]]));
      expect(again.belief().chance()).toBe(0.5);
    }
  });
});
