import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { LoggedHistory } from '../../../lib/stages/estimate/logged-history.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { admitter } from '../../../lib/cycle/admit/admission.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { isSpotPool } from '../../../lib/domain/pool.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work } from '../../support/engine-bench.ts';
import { smallMarket } from '../../support/generated-market.ts';
import { SAVES } from '../../support/mixed-workload.ts';

const VCPUS = 48;

interface Wanted {
  readonly tasks: number;
  readonly cpus: number;
  readonly runtimeS: number;
  /** Deadline over running time. */
  readonly slack: number;
  /** True running time over what was said: an honest estimate is no less. */
  readonly share: number;
  readonly behind: boolean;
}
const wanted: fc.Arbitrary<Wanted> = fc.record({
  tasks: fc.integer({ min: 1, max: 6 }),
  cpus: fc.constantFrom(1, 2, 4),
  runtimeS: fc.integer({ min: 600, max: 4 * 3600 }),
  slack: fc.double({ min: 1.1, max: 4, noNaN: true }),
  share: fc.double({ min: 0.8, max: 1, noNaN: true }),
  behind: fc.boolean(),
});

function deadlineJob(n: number, w: Wanted, startMs: EpochMs): Job {
  const runtimeS = Math.round(w.runtimeS * w.share);
  const one = { env: work(runtimeS), expectedRuntimeS: seconds(w.runtimeS), checkpoint: SAVES };
  const stages = [
    stage({ ...one, tasks: w.tasks, resources: resources(w.cpus) }),
    ...(w.behind ? [stage({ ...one, name: 'behind', dependsOn: ['main'], resources: resources(w.cpus) })] : []),
  ];
  const afterS = seconds(Math.round(600 + w.runtimeS * w.slack * stages.length));
  return job({
    name: `j-${n}`,
    submittedMs: startMs,
    deadlineMs: plus(startMs, afterS),
    spec: spec({ name: `job-${n}`, class: 'deadline', deadline: { afterS }, stages }),
  });
}

/** Only what submission takes. */
function taken(jobs: readonly Job[], trace: MarketTrace, startMs: EpochMs): Job[] {
  const admit = admitter({
    pools: trace.pools,
    limits: { vcpus: VCPUS },
    config: schedulerConfig.parse({}),
    history: new LoggedHistory(),
  });
  return jobs.filter((j) => {
    try {
      return admit(j.spec, startMs).feasible;
    } catch (error) {
      if (error instanceof EbbError && error.code === 'job.deadline-impossible') return false;
      throw error;
    }
  });
}

describe('deadlines', () => {
  it('are met whatever the market does: with checkpoints and honest estimates no job is late', async () => {
    const seen = { jobs: 0, interruptions: 0, spot: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 10_000 }),
        fc.array(wanted, { minLength: 1, maxLength: 4 }),
        async (seed, all) => {
          const { trace, startMs } = smallMarket(seed);
          const jobs = taken(
            all.map((w, n) => deadlineJob(n, w, startMs)),
            trace,
            startMs,
          );
          const bench = new EngineBench({ trace, startMs, vcpus: VCPUS, config: { lateBudget: 0 } });
          await bench.submit(jobs);
          await bench.drive({ withinS: 40 * 3600 });
          for (const j of await bench.jobs()) {
            seen.jobs += 1;
            const lateS = (raw(j.finishedMs ?? startMs) - raw(j.deadlineMs ?? startMs)) / 1000;
            expect({ job: j.id, state: j.state, lateS: Math.max(0, lateS) }).toEqual({
              job: j.id,
              state: 'succeeded',
              lateS: 0,
            });
            const attempts = await bench.store.attempts(j.id);
            seen.interruptions += attempts.filter((a) => a.outcome === 'interrupted').length;
          }
          seen.spot += (await bench.store.instances(null, 1000, null)).items.filter((i) => isSpotPool(i.pool)).length;
          expect(await discrepancies(bench)).toEqual([]);
        },
      ),
      { seed: 39, numRuns: 30, endOnFailure: false },
    );
    // The property would hold of an engine that buys on-demand alone, and on a market that takes nothing back.
    expect(seen.jobs).toBeGreaterThan(30);
    expect(seen.spot).toBeGreaterThan(20);
    expect(seen.interruptions).toBeGreaterThan(10);
  }, 180_000);
});
