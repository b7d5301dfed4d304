import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Job } from '../../../lib/domain/job.ts';
import { parseJobFile } from '../../../lib/domain/job-file/job-file.ts';
import { templateOf } from '../../../lib/domain/job-features.ts';
import { invariant } from '../../../lib/kernel/errors.ts';
import { plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { defaultMarket, DEFAULT_SEED, defaultMarketStartMs } from '../../../lib/market/default-market.ts';
import { deterministic, type Solver } from '../../../lib/policy/solver.ts';
import { job } from '../../support/builders.ts';
import { discrepancies, EngineBench, work } from '../../support/engine-bench.ts';

/**
 * The ten jobs of examples/mixed at once, on less capacity than they want: deadlines hold, and work is not stopped in
 * vain.
 */

const FOLDER = resolve('examples/mixed');
const MAX_NODES = 50;
/**
 * More often than this nobody's work is stopped for somebody else's: seen are two, and scores where plans undid one
 * another.
 */
const MOST_STOPS = 4;

let highs: Solver;
beforeAll(() => {
  highs = highsSolver();
});
afterAll(() => highs.close());

function exampleJobs(): Job[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
  return files.sort().map((path) => {
    const parsed = parseJobFile(readFileSync(join(FOLDER, path), 'utf8'), {
      path,
      baseDir: FOLDER,
      defaultOwner: 'nobody',
    });
    const stages = parsed.stages.map((s) => ({
      ...s,
      env: { ...s.env, ...work(raw(invariant(s.expectedRuntimeS, 'the examples say how long they take'))) },
    }));
    const spec = { ...parsed, stages };
    const afterS = spec.deadline !== null && 'afterS' in spec.deadline ? spec.deadline.afterS : null;
    return job({
      name: `j-${path.slice(0, -5)}`,
      submittedMs: defaultMarketStartMs,
      spec,
      template: templateOf(spec),
      deadlineMs: afterS === null ? null : plus(defaultMarketStartMs, afterS),
    });
  });
}

describe('ten jobs on too little capacity', () => {
  it.each([8, 12, 24])(
    'of %i vCPUs: each ends, in time, and is not stopped again and again',
    async (vcpus) => {
      const bench = new EngineBench({
        trace: defaultMarket(DEFAULT_SEED),
        startMs: defaultMarketStartMs,
        vcpus,
        preset: 'ebbtide',
        solver: deterministic(highs, MAX_NODES),
      });
      const jobs = exampleJobs();
      expect(jobs.filter((j) => j.deadlineMs !== null).length).toBeGreaterThan(5);
      await bench.submit(jobs);
      await bench.drive({ withinS: raw(seconds(10 * 3600)) });
      expect(await discrepancies(bench)).toEqual([]);
      const ended = await bench.jobs();
      expect(ended.map((j) => [j.id, j.state])).toEqual(ended.map((j) => [j.id, 'succeeded']));
      const late = ended.filter((j) => j.deadlineMs !== null && raw(j.finishedMs ?? j.deadlineMs) > raw(j.deadlineMs));
      expect(late.map((j) => j.id)).toEqual([]);
      for (const { id } of ended) {
        const stopped = (await bench.store.attempts(id)).filter((a) => a.outcome === 'preempted');
        const perTask = Map.groupBy(stopped, (a) => `${a.stage}[${a.index}]`);
        for (const [task, stops] of perTask)
          expect([id, task, Math.min(stops.length, MOST_STOPS + 1)]).toEqual([id, task, stops.length]);
      }
    },
    120_000,
  );
});
