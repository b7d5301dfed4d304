import { describe, expect, it } from '@jest/globals';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { deterministic } from '../../../lib/policy/solver.ts';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { openWorkload } from '../../../lib/workload/open.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { simulated } from '../../support/simulated.ts';

/** One of its jobs has several hundred tasks, of which a few at a time have room. */
const WORKLOAD = 'synthetic:jobs=25,perHour=30';
const SEED = 3;
const VCPUS = 16;

describe('more tasks of one stage than there is room for', () => {
  it('are not preempted for one another: running work is not stopped for its like', async () => {
    const solver = deterministic(highsSolver(), 50);
    const jobs: WorkloadJob[] = [];
    for await (const job of (await openWorkload(WORKLOAD, { seed: SEED })).jobs()) jobs.push(job);
    try {
      const result = await simulated(jobs, { deciders: decidersNamed('ebbtide'), solver, vcpus: VCPUS, seed: SEED });
      const { totals } = outcomeOf(result, { preset: 'ebbtide', seed: SEED, fromMs: START_MS });
      expect(result.ended).toBe('done');
      expect(totals.tasks).toBeGreaterThan(400);
      // Deadline work may have best-effort work stopped; without the rule there were some 50 attempts to a task.
      expect(totals.attempts).toBeLessThan(1.25 * totals.tasks);
    } finally {
      await solver.close();
    }
  }, 120_000);
});
