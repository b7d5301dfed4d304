import { describe, expect, it } from '@jest/globals';
import { capacityLearner } from '../../../lib/stages/capacity-learner.ts';
import { copyWinsLearner } from '../../../lib/policy/speculation/copy-wins.ts';
import { samplingRatioLearner } from '../../../lib/policy/turns/sampling-ratio.ts';
import { neighbourLearner } from '../../../lib/policy/colocation/neighbour-learner.ts';
import { latenessLearner } from '../../../lib/policy/lateness-learner.ts';
import { composeLearners } from '../../../lib/cycle/learn/compose-learners.ts';
import { taskAverageLearner } from '../../../lib/stages/estimate/task-average-learner.ts';
import { runtimeLearner } from '../../../lib/stages/estimate/runtime-learner.ts';
import { poolId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { LaunchRefused, Learner, LearnerFactory } from '../../../lib/policy/learner.ts';
import { DiaryLearner, diaries } from '../../support/diary-learner.ts';

const REFUSED: LaunchRefused = {
  kind: 'launch-refused',
  atMs: epochMs(1000),
  poolId: poolId('c5.large/a/spot'),
  why: 'insufficient-capacity',
};
const quiet = (): never => {
  throw new Error('no fault was expected');
};
const named =
  (over: Partial<Pick<Learner<unknown>, 'name' | 'prefix'>>): LearnerFactory =>
  (terms) =>
    Object.assign(new DiaryLearner(terms), over);

function rowsOf(learners: ReturnType<typeof composeLearners>): Map<string, string> {
  const rows = new Map<string, string>();
  learners.takeDirty((key, value) => rows.set(key, value), quiet);
  return rows;
}

describe('a composition of learners', () => {
  it.each([
    ['a name that another learner has', named({ name: 'runtimes' })],
    ['a key prefix that is taken (hazard/)', named({ prefix: 'hazard/' })],
    ['a key prefix that is taken (rest/)', named({ prefix: 'rest/' })],
    ['a key prefix that is taken (disk/)', named({ prefix: 'disk/' })],
    ['a key prefix that is not one word and a slash', named({ prefix: '' })],
    ['a key prefix that is not one word and a slash', named({ prefix: 'diary' })],
    ['a key prefix that is not one word and a slash', named({ prefix: 'diary/two/' })],
  ])('refuses %s', (text, learner) => {
    expect(() => composeLearners({ more: [learner] })).toThrow(text);
  });

  it('answers for the learners that it has, by their factories, and for no other', () => {
    const { learner } = diaries();
    expect(composeLearners({ more: [learner] }).of(learner).size).toBe(0);
    expect(() => composeLearners().of(learner)).toThrow('not registered');
  });

  it('tells who learns from what: nothing else need be read to confirm a launch', () => {
    const learners = composeLearners();
    expect(learners.learningFrom('launch-refused')).toEqual([capacityLearner]);
    expect(learners.learningFrom('attempt-ended')).toEqual([
      runtimeLearner,
      taskAverageLearner,
      latenessLearner,
      samplingRatioLearner,
      copyWinsLearner,
      neighbourLearner,
    ]);
  });

  it('keeps rows as earlier versions wrote them, and restores what it is asked to alone', async () => {
    const { made, learner } = diaries();
    const learners = composeLearners({ more: [learner] });
    learners.observe(REFUSED, quiet);
    const rows = rowsOf(learners);
    expect([...rows.keys()]).toEqual(['hazard/c5.large/a/spot', 'diary/refused/c5.large/a/spot']);
    expect(rowsOf(learners).size).toBe(0);
    const store = {
      memory: async (prefix: string) => new Map([...rows].filter(([key]) => key.startsWith(prefix))),
    };
    const next = composeLearners({ more: [learner] });
    await next.recall(store, [learner]);
    expect(next.of(learner)).toEqual(made[0]?.belief());
    const news = () => next.of(capacityLearner).news.at(2000, new Map()).features(REFUSED.poolId);
    expect(news()).toBeNull();
    expect(await next.stored(store, [capacityLearner])).toEqual(await store.memory('hazard/'));
    next.restore(await next.stored(store));
    expect(news()).toEqual(learners.of(capacityLearner).news.at(2000, new Map()).features(REFUSED.poolId));
    expect(news()).not.toBeNull();
    expect(next.of(learner).size).toBe(1);
  });

  it('gives beliefs that answer questions and cannot teach', () => {
    const learners = composeLearners();
    expect(Object.keys(learners.of(runtimeLearner))).toEqual(['predict', 'recurring']);
    expect(Object.keys(learners.of(runtimeLearner).recurring)).toEqual(['predict']);
    expect(Object.keys(learners.of(capacityLearner))).toEqual(['posterior', 'news']);
    expect(Object.keys(learners.of(capacityLearner).news)).toEqual(['at']);
    for (const learner of [runtimeLearner, capacityLearner])
      expect(Object.isFrozen(learners.of<object>(learner))).toBe(true);
  });

  it('hands out nothing where nothing is kept, and learns all the same', () => {
    const { made, learner } = diaries();
    const learners = composeLearners({ isKept: false, more: [learner] });
    learners.observe(REFUSED, quiet);
    expect(rowsOf(learners).size).toBe(0);
    expect(made[0]?.terms).toEqual({ isKept: false });
    expect(learners.of(learner).size).toBe(1);
  });

  it('goes on with the others where one throws, and says which', () => {
    const { learner } = diaries();
    const failing: LearnerFactory = (terms) =>
      Object.assign(new DiaryLearner(terms), {
        ...{ name: 'failing', prefix: 'failing/' },
        observe: () => {
          throw new Error('no');
        },
      });
    const faults: [string, unknown][] = [];
    const learners = composeLearners({ more: [failing, learner] });
    learners.observe(REFUSED, (...fault) => void faults.push(fault));
    expect(faults).toEqual([['failing', new Error('no')]]);
    expect(learners.of(learner).size).toBe(1);
  });
});
