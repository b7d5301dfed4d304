/** A job that no decision can be made for, in a deployment's own functions: the others are done, and it is held. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Carrier } from '../../../../lib/drivers/aws/cycle/blobs.ts';
import { provideDeployment, type Deployment } from '../../../../lib/drivers/aws/compose/deployment.ts';
import { Spent } from '../../../../lib/drivers/aws/metrics/spent.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { ObservationMemory } from '../../../../lib/cycle/observe/remembered.ts';
import type { Preference } from '../../../../lib/domain/job.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { plus, raw, seconds } from '../../../../lib/kernel/units.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { job, spec, stage } from '../../../support/builders.ts';
import { stepIn } from '../../../support/cycle-steps.ts';
import { discrepancies, EngineBench, work } from '../../../support/engine-bench.ts';
import { mixedTrace, START_MS } from '../../../support/mixed-workload.ts';
import { execute } from '../../../support/state-machine.ts';
import type { Step } from '../../../support/stepped-engine.ts';

const NAMES = { table: 'table', bucket: 'bucket' };

/** A cycle of a deployment's functions, with instances and clock in memory. */
function deployed() {
  const s3 = new ObjectsDouble().client();
  const dynamodb = new DynamoDouble().client();
  const store = new DynamoStore({ dynamodb, s3, ...NAMES });
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, store });
  const table = new Table({ client: dynamodb, name: NAMES.table });
  const nowMs = (): number => raw(bench.clock.now());
  const started: string[] = [];
  const start = async (execution: string): Promise<void> => void started.push(execution);
  const wake = new Wake({ table, nowMs, random: randomStream(1, 'executions'), start });
  const market = replayMarket(mixedTrace, () => bench.clock.now());
  const deployment: Deployment = {
    store,
    fleet: bench.fleet,
    clock: bench.clock,
    speed: 1,
    nowMs,
    random: randomStream(1, 'process'),
    config: { ...bench.config, preset: 'greedy' },
    limits: { vcpus: 64 },
    draining: false,
    wake,
    memory: new ObservationMemory(),
    carrier: new Carrier(new Blobs({ client: s3, bucket: NAMES.bucket }), 'code'),
    spent: new Spent(table),
    market: async () => ({ market, checkedMs: nowMs() }),
  };
  return { bench, store, wake, started, deployment };
}

describe('a job that no decision can be made for', () => {
  /** Metrics and logs, as they go where CloudWatch reads them. */
  const written: string[] = [];
  const published = (metric: string): unknown[] =>
    written.flatMap((line) => {
      const said = line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : {};
      return metric in said ? [said[metric]] : [];
    });
  beforeAll(() => {
    const keep = (text: unknown): boolean => written.push(...String(text).trim().split('\n')) > 0;
    for (const stream of [process.stdout, process.stderr]) jest.spyOn(stream, 'write').mockImplementation(keep);
  });
  afterAll(() => {
    provideDeployment(null);
    jest.restoreAllMocks();
  });

  it('is held by the cycle that meets it, and the next ones decide without a trial', async () => {
    const { bench, store, wake, started, deployment } = deployed();
    const at = { submittedMs: START_MS };
    const fine = (name: string) =>
      job({ ...at, name, spec: spec({ name, stages: [stage({ tasks: 2, env: work(300) })] }) });
    // As an earlier version with a defect might have stored it.
    const preferences = [null] as unknown as readonly Preference[];
    const broken = job({ ...at, name: 'j-bad', spec: spec({ name: 'j-bad', stages: [stage({ preferences })] }) });
    await bench.submit([fine('j-1'), broken, fine('j-2')]);
    await wake.wake();
    const steps: Step[] = [];
    for (let minutes = 0; minutes < 60; minutes++) {
      for (let e = started.shift(); e !== undefined; e = started.shift()) {
        await execute(e, async (step, event) => {
          steps.push(step);
          return stepIn(deployment, step, event);
        });
      }
      await bench.clock.advanceTo(plus(bench.clock.now(), seconds(60)));
      await wake.wakeIfDue(raw(bench.clock.now()));
    }
    expect(steps.filter((s) => s === 'isolate')).toHaveLength(1);
    const states = new Map((await bench.jobs()).map((j) => [j.id, j.state]));
    expect([...states].sort()).toEqual([
      ['j-1', 'succeeded'],
      ['j-2', 'succeeded'],
      ['j-bad', 'held'],
    ]);
    expect((await bench.job(jobId('j-bad'))).held?.reason).toMatch(/a decision on it fails/);
    // Nothing is left to do until a person comes.
    expect(await wake.isIdle()).toBe(true);
    // Every snapshot while the job is held says so, and none before.
    const snapshots = steps.filter((s) => s === 'snapshot').length;
    expect(published('HeldJobs')).toEqual(Array.from({ length: snapshots - 1 }, () => 1));
    expect(await store.requestCancel(jobId('j-bad'))).toBe(true);
    await wake.wake();
    await execute(started.shift() ?? '', (step, event) => stepIn(deployment, step, event));
    expect((await bench.job(jobId('j-bad'))).state).toBe('cancelled');
    expect(published('HeldJobs').at(-1)).toBe(0);
    expect(await discrepancies(bench)).toEqual([]);
  }, 120_000);
});
