import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decodeJobs, decodeNumbers } from '../../../lib/report/client/columns.ts';
import { textAt } from '../../../lib/report/client/job-rows.ts';
import { Columns } from '../../../lib/report/columns.ts';
import { compare } from '../../../lib/report/comparison.ts';
import { curve, detailsOf } from '../../../lib/report/details.ts';
import { fabricated, outcome } from './outcomes.ts';

describe('columns', () => {
  it('come back as they were, by the page that reads them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.float64Array({ maxLength: 40 }), async (values) => {
        const columns = new Columns();
        const [wide, narrow] = [columns.numbers(values), columns.numbers(Float32Array.from(values))];
        const blobs = await columns.blobs();
        const read = (i: number): string => blobs[i] ?? '';
        expect(await decodeNumbers(wide, read)).toEqual(values);
        expect(await decodeNumbers(narrow, read)).toEqual(Float32Array.from(values));
      }),
      { seed: 11, numRuns: 40 },
    );
  });

  it('of jobs: every row of every column, with any text', async () => {
    const run = fabricated({ preset: 'p', jobs: 50 });
    const odd = ['</script><b>', 'naïve ☃ \u0000 "quoted"', ''];
    const name = run.jobs.name.map((n, i) => odd[i % 7] ?? n);
    const runs = [{ ...run, jobs: { ...run.jobs, name } }];
    const { payload, blobs } = await detailsOf(runs, compare(runs), { prices: [] });
    const embedded = payload.runs[0]?.jobs;
    if (embedded === undefined || embedded === null) throw new Error('the jobs are not there');
    const jobs = await decodeJobs(embedded, (i) => blobs[i] ?? '');
    const rows = [...name.keys()];
    expect(rows.map((i) => textAt(jobs, 'name', i))).toEqual(name);
    expect(rows.map((i) => textAt(jobs, 'key', i))).toEqual(run.jobs.key);
    expect(rows.map((i) => textAt(jobs, 'state', i))).toEqual(run.jobs.state);
    expect(jobs.deadlineMs).toEqual(run.jobs.deadlineMs);
    expect(jobs.finishedMs).toEqual(run.jobs.finishedMs);
    expect(Array.from(jobs.workUsd)).toEqual(Array.from(run.jobs.workUsd, Math.fround));
  });

  it('that presets have in common are stored once', async () => {
    const blobsOf = async (presets: readonly string[]): Promise<number> => {
      const runs = presets.map((preset) => fabricated({ preset, jobs: 40 }));
      return (await detailsOf(runs, compare(runs), { prices: [] })).blobs.length;
    };
    const [one, two] = [await blobsOf(['a']), await blobsOf(['a', 'b'])];
    // Keys, names, owners, classes, tasks, submissions, deadlines and on-demand costs do not depend on the preset.
    expect(two).toBeLessThan(2 * one - 8);
  });
});

describe('what is left out', () => {
  it('one run of each preset has its jobs before any has two', async () => {
    const runs = ['a', 'b'].flatMap((preset) => [1, 2].map((seed) => fabricated({ preset, jobs: 10, seed })));
    const { payload, leftOut } = await detailsOf(runs, compare(runs), { prices: [], rows: 25 });
    expect(payload.runs.map((r) => r.jobs?.rows ?? null)).toEqual([10, null, 10, null]);
    expect(leftOut).toBe(2);
  });

  it('the first run never is', async () => {
    const runs = [fabricated({ preset: 'a', jobs: 10 })];
    const { payload } = await detailsOf(runs, compare(runs), { prices: [], rows: 5 });
    expect(payload.runs[0]?.jobs?.rows).toBe(10);
  });

  it('a run without a job is a run', async () => {
    const runs = [outcome()];
    const { payload } = await detailsOf(runs, compare(runs), { prices: [] });
    expect(payload).toMatchObject({ latenessS: [], completionS: { deadline: [], 'best-effort': [] } });
    expect(payload.runs[0]?.jobs?.rows).toBe(0);
  });

  it('refused jobs: all are counted, the first few named', async () => {
    const refused = Array.from({ length: 9 }, (_, i) => ({
      key: `k${i}`,
      code: i < 7 ? 'x' : 'y',
      what: 'why',
      next: '',
    }));
    const runs = [outcome({ refused })];
    const { payload } = await detailsOf(runs, compare(runs), { prices: [] });
    expect(payload.runs[0]?.refused.map((r) => [r.code, r.count, r.first.map((f) => f.key)])).toEqual([
      ['x', 7, ['k0', 'k1', 'k2', 'k3', 'k4']],
      ['y', 2, ['k7', 'k8']],
    ]);
  });
});

describe('distribution functions', () => {
  it('say the true share at every point that is kept, and keep both ends', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 900 }), (values) => {
        const [found] = curve('p', Float64Array.from(values));
        const points = found?.points ?? [];
        expect(points.length).toBeLessThanOrEqual(240);
        expect(points.at(-1)).toEqual([Math.max(...values), 1]);
        expect(points[0]?.[0]).toBe(Math.min(...values));
        for (const [x, p] of points) {
          // With ties a point may stand part of the way up its own step.
          expect(p).toBeLessThanOrEqual(values.filter((v) => v <= x).length / values.length);
          expect(p).toBeGreaterThan(values.filter((v) => v < x).length / values.length);
        }
      }),
      { seed: 2, numRuns: 30 },
    );
  });
});
