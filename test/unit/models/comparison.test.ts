import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../lib/kernel/random.ts';
import { brierDifference, LEAST_DAYS } from '../../../lib/models/evaluation/comparison.ts';
import type { Curves } from '../../../lib/models/evaluation/curves.ts';
import type { DatasetRows } from '../../../lib/models/evaluation/dataset-rows.ts';

const DAY_S = 86_400;
const T0 = Date.UTC(2026, 0, 1);

/** One bid a day at noon, lost after so many seconds; the last may be near the end of the trace, two hours away. */
function bids(lossS: readonly number[], isLastLate = false): DatasetRows {
  const at = lossS.map((_, i) => T0 + (i * DAY_S + DAY_S / 2) * 1000);
  const endMs = (at.at(-1) ?? T0) + (isLastLate ? 7200 : 2 * DAY_S) * 1000;
  const zeros = new Uint8Array(lossS.length);
  return {
    manifest: {
      version: 1,
      rows: lossS.length,
      plan: { seed: 1, instants: lossS.length, bidsPerInstant: 1 },
      features: [],
      splits: ['test'],
      pools: ['m5.large/us-east-1a'],
      horizonsS: [3600, DAY_S],
      sources: [
        { name: 'a', sha256: '', from: '', validationFrom: '', testFrom: '', to: new Date(endMs).toISOString() },
      ],
      sha256: {},
    },
    features: new Float32Array(),
    lossS: Float32Array.from(lossS),
    watchedS: Float32Array.from(lossS, (s) => Math.min(s, DAY_S)),
    atMs: Float64Array.from(at),
    bidUsd: zeros,
    pool: zeros,
    source: zeros,
    split: zeros,
    bidKind: zeros,
  };
}
const curves = (name: string, horizonsS: readonly number[], p: readonly (readonly number[])[]): Curves => ({
  name,
  horizonsS,
  p: Float32Array.from(p.flat()),
});
/** The same for some of its horizons. */
const only = ({ name, horizonsS, p }: Curves, wanted: readonly number[]): Curves => ({
  name,
  horizonsS: wanted,
  p: p.filter((_, i) => wanted.includes(horizonsS[i % horizonsS.length] ?? NaN)),
});
const rowsOf = (rows: DatasetRows): number[] => Array.from({ length: rows.atMs.length }, (_, i) => i);

describe('the difference of two forecasts', () => {
  it('is that of the squared errors, averaged over the horizons that both have and then over bids', () => {
    // Lost after half an hour, after five hours, never.
    const rows = bids([1800, 18_000, Infinity]);
    const mine = curves('mine', [3600, DAY_S], [[0.5, 0.5], [0, 1], [0, 0]]); // oxfmt-ignore
    const other = curves('other', [900, 3600, DAY_S], [[0, 1, 1], [0, 0, 0], [0, 0.5, 1]]); // oxfmt-ignore
    const { value, bids: count, days, horizonsS, verdict } = brierDifference(rows, rowsOf(rows), [mine, other], 1);
    const first = (0.25 - 0 + (0.25 - 0)) / 2;
    const second = (0 - 0 + (0 - 1)) / 2;
    const third = (0 - 0.25 + (0 - 1)) / 2;
    expect(value).toBeCloseTo((first + second + third) / 3, 6);
    expect({ count, days, horizonsS }).toEqual({ count: 3, days: 3, horizonsS: [3600, DAY_S] });
    // Three days are too few, whatever they say.
    expect(verdict).toBe('undecided');
  });

  it('counts a bid at the horizons at which its fate is known', () => {
    const rows = bids([Infinity], true);
    const mine = curves('mine', [3600, DAY_S], [[0.1, 0.9]]);
    const other = curves('other', [3600, DAY_S], [[0.3, 0]]);
    expect(brierDifference(rows, [0], [mine, other], 1).value).toBeCloseTo(0.01 - 0.09, 6);
  });

  const many = 2 * LEAST_DAYS;
  const rows = bids(Array.from({ length: many }, (_, i) => (i % 2 === 0 ? 1800 : Infinity)));
  const constant = (p: number): Curves =>
    curves(
      String(p),
      [3600],
      Array.from({ length: many }, () => [p]),
    );
  const knowing = curves(
    'knowing',
    [3600],
    Array.from({ length: many }, (_, i) => [i % 2 === 0 ? 0.9 : 0.1]),
  );

  it('is for the better, or the worse, where its interval is all on one side', () => {
    const better = brierDifference(rows, rowsOf(rows), [knowing, constant(0.5)], 1);
    expect(better).toMatchObject({ verdict: 'better', days: many });
    expect(better.high).toBeLessThan(0);
    const worse = brierDifference(rows, rowsOf(rows), [constant(0.5), knowing], 1);
    expect(worse.verdict).toBe('worse');
    expect(worse.value).toBeCloseTo(-better.value, 6);
  });

  it('is undecided between one that errs on some days and one that errs on others, and of a forecast with itself', () => {
    const [low, high] = [constant(0.4), constant(0.6)];
    const { verdict, low: from, high: to } = brierDifference(rows, rowsOf(rows), [low, high], 1);
    expect(verdict).toBe('undecided');
    expect(from).toBeLessThan(0);
    expect(to).toBeGreaterThan(0);
    expect(brierDifference(rows, rowsOf(rows), [low, low], 1)).toMatchObject({ verdict: 'undecided', value: 0 });
  });

  it('is that of all rows where some stopped being watched, for which others stand', () => {
    const random = randomStream(1, 'test/censoring');
    const drawn = (mean: number): number => -Math.log(1 - random()) * mean;
    const lossesS = Array.from({ length: 4000 }, () => drawn(30_000));
    const heldS = lossesS.map(() => drawn(20_000));
    const all = { ...bids(lossesS), atMs: Float64Array.from(lossesS, (_, i) => T0 + (i % 50) * DAY_S * 1000) };
    const until = lossesS.map((s, i) => Math.min(s, heldS[i] ?? NaN));
    const censored: DatasetRows = {
      ...all,
      manifest: { ...all.manifest, censored: true },
      lossS: Float32Array.from(lossesS, (s, i) => (s === until[i] ? s : Infinity)),
      watchedS: Float32Array.from(until),
    };
    const FIVE_HOURS_S = 18_000;
    const says = (meanS: number): Curves => {
      const curve = [FIVE_HOURS_S, DAY_S].map((h) => 1 - Math.exp(-h / meanS));
      const p = lossesS.map(() => curve);
      return curves(`${meanS}`, [FIVE_HOURS_S, DAY_S], p);
    };
    const between = (of: DatasetRows, horizons = [FIVE_HOURS_S]) => {
      const [mine, other] = [says(30_000), says(8000)].map((c) => only(c, horizons));
      if (mine === undefined || other === undefined) throw new Error('two are compared');
      return brierDifference(of, rowsOf(of), [mine, other], 1);
    };
    const [whole, weighed] = [between(all), between(censored)];
    expect(whole.verdict).toBe('better');
    expect(weighed.verdict).toBe('better');
    expect(weighed.bids).toBe(4000);
    expect(weighed.low).toBeLessThan(whole.value);
    expect(weighed.high).toBeGreaterThan(whole.value);
    // Lives that were not watched to the end left out, more seems lost than was, and who says too much seems right.
    const leftOut = between({ ...censored, manifest: all.manifest });
    expect(leftOut.low).toBeGreaterThan(whole.value);
    // One in 75 was watched for a day: what became of so few is not judged.
    expect(between(censored, [FIVE_HOURS_S, DAY_S]).horizonsS).toEqual([FIVE_HOURS_S]);
    expect(between(all, [FIVE_HOURS_S, DAY_S]).horizonsS).toEqual([FIVE_HOURS_S, DAY_S]);
  });
});
