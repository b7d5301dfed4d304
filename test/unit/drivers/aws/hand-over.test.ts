/**
 * A deployment comes between two steps of a cycle: whichever they are, the cycle ends, and the next one does what it
 * would have done.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { handler as acquire } from '../../../../lambdas/acquire/handler.ts';
import { Carrier } from '../../../../lib/drivers/aws/cycle/blobs.ts';
import { provideDeployment, type Deployment } from '../../../../lib/drivers/aws/compose/deployment.ts';
import { Spent } from '../../../../lib/drivers/aws/metrics/spent.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { ObservationMemory } from '../../../../lib/cycle/observe/remembered.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { plus, raw, seconds } from '../../../../lib/kernel/units.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { job, spec, stage } from '../../../support/builders.ts';
import { stepIn } from '../../../support/cycle-steps.ts';
import { execute } from '../../../support/state-machine.ts';
import { discrepancies, EngineBench, work } from '../../../support/engine-bench.ts';
import { mixedTrace, START_MS } from '../../../support/mixed-workload.ts';
import type { Step } from '../../../support/stepped-engine.ts';
import { invoke } from './lambda.ts';

const NAMES = { table: 'table', bucket: 'bucket' };
const TASKS = 3;

/** Each thing that a step takes from another, by the key of its input that refers to it. */
const BOUNDARIES: readonly (readonly [reader: Step, key: string])[] = [
  ['estimate', 'observation'],
  ['forecast', 'observation'],
  ['solve', 'observation'],
  ['solve', 'runtime'],
  ['solve', 'market'],
  ['record', 'decision'],
  ['act', 'keys'],
  ['confirm', 'acted'],
];

/** The cycle of a deployment, whose instances and clock are in memory. */
class Machine {
  readonly #objects = new ObjectsDouble();
  readonly #dynamodb = new DynamoDouble();
  readonly bench: EngineBench;
  readonly wake: Wake;
  readonly started: string[] = [];
  readonly #deployment: Deployment;
  readonly #others: Carrier;

  constructor() {
    const s3 = this.#objects.client();
    const store = new DynamoStore({ dynamodb: this.#dynamodb.client(), s3, ...NAMES });
    this.bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, store });
    const { bench } = this;
    const table = new Table({ client: this.#dynamodb.client(), name: NAMES.table });
    const nowMs = (): number => raw(bench.clock.now());
    const start = async (execution: string): Promise<void> => void this.started.push(execution);
    this.wake = new Wake({ table, nowMs, random: randomStream(1, 'executions'), start });
    const market = replayMarket(mixedTrace, () => bench.clock.now());
    const blobs = new Blobs({ client: s3, bucket: NAMES.bucket });
    this.#others = new Carrier(blobs, 'other code');
    this.#deployment = {
      store,
      fleet: bench.fleet,
      clock: bench.clock,
      speed: 1,
      nowMs,
      random: randomStream(1, 'process'),
      config: { ...bench.config, preset: 'greedy' },
      limits: { vcpus: 64 },
      draining: false,
      wake: this.wake,
      memory: new ObservationMemory(),
      carrier: new Carrier(blobs, 'code'),
      spent: new Spent(table),
      market: async () => ({ market, checkedMs: nowMs() }),
    };
  }

  /** An execution in which what `reader` is handed as `key` was written by other code. */
  execute(execution: string, [reader, key]: readonly [Step | null, string] = [null, '']): Promise<number> {
    return execute(execution, async (step, event) => {
      const given = step === reader ? await this.#fromOthers(event as Record<string, unknown>, key) : event;
      return stepIn(this.#deployment, step, given);
    });
  }

  async #fromOthers(event: Record<string, unknown>, key: string): Promise<object> {
    const again = async (reference: string): Promise<string> =>
      this.#others.put(await this.#deployment.carrier.get(reference), 'of-others');
    const value = event[key];
    if (typeof value === 'string') return { ...event, [key]: await again(value) };
    const acted = value as readonly { readonly outcomes: string }[];
    return { ...event, [key]: await Promise.all(acted.map(async (a) => ({ outcomes: await again(a.outcomes) }))) };
  }

  /** What the state machine does when a step has failed for good. */
  async gaveUp(execution: string, error: Error): Promise<void> {
    provideDeployment(this.#deployment);
    await invoke(acquire, { execution, fault: { Error: error.name, Cause: error.message } });
  }

  /** The minute's clock ticks until nothing is left to do. */
  async drive(): Promise<void> {
    const { bench, wake, started } = this;
    for (let minutes = 0; minutes < 120; minutes++) {
      await wake.wakeIfDue(raw(bench.clock.now()));
      for (let e = started.shift(); e !== undefined; e = started.shift()) await this.execute(e);
      const { jobs, instances } = await bench.store.loadActive();
      if (jobs.length === 0 && instances.length === 0) return;
      await bench.clock.advanceTo(plus(bench.clock.now(), seconds(60)));
    }
    throw new Error(`not done: ${await bench.picture()}`);
  }
}

async function begun(): Promise<{ readonly machine: Machine; readonly execution: string }> {
  const machine = new Machine();
  const stages = [stage({ tasks: TASKS, env: work(300) })];
  await machine.bench.submit([job({ name: 'j-1', submittedMs: START_MS, spec: spec({ name: 'j-1', stages }) })]);
  await machine.wake.wake();
  return { machine, execution: machine.started.shift() ?? '' };
}

describe('other code in the middle of a cycle', () => {
  /** Instances that are bought where nothing comes between. */
  let undisturbed = 0;
  beforeAll(async () => {
    // Metrics and logs go where CloudWatch reads them.
    for (const stream of [process.stdout, process.stderr]) jest.spyOn(stream, 'write').mockReturnValue(true);
    const { machine, execution } = await begun();
    await machine.execute(execution);
    await machine.drive();
    undisturbed = (await machine.bench.fleet.list()).length;
  });
  afterAll(() => {
    jest.restoreAllMocks();
  });
  afterEach(() => provideDeployment(null));

  it.each(BOUNDARIES)('is noticed by %s from its %s: nothing is lost, nothing is done twice', async (reader, key) => {
    const { machine, execution } = await begun();
    const { bench, wake } = machine;
    const refusal = await machine.execute(execution, [reader, key]).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: 'superseded', message: expect.stringMatching(/got other code schema/) });
    // What was recorded is done by whoever comes next; the rest has not happened.
    const bought = (await bench.fleet.list()).length;
    expect(bought > 0).toBe(reader === 'confirm');
    expect(await wake.wakeIfDue(raw(bench.clock.now()))).toBe('idle');
    await machine.gaveUp(execution, refusal as Error);
    expect(await wake.isIdle()).toBe(false);
    await machine.drive();
    expect(await bench.jobs()).toMatchObject([{ state: 'succeeded', stages: [{ succeeded: TASKS }] }]);
    expect(await discrepancies(bench)).toEqual([]);
    expect(await bench.store.attempts(jobId('j-1'))).toHaveLength(TASKS);
    expect(await bench.fleet.list()).toHaveLength(undisturbed);
  });

  it('leaves a due cycle due', async () => {
    const { machine, execution } = await begun();
    const { bench, wake, started } = machine;
    await machine.execute(execution);
    await bench.clock.advanceTo(plus(bench.clock.now(), seconds(bench.config.cyclePeriodS + 60)));
    expect(await wake.wakeIfDue(raw(bench.clock.now()))).toBe('started');
    const next = started.shift() ?? '';
    const refusal = await machine.execute(next, ['record', 'decision']).catch((error: unknown) => error);
    await machine.gaveUp(next, refusal as Error);
    expect(await wake.wakeIfDue(raw(bench.clock.now()))).toBe('started');
  });
});
