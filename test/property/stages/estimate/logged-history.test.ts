import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { LoggedHistory } from '../../../../lib/stages/estimate/logged-history.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { features } from '../../../support/runs.ts';

const run = fc.record({
  owner: fc.constantFrom('ops', 'web', 'a/b %', '\ud800lone'),
  jobName: fc.constantFrom('nightly', 'report', 'once'),
  runtimeS: fc.double({ min: 0.01, max: 90_000, noNaN: true }),
});
/** Commits of some runs each. */
const commits = fc.array(fc.array(run, { minLength: 0, maxLength: 5 }), { minLength: 1, maxLength: 40 });
const of = ({ owner, jobName }: { owner: string; jobName: string }) => features({ owner, jobName });

describe('a history with a log', () => {
  it('is restored as what learned the same runs without one, whenever it folds', () => {
    let folds = 0;
    let logs = 0;
    fc.assert(
      fc.property(commits, fc.integer({ min: 1, max: 60 }), (all, foldAt) => {
        const plain = new JvuPredict();
        const store = new Map<string, string>();
        let logged = new LoggedHistory(new JvuPredict(), foldAt);
        all.forEach((runs, n) => {
          for (const r of runs) {
            plain.learn(of(r), seconds(r.runtimeS));
            logged.learn(of(r), seconds(r.runtimeS));
          }
          const rows = logged.takeDirty();
          if (runs.length === 0) expect(rows.size).toBe(0);
          if ([...rows.keys()].some((key) => !key.includes('/log/'))) folds++;
          else if (rows.size > 0) {
            expect(rows.size).toBe(1);
            logs++;
          }
          for (const [key, text] of rows) store.set(key, text);
          // A restart now and then.
          if (n % 3 === 2) {
            logged = new LoggedHistory(new JvuPredict(), foldAt);
            logged.restore(store);
            expect(logged.takeDirty().size).toBe(0);
          }
          const left = [...store]
            .filter(([key, text]) => key.includes('/log/') && text !== '')
            .flatMap(([, text]) => JSON.parse(text) as unknown[]);
          expect(left.length).toBeLessThan(foldAt);
        });
        const restored = new LoggedHistory(new JvuPredict(), foldAt);
        restored.restore(store);
        for (const r of all.flat()) {
          expect(restored.predict(of(r))).toEqual(plain.predict(of(r)));
          expect(logged.predict(of(r))).toEqual(plain.predict(of(r)));
        }
        expect(restored.predictor.size).toBe(plain.size);
      }),
      { seed: 41, numRuns: 60 },
    );
    expect(Math.min(folds, logs)).toBeGreaterThan(50);
  });

  it('refuses a log that is not what was written', () => {
    for (const text of ['[', '{}', '[{"o":"x"}]']) {
      const restore = (): void => new LoggedHistory().restore(new Map([['history/log/000000', text]]));
      expect(restore).toThrow(EbbError);
    }
  });
});
