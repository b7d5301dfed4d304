import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import { mean, quantile } from '../../../../lib/domain/distribution.ts';
import type { JobFeatures } from '../../../../lib/domain/forecasts.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { features, runs } from '../../../support/runs.ts';

/** JVuPredict written down naively: every runtime is kept, every estimate made from the whole history. */
class Oracle {
  readonly histories = new Map<string, { all: number[]; squares: Map<string, number> }>();

  keys(f: JobFeatures): Map<string, string> {
    const at = new Date(raw(f.submittedMs));
    const hour = at.getUTCHours();
    const day = at.getUTCDay();
    const job = `${f.jobName}|${f.stage}`;
    const cpus = raw(f.resources.cpu);
    const keys = new Map([
      ['owner+job', `${f.owner}|${job}`],
      ['job', job],
      ['job+hour', `${job}|${hour}`],
      ['job+day', `${job}|${day}`],
      ['owner+program', `${f.owner}|${f.program}`],
      ['program', f.program],
      ['owner', f.owner],
      ['all', ''],
    ]);
    if (cpus > 0) {
      keys.set('job+resources', `${job}|${cpus}`);
      keys.set('program+resources', `${f.program}|${cpus}`);
      keys.set('owner+resources', `${f.owner}|${cpus}`);
    }
    return keys;
  }

  estimates(all: readonly number[]): Map<string, number> {
    const filtered = all.map((_, i) => median(all.slice(Math.max(0, i - 2), i + 1)));
    const of = (xs: readonly number[], prefix: string): [string, number][] => [
      [`${prefix}median`, median(xs)],
      [`${prefix}average`, average(xs)],
      [`${prefix}recent`, average(xs.slice(-20))],
      [`${prefix}rolling`, xs.slice(1).reduce((m, x) => 0.5 * x + 0.5 * m, xs[0] ?? NaN)],
    ];
    return new Map([...of(all, ''), ...of(filtered, 'filtered ')]);
  }

  learn(f: JobFeatures, s: number): void {
    for (const [name, value] of this.keys(f)) {
      const key = `${name}=${value}`;
      const h = this.histories.get(key) ?? { all: [], squares: new Map<string, number>() };
      if (h.all.length > 0) {
        for (const [e, p] of this.estimates(h.all)) h.squares.set(e, (h.squares.get(e) ?? 0) + (p - s) ** 2);
      }
      h.all.push(s);
      this.histories.set(key, h);
    }
  }

  /** Every candidate pair with its prediction and its error, one prediction off by half the mean counted in. */
  candidates(f: JobFeatures): Map<string, { pointS: number; score: number; samples: number }> {
    const found = new Map<string, { pointS: number; score: number; samples: number }>();
    for (const [name, value] of this.keys(f)) {
      const h = this.histories.get(`${name}=${value}`);
      if (h === undefined) continue;
      for (const [e, pointS] of this.estimates(h.all)) {
        const squares = h.squares.get(e) ?? 0;
        const score = Math.sqrt((squares / average(h.all) ** 2 + 0.25) / h.all.length);
        found.set(`${name}:${e}`, { pointS, score, samples: h.all.length });
      }
    }
    return found;
  }
}

const average = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
function median(xs: readonly number[]): number {
  const sorted = [...xs].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

describe('JVuPredict', () => {
  it('predicts what the naive predictor on full histories predicts', () => {
    let compared = 0;
    const pairs = new Set<string>();
    fc.assert(
      fc.property(runs, (history) => {
        const predictor = new JvuPredict();
        const oracle = new Oracle();
        for (const { features: f, runtimeS } of history) {
          const candidates = oracle.candidates(f);
          const got = predictor.predict(f);
          if (candidates.size === 0) expect(got).toBeNull();
          else {
            const { evidence } = invariant(got, 'a forecast was expected');
            const pair = `${evidence.feature}:${evidence.estimator}`;
            const same = invariant(candidates.get(pair), `the oracle has no pair ${pair}`);
            expect(raw(evidence.pointS)).toBeCloseTo(same.pointS, 6);
            expect(evidence.samples).toBe(same.samples);
            expect(same.score).toBeLessThanOrEqual(Math.min(...[...candidates.values()].map((c) => c.score)) + 1e-9);
            compared++;
            pairs.add(pair);
          }
          predictor.learn(f, seconds(runtimeS));
          oracle.learn(f, runtimeS);
        }
      }),
      { seed: 21, numRuns: 60 },
    );
    expect(compared).toBeGreaterThan(500);
    // The generator makes different features and estimators win: otherwise little was compared.
    expect(pairs.size).toBeGreaterThan(15);
  });

  it('gives distributions: ascending, positive, summing to 1, centred on the chosen estimate', () => {
    fc.assert(
      fc.property(runs, (history) => {
        const predictor = new JvuPredict();
        for (const { features: f, runtimeS } of history) {
          const forecast = predictor.predict(f);
          predictor.learn(f, seconds(runtimeS));
          if (forecast === null) continue;
          const { atS, weight } = forecast.runtime;
          expect(atS.every((s, i) => s > (i === 0 ? 0 : (atS[i - 1] ?? Infinity)))).toBe(true);
          expect(weight.length).toBe(atS.length);
          expect(weight.every((w) => w > 0)).toBe(true);
          expect(weight.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
          expect(atS.length).toBeLessThanOrEqual(34);
          const { estimator, samples } = forecast.evidence;
          const pointS = raw(forecast.evidence.pointS);
          if (estimator === 'median') {
            expect(raw(quantile(forecast.runtime, 0.4))).toBeLessThanOrEqual(pointS + 1e-9);
            expect(raw(quantile(forecast.runtime, 0.6 + 0.5 / samples))).toBeGreaterThanOrEqual(pointS - 1e-9);
          } else if (!estimator.startsWith('filtered')) {
            // The mean without the share kept for the unseen is the estimate itself.
            const unseen = weight[0] ?? 0;
            const ends = unseen * ((atS[0] ?? 0) + (atS.at(-1) ?? 0));
            expect((raw(mean(forecast.runtime)) - ends) / (1 - 2 * unseen)).toBeCloseTo(pointS, 4);
          }
        }
      }),
      { seed: 22, numRuns: 60 },
    );
  });

  it('goes on after export and import as if nothing had happened', () => {
    fc.assert(
      fc.property(runs, runs, fc.integer({ min: 1, max: 50 }), (before, after, every) => {
        const one = new JvuPredict();
        const store = new Map<string, string>();
        before.forEach(({ features: f, runtimeS }, i) => {
          one.learn(f, seconds(runtimeS));
          if (i % every === 0) for (const [k, v] of one.export()) store.set(k, v);
        });
        for (const [k, v] of one.export()) store.set(k, v);
        expect(one.export()).toEqual([]);

        const other = new JvuPredict();
        other.restore(store);
        expect(other.export()).toEqual([]);
        expect(other.size).toBe(one.size);
        for (const { features: f, runtimeS } of after) {
          expect(other.predict(f)).toEqual(one.predict(f));
          one.learn(f, seconds(runtimeS));
          other.learn(f, seconds(runtimeS));
        }
        expect(new Map(other.export())).toEqual(new Map(one.export()));
      }),
      { seed: 23, numRuns: 40 },
    );
  });

  it('keeps at most the given number of feature-values and stays consistent with what it exports', () => {
    fc.assert(
      fc.property(runs, fc.integer({ min: 12, max: 40 }), fc.integer({ min: 1, max: 20 }), (history, most, every) => {
        const predictor = new JvuPredict({ maxFeatureValues: most });
        const store = new Map<string, string>();
        history.forEach(({ features: f, runtimeS }, i) => {
          predictor.learn({ ...f, owner: `${f.owner}-${i % 7}` }, seconds(runtimeS));
          expect(predictor.size).toBeLessThanOrEqual(most);
          if (i % every === 0) for (const [k, v] of predictor.export()) store.set(k, v);
        });
        for (const [k, v] of predictor.export()) store.set(k, v);
        const kept = [...store].filter(([, v]) => v !== '');
        expect(kept.length).toBe(predictor.size);
        const other = new JvuPredict({ maxFeatureValues: most });
        other.restore(store);
        expect(other.size).toBe(predictor.size);
      }),
      { seed: 24, numRuns: 100 },
    );
  });

  it('forgets names that never come back rather than the recurring ones', () => {
    const predictor = new JvuPredict({ maxFeatureValues: 60 });
    const regular = features({ owner: 'ops', jobName: 'nightly', program: 'report' });
    for (let i = 0; i < 400; i++) {
      predictor.learn(features({ owner: `guest-${i}`, jobName: `once-${i}`, program: `p-${i}` }), seconds(5000));
      if (i % 3 === 0) {
        predictor.predict(regular);
        predictor.learn(regular, seconds(60));
      }
    }
    expect(predictor.predict(regular)?.evidence.samples).toBeGreaterThan(100);
    expect(raw(predictor.predict(regular)?.evidence.pointS ?? seconds(0))).toBe(60);
  });
});
