import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import type { RuntimeForecast } from '../../../../lib/domain/forecast.ts';
import { RecentRuns, RUNS } from '../../../../lib/stages/estimate/recent-runs.ts';
import { RecurringRuns } from '../../../../lib/stages/estimate/recurring-runs.ts';
import { below, guessing, pinball, recurringRuns, type RecurringWorld } from '../../../support/recurring-jobs.ts';
import { features, runs } from '../../../support/runs.ts';

/** Most weight that a window of a factor of four can hold, and the weight within a factor of two of `centre`. */
function windowed(logS: readonly number[], centre: number): { readonly most: number; readonly within: number } {
  const latest = logS.slice(-RUNS);
  const weight = (from: number, to: number): number =>
    latest.reduce((sum, l, i) => (l >= from - 1e-9 && l <= to + 1e-9 ? sum + 0.95 ** (latest.length - 1 - i) : sum), 0);
  const most = Math.max(...latest.map((l) => weight(l, l + 2 * Math.LN2)));
  return { most, within: weight(centre - Math.LN2, centre + Math.LN2) };
}

describe('recent runs of one feature-value', () => {
  const logs = fc.array(
    fc.integer({ min: 0, max: 100_000 }).map((n) => n / 1e4),
    { minLength: 1, maxLength: 100, size: 'max' },
  );

  it('have the centre of the window of a factor of four with the most weight', () => {
    fc.assert(
      fc.property(logs, (all) => {
        const recent = new RecentRuns();
        recent.reserve(1);
        all.forEach((logS, i) => {
          recent.add(0, logS);
          const { most, within } = windowed(all.slice(0, i + 1), recent.prediction(0, 0));
          expect(within).toBeGreaterThanOrEqual(most - 1e-6);
          expect(recent.prediction(0, 1)).toBeCloseTo(logS, 9);
        });
      }),
      { seed: 61, numRuns: 60 },
    );
  });

  it('count past predictions within a factor of two, the latest most', () => {
    fc.assert(
      fc.property(logs, (all) => {
        const recent = new RecentRuns();
        recent.reserve(1);
        let [judged, hits] = [0, 0];
        all.forEach((logS, i) => {
          if (i > 0) {
            judged = judged * 0.9 + 1;
            hits = hits * 0.9 + (Math.abs((all[i - 1] ?? 0) - logS) <= Math.LN2 ? 1 : 0);
          }
          recent.add(0, logS);
        });
        expect(recent.judged(0)).toBeCloseTo(judged, 9);
        expect(recent.hits(0, 1)).toBeCloseTo(hits, 9);
      }),
      { seed: 62, numRuns: 60 },
    );
  });
});

describe('recurring runs', () => {
  const guessed = fc
    .tuple(runs, fc.integer({ min: 0, max: 3 }))
    .map(([all, every]) =>
      all.map((r, i) => (every > 0 && i % every === 0 ? { ...r, features: guessing(r.features, r.runtimeS * 2) } : r)),
    );

  it('go on after export and import as if nothing had happened', () => {
    let compared = 0;
    fc.assert(
      fc.property(guessed, guessed, (before, after) => {
        const one = new RecurringRuns();
        const store = new Map<string, string>();
        before.forEach(({ features: f, runtimeS }, i) => {
          one.learn(f, seconds(runtimeS));
          if (i % 7 === 0) for (const [key, text] of one.takeDirty()) store.set(key, text);
        });
        for (const [key, text] of one.takeDirty()) store.set(key, text);
        const other = new RecurringRuns();
        other.restore(store);
        expect(other.takeDirty().size).toBe(0);
        for (const { features: f, runtimeS } of after) {
          expect(other.predict(f)).toEqual(one.predict(f));
          one.learn(f, seconds(runtimeS));
          other.learn(f, seconds(runtimeS));
          compared++;
        }
        expect(other.takeDirty()).toEqual(one.takeDirty());
      }),
      { seed: 63, numRuns: 30 },
    );
    expect(compared).toBeGreaterThan(500);
  });

  it('keep at most the given number of feature-values', () => {
    fc.assert(
      fc.property(guessed, fc.integer({ min: 20, max: 60 }), (all, most) => {
        const recurring = new RecurringRuns({ maxFeatureValues: most });
        const store = new Map<string, string>();
        all.forEach(({ features: f, runtimeS }, i) => {
          recurring.learn({ ...f, owner: `${f.owner}-${i % 7}` }, seconds(runtimeS));
          expect(recurring.size).toBeLessThanOrEqual(most);
          for (const [key, text] of recurring.takeDirty()) store.set(key, text);
        });
        const other = new RecurringRuns({ maxFeatureValues: most });
        other.restore(new Map([...store].filter(([, text]) => text !== '')));
        expect(other.size).toBe(recurring.size);
      }),
      { seed: 64, numRuns: 30 },
    );
  });

  it('give distributions: ascending, positive, summing to 1', () => {
    fc.assert(
      fc.property(guessed, (all) => {
        const recurring = new RecurringRuns();
        for (const { features: f, runtimeS } of all) {
          const forecast = recurring.predict(f);
          recurring.learn(f, seconds(runtimeS));
          if (forecast === null) continue;
          const { atS, weight } = forecast.runtime;
          expect(atS.every((s, i) => s > (atS[i - 1] ?? 0))).toBe(true);
          expect(weight.every((w) => w > 0)).toBe(true);
          expect(weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
          expect(atS.length).toBeLessThanOrEqual(64);
        }
      }),
      { seed: 65, numRuns: 40 },
    );
  });

  it('choose a feature that tells over one that does not', () => {
    const recurring = new RecurringRuns();
    const of = (i: number) =>
      features({ jobName: `once-${i}`, program: `once-${i}`, labels: [`queue=${i % 2 === 0 ? 'short' : 'long'}`] });
    for (let i = 0; i < 60; i++) recurring.learn(of(i), seconds(i % 2 === 0 ? 60 : 6000));
    const [short, long] = [recurring.predict(of(60)), recurring.predict(of(61))];
    expect([short?.evidence?.feature, long?.evidence?.feature]).toEqual(['owner+label', 'owner+label']);
    expect(raw(short?.evidence?.pointS ?? seconds(0))).toBeCloseTo(60, 0);
    expect(raw(long?.evidence?.pointS ?? seconds(0))).toBeCloseTo(6000, -2);
  });
});

describe('forecasts on seeded worlds', () => {
  const WORLDS: readonly RecurringWorld[] = [
    { seed: 1, owners: 1, programs: 4, runs: 120, sigma: 0.05 },
    { seed: 2, owners: 3, programs: 5, runs: 300, sigma: 0.05 },
    { seed: 3, owners: 3, programs: 5, runs: 300, sigma: 0.6 },
    { seed: 4, owners: 5, programs: 40, runs: 200, sigma: 0.3 },
    { seed: 5, owners: 20, programs: 30, runs: 100, sigma: 0.3 },
    { seed: 6, owners: 40, programs: 1, runs: 400, sigma: 0.02 },
  ];
  const LEVELS = Array.from({ length: 19 }, (_, i) => (i + 1) / 20);

  /** Mean pinball loss over LEVELS and at 0.95, of runs for which both have a forecast. */
  function losses(world: RecurringWorld, guess: (runtimeS: number, draw: number) => number, from = 1) {
    const [without, withGuess] = [new RecurringRuns(), new RecurringRuns()];
    const mean = { without: 0, withGuess: 0 };
    const tail = { without: 0, withGuess: 0 };
    recurringRuns(world).forEach(({ features: f, runtimeS, draw }, i) => {
      const asked = guessing(f, guess(runtimeS, draw));
      const add = (to: 'without' | 'withGuess', forecast: RuntimeForecast | null): void => {
        if (i < from || forecast === null) return;
        mean[to] += LEVELS.reduce((sum, p) => sum + pinball(forecast.runtime, p, runtimeS), 0);
        tail[to] += pinball(forecast.runtime, 0.95, runtimeS);
      };
      add('without', without.predict(f));
      add('withGuess', withGuess.predict(asked));
      without.learn(f, seconds(runtimeS));
      withGuess.learn(asked, seconds(runtimeS));
    });
    return { mean, tail };
  }

  it.each(WORLDS.map((w) => [w]))(
    'a guess within 25 %% makes neither the whole nor the 95 %% quantile worse: %j',
    (world) => {
      const { mean, tail } = losses(world, (s, draw) => s * (0.75 + 0.5 * draw));
      expect(mean.withGuess).toBeLessThanOrEqual(mean.without);
      expect(tail.withGuess).toBeLessThanOrEqual(tail.without);
    },
  );

  it.each(WORLDS.map((w) => [w]))(
    'a guess that is wrong by a constant factor helps as well, once known: %j',
    (world) => {
      const { mean, tail } = losses(world, (s, draw) => 8 * s * (0.75 + 0.5 * draw), 20);
      expect(mean.withGuess).toBeLessThanOrEqual(mean.without);
      expect(tail.withGuess).toBeLessThanOrEqual(tail.without);
    },
  );

  it.each(WORLDS.map((w) => [w]))('a guess that says nothing costs little: %j', (world) => {
    const { mean } = losses(world, (_, draw) => 3600 * (1 + Math.floor(5 * draw)), 20);
    expect(mean.withGuess).toBeLessThanOrEqual(1.15 * mean.without);
  });

  it('have a flat probability integral transform on log-normal repeats', () => {
    for (const sigma of [0.1, 0.5]) {
      const recurring = new RecurringRuns();
      const pit = Array<number>(10).fill(0);
      const covered = { of: 0, n: 0 };
      recurringRuns({ seed: 9, owners: 4, programs: 10, runs: 4000, sigma }).forEach(({ features: f, runtimeS }, i) => {
        const forecast = recurring.predict(f);
        if (i > 400 && forecast !== null) {
          const u = below(forecast.runtime, runtimeS);
          const decile = Math.min(9, Math.floor(10 * u));
          pit[decile] = (pit[decile] ?? 0) + 1;
          covered.n++;
          if (u <= 0.95) covered.of++;
        }
        recurring.learn(f, seconds(runtimeS));
      });
      const shares = pit.map((n) => n / covered.n);
      expect(Math.min(...shares)).toBeGreaterThan(0.07);
      expect(Math.max(...shares)).toBeLessThan(0.13);
      expect(covered.of / covered.n).toBeGreaterThan(0.93);
      expect(covered.of / covered.n).toBeLessThan(0.97);
    }
  });
});
