/**
 * Tasks of seconds of which nothing is known, on a deployment that has learned nothing yet: the cycle in the steps of
 * the Lambdas, with data between them, one step after the other as news comes.
 */
import { describe, expect, it } from '@jest/globals';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { Job } from '../../../lib/domain/job.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { EngineBench, work } from '../../support/engine-bench.ts';
import { after, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

const TASKS = 150;

/** Capacity that nobody takes. */
const calm: MarketTrace = { ...mixedTrace, availability: () => null };

interface Scene {
  readonly runtimeS: number;
  readonly deadlineS?: number;
  /** One job of so many tasks, or so many jobs. */
  readonly isOneJob: boolean;
  readonly expectedS?: number;
}

function jobsOf({ runtimeS, deadlineS, isOneJob, expectedS }: Scene): Job[] {
  return Array.from({ length: isOneJob ? 1 : TASKS }, (_, n) => {
    const id = `j-${n}`;
    const of = stage({
      tasks: isOneJob ? TASKS : 1,
      resources: resources(2),
      env: work(runtimeS),
      expectedRuntimeS: expectedS === undefined ? null : seconds(expectedS),
    });
    const dated =
      deadlineS === undefined ? {} : ({ class: 'deadline', deadline: { afterS: seconds(deadlineS) } } as const);
    return job({
      name: id,
      submittedMs: START_MS,
      ...(deadlineS === undefined ? {} : { deadlineMs: after(deadlineS) }),
      spec: spec({ name: `short-${n}`, stages: [of], ...dated }),
    });
  });
}

async function run(scene: Scene): Promise<{
  readonly bought: number;
  readonly workUsd: number;
  readonly idleUsd: number;
  readonly tookS: number;
}> {
  const bench = new EngineBench({ trace: calm, startMs: START_MS, vcpus: 1000, stepped: true });
  await bench.submit(jobsOf(scene));
  await bench.drive();
  const jobs = await bench.jobs();
  expect(jobs.filter((j) => j.state !== 'succeeded')).toEqual([]);
  const ledger = await bench.store.ledger('all');
  const usdOf = (kind: string): number => ledger.reduce((sum, row) => (row.kind === kind ? sum + row.usd : sum), 0);
  return {
    bought: (await bench.store.instances(null, 1000, null)).items.length,
    workUsd: usdOf('work'),
    idleUsd: usdOf('idle'),
    tookS: Math.max(...jobs.map((j) => (raw(j.finishedMs ?? START_MS) - raw(START_MS)) / 1000)),
  };
}

describe('150 tasks of ten seconds that nothing is known of', () => {
  for (const isOneJob of [true, false]) {
    for (const deadlineS of [undefined, 3600]) {
      const of = isOneJob ? 'in one job' : 'in as many jobs';
      it(`${of}, ${deadlineS === undefined ? 'without a deadline' : 'within an hour'}, are bought an instance for every eight of them or fewer`, async () => {
        const untold = await run({ runtimeS: 10, isOneJob, ...(deadlineS === undefined ? {} : { deadlineS }) });
        // Each place would be half of an instance: 75 of them.
        expect(untold.bought).toBeLessThanOrEqual(Math.ceil(TASKS / 8));
        expect(untold.tookS).toBeLessThan(600);
        const told = await run({
          runtimeS: 10,
          isOneJob,
          expectedS: 10,
          ...(deadlineS === undefined ? {} : { deadlineS }),
        });
        expect(untold.idleUsd).toBeLessThan(2.5 * told.idleUsd);
      }, 120_000);
    }
  }
});

describe('tasks that nothing is known of and that are not short', () => {
  it('wait for two starts of an instance and a decision at most', async () => {
    const untold = await run({ runtimeS: 900, isOneJob: true });
    const told = await run({ runtimeS: 900, isOneJob: true, expectedS: 900 });
    expect(untold.tookS - told.tookS).toBeGreaterThan(60);
    expect(untold.tookS - told.tookS).toBeLessThan(2 * 160 + 60);
  }, 120_000);

  it('are in time where they are in time without the wait', async () => {
    for (const deadlineS of [1500, 3600]) {
      const { tookS } = await run({ runtimeS: 900, isOneJob: true, deadlineS });
      expect([deadlineS, tookS <= deadlineS]).toEqual([deadlineS, true]);
    }
  }, 120_000);
});
