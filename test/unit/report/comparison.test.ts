import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { choices, compare } from '../../../lib/report/comparison.ts';
import { badNews } from '../../../lib/report/sections.ts';
import { fabricated, outcome } from './outcomes.ts';
import type { RunOutcome, Totals } from '../../../lib/report/outcome.ts';

const DAY = 86_400_000;
/** A day long; with jobs done, unless its totals say otherwise. */
const run = (preset: string, window: number, seed: number, usd: number | Partial<Totals>) =>
  outcome({
    preset,
    fromMs: window * DAY,
    endMs: (window + 1) * DAY,
    seed,
    totals: typeof usd === 'number' ? { succeeded: 1, billedUsd: usd } : usd,
  });

describe('figures of presets', () => {
  it('are means over runs, and ratios of sums over the cells that both have', () => {
    const { presets } = compare([
      run('on-demand', 1, 1, 10),
      run('on-demand', 2, 1, 30),
      run('on-demand', 3, 1, 1000),
      run('cheap', 1, 1, 4),
      run('cheap', 2, 1, 6),
    ]);
    expect(presets.map((p) => [p.preset, p.runs, p.costUsd.value])).toEqual([
      ['on-demand', 3, 1040 / 3],
      ['cheap', 2, 5],
    ]);
    expect(presets[1]).toMatchObject({ toOnDemand: null, toBound: null, toOracle: null, referenceUsd: null });
  });

  it('are held against references of the same runs, the bound before refunds', () => {
    const held = (window: number, usd: number, references?: RunOutcome['references'], over: Partial<RunOutcome> = {}) =>
      outcome({
        preset: 'p',
        fromMs: window * DAY,
        totals: { succeeded: 1, billedUsd: usd, refundedUsd: 1 },
        ...(references && { references }),
        ...over,
      });
    const { presets } = compare([
      held(1, 4, { onDemandUsd: 10, lowerBoundUsd: 2 }),
      held(2, 6, { onDemandUsd: 30, lowerBoundUsd: null }),
      held(3, 8, { onDemandUsd: null, lowerBoundUsd: 4 }),
      held(4, 100),
      held(5, 100, { onDemandUsd: 1, lowerBoundUsd: 1 }, { ended: 'aborted' }),
    ]);
    expect(presets[0]?.toOnDemand?.value).toBe(10 / 40);
    expect(presets[0]?.toBound?.value).toBe((4 + 1 + 8 + 1) / 6);
    expect(presets[0]).toMatchObject({ referenceUsd: 20, lowerBoundUsd: 3, refundedUsd: 1 });
  });

  it('weigh shares by what they are shares of', () => {
    const { presets } = compare([
      run('p', 1, 1, {
        billedUsd: 10,
        missed: 1,
        deadlines: 1,
        wastedUsd: 1,
        utilisation: 1,
        instanceHours: 1,
        onDemandUsd: 20,
      }),
      run('p', 2, 1, {
        billedUsd: 30,
        missed: 0,
        deadlines: 9,
        wastedUsd: 7,
        utilisation: 0.5,
        instanceHours: 3,
        onDemandUsd: 60,
      }),
    ]);
    const [p] = presets;
    expect(p?.missedShare.value).toBe(0.1);
    expect(p?.wastedShare.value).toBe(0.2);
    expect(p?.utilisation.value).toBe(2.5 / 4);
    expect(p?.toOnDemandPrices.value).toBe(0.5);
    expect([p?.missed, p?.deadlines]).toEqual([1, 10]);
  });

  it('take percentiles from runs that have such jobs only', () => {
    const took = (s: number) => ({ completionS: { deadline: [0, 0, 0, s, 0, 2 * s, 0, 3 * s, 0] } });
    const { presets } = compare([run('p', 1, 1, took(10)), run('p', 2, 1, took(30)), run('p', 3, 1, 1)]);
    const { deadline, 'best-effort': none } = presets[0]?.completionS ?? {};
    expect([deadline?.p50.value, deadline?.p90.value, deadline?.p99.value]).toEqual([20, 40, 60]);
    expect(none).toBeNull();
    expect(presets[0]?.latenessS).toBeNull();
  });
});

describe('differences', () => {
  it('are paired: a market that moves both alike leaves no doubt', () => {
    const costs = [10, 500, 90, 2000, 30, 700];
    const runs = costs.flatMap((usd, w) => [run('a', w, 1, usd), run('b', w, 1, usd + 5)]);
    const [d] = compare(runs).differences;
    expect(d).toMatchObject({
      a: 'a',
      b: 'b',
      cells: 6,
      costUsd: { value: -5, interval: { low: -5, high: -5 }, n: 6 },
    });
    expect(compare(runs).presets[0]?.costUsd.interval?.high).toBeGreaterThan(500);
  });

  it('of shares of missed deadlines are those of the sums, whatever the runs have of each', () => {
    const [d] = compare([
      run('a', 1, 1, { billedUsd: 1, missed: 1, deadlines: 10 }),
      run('a', 2, 1, { billedUsd: 1, missed: 5, deadlines: 90 }),
      run('b', 1, 1, { billedUsd: 1, missed: 0, deadlines: 12 }),
      run('b', 2, 1, { billedUsd: 1, missed: 2, deadlines: 88 }),
    ]).differences;
    expect(d?.missedShare.value).toBeCloseTo(0.06 - 0.02, 12);
    expect(d?.missedShare.n).toBe(2);
  });

  it('leave out aborted runs and cells that one of the two lacks', () => {
    const { differences, warnings, presets } = compare([
      run('a', 1, 1, 7),
      run('b', 1, 1, 5),
      { ...run('a', 2, 1, 70), ended: 'aborted' },
      run('b', 2, 1, 50),
      run('b', 3, 1, 500),
    ]);
    expect(differences).toMatchObject([{ cells: 1, costUsd: { value: 2, interval: null, n: 1 } }]);
    expect(presets[0]).toMatchObject({ runs: 2, aborted: 1 });
    expect(warnings.join()).toContain('1 of 5 runs were aborted');
  });

  it('are none of presets without a cell in common', () => {
    expect(compare([run('a', 1, 1, 7), run('b', 2, 1, 5)]).differences).toEqual([]);
  });
});

describe('runs that a stop left out', () => {
  const cut = compare(
    [run('a', 1, 1, 7), run('b', 1, 1, 5), { ...run('c', 1, 1, 0.01), ended: 'aborted' }],
    ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd'],
  );

  it('are told: how many were asked for, and which presets there are none of', () => {
    expect(cut.planned).toBe(8);
    expect(cut.warnings.join('\n')).toMatch(/Only 3 of 8 runs were begun[^]*none of d\.[^]*1 of 3 runs were aborted/);
    expect(compare([run('a', 1, 1, 7)]).warnings).toEqual([]);
  });

  it('make no preset the cheapest: what is cut short or missing costs less', () => {
    expect(choices(cut.presets).map((p) => p.preset)).toEqual(['b', 'a']);
    const uneven = compare([run('a', 1, 1, 9), run('a', 2, 1, 9), run('b', 1, 1, 1), run('oracle', 1, 1, 0.5)]);
    expect(choices(uneven.presets).map((p) => p.preset)).toEqual(['a']);
  });
});

describe('what the end of a simulation cuts off', () => {
  const over = (totals: Partial<Totals>): RunOutcome => ({ ...run('a', 1, 1, totals), ended: 'time-over' });

  it('is told, of jobs never submitted and of jobs unfinished', () => {
    const { warnings, presets } = compare([over({ succeeded: 9, notSubmitted: 188, unfinished: 3 })]);
    expect(warnings.join('\n')).toMatch(/188 of its jobs were never submitted[^]*3 unfinished in all/);
    expect(presets[0]?.notSubmitted).toBe(188);
    expect(compare([over({ succeeded: 9 })]).warnings).toEqual([]);
  });

  it('names the runs it happened in, and a count that was given up as such', () => {
    const { warnings } = compare([
      over({ succeeded: 9, notSubmitted: 5 }),
      { ...run('a', 2, 1, { succeeded: 9, notSubmitted: 100_000 }), ended: 'time-over' },
      run('a', 3, 1, { succeeded: 9 }),
    ]);
    expect(warnings[0]).toContain('(in 2 of 3 runs): 5 to 100000 or more of its jobs');
  });

  it('is told where nothing was done at all', () => {
    expect(compare([run('a', 1, 1, { refused: 200 })]).warnings[0]).toBe(
      'Not one job was done: such a cost says nothing.',
    );
    const some = compare([run('a', 1, 1, { succeeded: 5, jobs: 5 }), run('b', 1, 1, { jobs: 5 })]);
    expect(some.warnings[0]).toContain('done under b:');
  });
});

describe('intervals', () => {
  it('draw markets again where each seed has its own, with all its windows', () => {
    const own = (n: number) =>
      [100, 300, 200].flatMap((usd, s) =>
        Array.from({ length: n }, (_, w) => ({ ...run('p', w * 2, s, usd), marketSeed: 40 + s })),
      );
    const [one, four] = [compare(own(1)), compare(own(4))];
    expect(one.method).toMatchObject({ units: 'markets', n: 3 });
    expect(four.presets[0]?.costUsd).toEqual(one.presets[0]?.costUsd);
    expect(four.method.text).toContain('3 generated markets');
  });

  it('of windows that run into one another come with a warning', () => {
    const windows = (hours: number) =>
      compare(
        [1, 2, 3, 4, 5, 6].map((w) => ({ ...run('p', w, 1, { succeeded: 1 }), endMs: w * DAY + hours * 3_600_000 })),
      ).warnings;
    expect(windows(24)).toEqual([]);
    expect(windows(25).join()).toContain('5 of 6 windows run into the next one');
  });

  it('count windows, not the seeds within them: ten copies of a window tell no more than one', () => {
    const seeds = (n: number) =>
      [100, 300, 200].flatMap((usd, w) => Array.from({ length: n }, (_, s) => run('p', w, s, usd)));
    const [once, often] = [compare(seeds(1)), compare(seeds(10))];
    expect(often.presets[0]?.costUsd).toEqual(once.presets[0]?.costUsd);
    expect(often.method).toMatchObject({ units: 'windows', n: 3 });
  });

  it('of one window are over its seeds, and say what they do not tell', () => {
    const { method, presets } = compare([1, 2, 3, 4, 5, 6].map((seed) => run('p', 1, seed, seed)));
    expect(method).toMatchObject({ units: 'seeds', n: 6 });
    expect(method.text).toContain('nothing about other windows');
    expect(presets[0]?.costUsd.interval).not.toBeNull();
  });

  it('are none with one run of each, which is said', () => {
    const { method, presets, warnings } = compare([run('p', 1, 1, 3), run('q', 1, 1, 4)]);
    expect(presets.every((p) => p.costUsd.interval === null)).toBe(true);
    expect(method.text).toContain('no intervals');
    expect(warnings).toEqual([]);
  });

  it('of few units come with a warning', () => {
    expect(compare([1, 2, 3].map((w) => run('p', w, 1, w))).warnings.join()).toContain('fewer than 6');
  });

  it('do not depend on the order of the runs', () => {
    const runs = [1, 2, 3, 4].flatMap((w) =>
      ['a', 'on-demand'].map((preset) =>
        fabricated({ preset, jobs: 12, fromMs: w * 20 * DAY, price: preset === 'a' ? 0.3 : 1 }),
      ),
    );
    const byName = (of: typeof runs) =>
      compare(of)
        .presets.map(({ preset, toOnDemand, missedShare }) => ({ preset, toOnDemand, missedShare }))
        .sort((x, y) => (x.preset < y.preset ? -1 : 1));
    const expected = byName(runs);
    expect(expected[0]?.toOnDemand?.interval).not.toBeNull();
    fc.assert(
      fc.property(fc.shuffledSubarray(runs, { minLength: runs.length }), (shuffled) => {
        const found = byName(shuffled);
        found.forEach((f, i) => {
          expect(f.preset).toBe(expected[i]?.preset);
          expect(f.toOnDemand?.value).toBeCloseTo(expected[i]?.toOnDemand?.value ?? NaN, 12);
          expect(f.toOnDemand?.interval?.low).toBeCloseTo(expected[i]?.toOnDemand?.interval?.low ?? NaN, 12);
          expect(f.missedShare.n).toBe(4);
        });
      }),
      { seed: 3, numRuns: 8 },
    );
  });
});

describe('what is wrong', () => {
  it('no runs, or the same one twice', () => {
    expect(() => compare([])).toThrow('no run to compare');
    expect(() => compare([run('p', 1, 1, 3), run('p', 1, 1, 4)])).toThrow('same preset, window and seed');
  });

  it('presets that leave work undone look cheap, so it is said', () => {
    expect(
      compare([
        run('a', 1, 1, { billedUsd: 3, succeeded: 9 }),
        run('b', 1, 1, { billedUsd: 4, succeeded: 10 }),
      ]).warnings.join(),
    ).toContain('not for the same work');
  });
});

describe('services of a comparison', () => {
  const web = { service: 'web', latencyS: 1, target: 0.95, replicaHours: 10, interruptions: 1 };
  const served = (preset: string, window: number, slow: number) =>
    outcome({
      preset,
      fromMs: window * DAY,
      totals: { billedUsd: 2 },
      services: [{ ...web, requests: 1000, slow, failed: 10, billedUsd: 2, onDemandUsd: 8 }],
    });
  const compared = compare([
    served('quick', 1, 10),
    served('quick', 2, 50),
    served('cheap', 1, 100),
    served('cheap', 2, 200),
  ]);

  it('have shares of the requests over all runs, and means per run', () => {
    expect(compared.presets[0]?.services).toMatchObject([
      { service: 'web', requests: 1000, replicaHours: 10, interruptions: 1, latencyS: 1 },
    ]);
    const [quick] = compared.presets[0]?.services ?? [];
    expect([quick?.slowShare.value, quick?.failedShare.value]).toEqual([0.03, 0.01]);
    expect([quick?.costUsd.value, quick?.toOnDemandPrices.value]).toEqual([2, 0.25]);
    expect(compared.presets[0]?.services[0]?.maySlow).toBeCloseTo(0.05);
  });

  it('are bad news where they missed their target, and no run without jobs is', () => {
    expect(badNews(compared, []).filter((line) => line.includes('web'))).toEqual([
      expect.stringMatching(/^cheap: 15\s?% of the requests to web slower than 1 s or failed \(allowed: 5/),
    ]);
    expect(compared.warnings.filter((w) => w.includes('Not one job'))).toEqual([]);
  });
});
