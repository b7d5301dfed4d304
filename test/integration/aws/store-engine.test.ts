import { expect, it } from '@jest/globals';
import { jobId } from '../../../lib/kernel/ids.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { diaries } from '../../support/diary-learner.ts';
import { discrepancies, EngineBench, work } from '../../support/engine-bench.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

const VCPUS = 12;

async function history(store: Store) {
  const jobs = (await store.jobs({}, 100, null)).items;
  return {
    jobs,
    tasks: await Promise.all(jobs.map((j) => store.tasks(j.id))),
    attempts: await Promise.all(jobs.map((j) => store.attempts(j.id))),
    explanations: await Promise.all(jobs.map((j) => store.explanation(j.id))),
    instances: (await store.instances(null, 100, null)).items,
    ledger: await store.ledger('all'),
    ofJob: await store.ledger({ job: jobId('j-deadline') }),
    memory: await store.memory(''),
    events: await store.events(0, 10_000),
    plans: (await store.plans(100, null)).items.map(({ solve: { elapsedMs: _, ...solve }, ...plan }) => ({
      ...plan,
      solve,
    })),
  };
}

/** Every third cycle is that of a process which has just begun, as in a deployment that has not cycled for a while. */
function processesByTurns(open: () => Store): Store {
  let store = open();
  let loads = 0;
  return new Proxy(store, {
    get: (_, method: keyof Store) => {
      if (method === 'loadActive' && ++loads % 3 === 0) store = open();
      return store[method]?.bind(store);
    },
  });
}

describeOnLocalStack('the engine on the DynamoDB store', (on) => {
  it('decides, pays and remembers as on the memory store, whether its process lives on or not', async () => {
    const learners = [diaries().learner];
    const options = { trace: mixedTrace, startMs: START_MS, vcpus: VCPUS, learners };
    const run = async (store: Store | null): Promise<EngineBench> => {
      const bench = new EngineBench(store === null ? options : { ...options, store });
      await bench.submit(mixedJobs());
      await bench.drive({ deeds: mixedDeeds() });
      return bench;
    };
    const expected = await history((await run(null)).store);
    expect(expected.memory.keys().some((key) => key.startsWith('diary/'))).toBe(true);
    const place = await on.place();
    const bench = await run(processesByTurns(() => on.store(place)));
    expect(await history(on.store(place))).toEqual(expected);
    expect(await discrepancies(bench)).toEqual([]);
  }, 120_000);

  it('needs few units of reading and writing per job', async () => {
    const JOBS = 40;
    const used = new Map<string, { calls: number; units: number }>();
    const store = on.store({
      ...(await on.place()),
      meter: ({ operation, units }) => {
        const known = used.get(operation) ?? { calls: 0, units: 0 };
        used.set(operation, { calls: known.calls + 1, units: known.units + units });
      },
    });
    const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, vcpus: VCPUS, store });
    for (let n = 0; n < JOBS; n++) {
      const id = `j-${n}`;
      await bench.submit([
        job({ name: id, submittedMs: START_MS, spec: spec({ name: id, stages: [stage({ env: work(300) })] }) }),
      ]);
    }
    await bench.drive({ withinS: 24 * 3600 });
    const done = (await bench.jobs()).filter((j) => j.state === 'succeeded');
    expect(done).toHaveLength(JOBS);
    const unitsOf = (operation: string): number => (used.get(operation)?.units ?? 0) / JOBS;
    const written = unitsOf('TransactWriteItems') + unitsOf('UpdateItem');
    const read = unitsOf('BatchGetItem') + unitsOf('Query');
    if (process.env['EBB_SHOW_METER'] === '1') {
      process.stderr.write(
        `${JSON.stringify({ JOBS, cycles: bench.cycles.length, written, read, used: [...used] })}\n`,
      );
    }
    // With the log compacted into items, as it is once so many jobs are in it. docs/aws-store.md has the figures
    // and what they cost.
    expect(written).toBeGreaterThan(2);
    expect(written).toBeLessThan(14);
    expect(read).toBeLessThan(60);
  }, 120_000);
});
