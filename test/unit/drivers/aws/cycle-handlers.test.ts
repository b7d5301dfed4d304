import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { handler as act } from '../../../../lambdas/act/handler.ts';
import { handler as snapshot } from '../../../../lambdas/snapshot/handler.ts';
import { allInstances } from '../../../../lib/cycle/state/known-instances.ts';
import { Carrier } from '../../../../lib/drivers/aws/cycle/blobs.ts';
import { provideDeployment, type Deployment } from '../../../../lib/drivers/aws/compose/deployment.ts';
import { PARTS } from '../../../../lib/drivers/aws/cycle/messages.ts';
import { Spent } from '../../../../lib/drivers/aws/metrics/spent.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../../../lib/drivers/aws/cycle/wake.ts';
import { ObservationMemory } from '../../../../lib/cycle/observe/remembered.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { plus, raw, seconds, type EpochMs, type Seconds } from '../../../../lib/kernel/units.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { job, spec, stage } from '../../../support/builders.ts';
import { stepIn } from '../../../support/cycle-steps.ts';
import { execute } from '../../../support/state-machine.ts';
import { discrepancies, EngineBench, work } from '../../../support/engine-bench.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { MIXED_ENDS, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../../support/mixed-workload.ts';
import type { Step } from '../../../support/stepped-engine.ts';
import { invoke } from './lambda.ts';

/** Step Functions carries no more ("Service quotas"). */
const STATE_BYTES = 262_144;

const RIGHT: readonly Seconds[] = [seconds(0)];

/**
 * A deployment in memory; each step is a process of its own, with a clock that is ahead by the next of `ahead`, by
 * turns.
 */
class Rehearsal {
  readonly bench: EngineBench;
  readonly started: string[] = [];
  largestState = 0;
  readonly #make: () => Deployment;

  constructor(preset: string, ahead: readonly Seconds[] = RIGHT) {
    const [tables, objects] = [new DynamoDouble(), new ObjectsDouble()];
    const open = (): DynamoStore =>
      new DynamoStore({ dynamodb: tables.client(), s3: objects.client(), table: 'table', bucket: 'bucket' });
    this.bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, store: open() });
    const { bench } = this;
    const table = new Table({ client: tables.client(), name: 'table' });
    const blobs = new Blobs({ client: objects.client(), bucket: 'bucket' });
    let processes = 0;
    this.#make = () => {
      const aheadS = ahead[++processes % ahead.length] ?? seconds(0);
      const now = (): EpochMs => plus(bench.clock.now(), aheadS);
      const nowMs = (): number => raw(now());
      const random = randomStream(1, `process ${processes}`);
      return {
        store: open(),
        fleet: bench.fleet,
        clock: { now, sleep: (...how) => bench.clock.sleep(...how) },
        speed: 1,
        nowMs,
        random,
        config: schedulerConfig.parse({ hazardPriorPerHour: 0.01, preset }),
        limits: { vcpus: 64 },
        draining: false,
        wake: new Wake({ table, nowMs, random, start: async (execution) => void this.started.push(execution) }),
        memory: new ObservationMemory(),
        carrier: new Carrier(blobs, 'test'),
        spent: new Spent(table),
        market: async () => ({ market: replayMarket(mixedTrace, now), checkedMs: nowMs() }),
      };
    };
  }

  /** That of another process. */
  get wake(): Wake {
    return this.#make().wake;
  }

  /** The minute's clock, which is right. */
  tick(): ReturnType<Wake['wakeIfDue']> {
    return this.wake.wakeIfDue(raw(this.bench.clock.now()));
  }

  /** What happens while an execution goes on: after its first snapshot. */
  between: () => Promise<void> = async () => undefined;

  /** What a step is given in place of an event. */
  changed: (step: Step, event: unknown) => unknown = (_, event) => event;
  /** Of each round: effects that it left for the next one, and whether that followed at once. */
  readonly left: number[] = [];
  readonly again: boolean[] = [];
  /** When an execution has confirmed. */
  rounds: () => void = () => undefined;

  execute(execution: string): Promise<number> {
    let snapshots = 0;
    return execute(execution, async <T>(step: Step, event: unknown): Promise<T> => {
      this.largestState = Math.max(this.largestState, JSON.stringify(event).length);
      const answer = await stepIn<T>(this.#make(), step, this.changed(step, event));
      if (step === 'record') this.left.push((answer as { left: number }).left);
      if (step === 'confirm') {
        this.again.push((answer as { again: boolean }).again);
        this.rounds();
      }
      if (step === 'snapshot' && ++snapshots === 1) await this.between();
      return answer;
    });
  }

  /** The minute's clock ticks, the fleet's news come in, executions run, until nothing is left to do. */
  async drive(
    deeds: readonly { atMs: Parameters<typeof raw>[0]; act: (s: EngineBench['store']) => Promise<unknown> }[] = [],
  ): Promise<number> {
    const left = [...deeds].sort((a, b) => raw(a.atMs) - raw(b.atMs));
    let executions = 0;
    for (let minutes = 0; minutes < 24 * 60; minutes++) {
      for (let due = left[0]; due !== undefined && raw(due.atMs) <= raw(this.bench.clock.now()); due = left[0]) {
        left.shift();
        await due.act(this.bench.store);
        await this.wake.wake();
      }
      await this.tick();
      for (let e = this.started.shift(); e !== undefined; e = this.started.shift()) {
        executions += 1;
        await this.execute(e);
      }
      const { jobs, instances } = await this.bench.store.loadActive();
      if (jobs.length === 0 && instances.length === 0 && left.length === 0) return executions;
      await this.bench.clock.advanceTo(plus(this.bench.clock.now(), seconds(60)));
    }
    throw new Error(`not done within a day:\n${await this.bench.picture()}`);
  }
}

describe('the handlers of the cycle', () => {
  // Metrics go to standard output, which is where CloudWatch reads them.
  const metrics: string[] = [];
  beforeAll(() => {
    jest.spyOn(process.stdout, 'write').mockImplementation((line) => metrics.push(String(line)) > 0);
  });
  afterAll(() => {
    jest.restoreAllMocks();
  });
  afterEach(() => {
    provideDeployment(null);
    metrics.length = 0;
  });

  it('bring a job to its end, one after another, with the solver', async () => {
    const rehearsal = new Rehearsal('ebbtide');
    const { bench, wake } = rehearsal;
    await bench.submit([
      job({
        name: 'j-1',
        submittedMs: START_MS,
        spec: spec({ name: 'j-1', stages: [stage({ tasks: 3, env: work(300) })] }),
      }),
    ]);
    await wake.wake();
    await rehearsal.drive();
    const [done] = await bench.jobs();
    expect(done).toMatchObject({ state: 'succeeded' });
    expect(await discrepancies(bench)).toEqual([]);
    // Nothing is left to do, and nothing is done.
    await bench.clock.advanceTo(plus(bench.clock.now(), seconds(3600)));
    expect(await rehearsal.tick()).toBe('idle');
    expect(metrics.join('\n')).toContain('"QueueDepth"');
    expect(rehearsal.largestState).toBeLessThan(STATE_BYTES / 2);
  }, 120_000);

  /** Of all that was written of one metric since the test before. */
  const sumOf = (name: string): number => {
    const written = metrics.flatMap((text) => text.split('\n')).filter((line) => line.includes(`"${name}"`));
    const values = written.flatMap((line) => (JSON.parse(line) as Record<string, number | number[]>)[name] ?? []);
    return values.reduce((sum, value) => sum + value, 0);
  };

  it('bring a mixed workload to its end, with every cent accounted for and clocks that differ by ten minutes from step to step', async () => {
    const rehearsal = new Rehearsal('greedy', [600, -600, 0, -600, 600].map(seconds));
    const { bench, wake } = rehearsal;
    const meanwhile: string[] = [];
    rehearsal.between = async () => {
      meanwhile.push(await rehearsal.tick(), await rehearsal.tick(), await rehearsal.wake.wake());
    };
    await bench.submit(mixedJobs());
    await wake.wake();
    await rehearsal.drive(mixedDeeds());
    // No execution has lost its place to another one, and what was wanted meanwhile was served by its next round.
    expect(new Set(meanwhile)).toEqual(new Set(['idle', 'coalesced']));
    expect(await rehearsal.wake.isIdle()).toBe(true);
    expect(await discrepancies(bench)).toEqual([]);
    expect(Object.fromEntries((await bench.jobs()).map((j) => [j.id, j.state]))).toEqual(MIXED_ENDS);
    // As forecast and as it came: every spot instance that came up is counted when it is paid for.
    const taken = (await allInstances(bench.store, false)).filter(
      (i) => i.forecast !== undefined && i.launchedMs !== null && i.endCause === 'interrupted',
    );
    expect(taken.length).toBeGreaterThan(0);
    expect(sumOf('EndedInterrupted')).toBe(taken.length);
    expect(sumOf('EndedExpected')).toBeGreaterThan(0);
  }, 180_000);

  it('do what is more than one cycle does in the next ones, at once', async () => {
    const { most } = PARTS;
    PARTS.most = 1;
    try {
      const rehearsal = new Rehearsal('greedy');
      const { bench, wake } = rehearsal;
      const tasks = spec({ name: 'j-1', stages: [stage({ tasks: 60, env: work(300) })] });
      await bench.submit([job({ name: 'j-1', submittedMs: START_MS, spec: tasks })]);
      await wake.wake();
      await rehearsal.drive();
      // A round that leaves some is followed by another in the same execution.
      expect(rehearsal.left.some((left) => left > 0)).toBe(true);
      rehearsal.left.forEach((left, n) => expect(left === 0 || rehearsal.again[n]).toBe(true));
      expect(await bench.jobs()).toMatchObject([{ state: 'succeeded' }]);
      expect(await discrepancies(bench)).toEqual([]);
    } finally {
      PARTS.most = most;
    }
  }, 60_000);

  it('leave a part to the next cycle when the execution has no time left for it', async () => {
    const rehearsal = new Rehearsal('greedy');
    const { bench, wake, started } = rehearsal;
    await bench.submit([job({ name: 'j-1', submittedMs: START_MS })]);
    await wake.wake();
    rehearsal.changed = (step, event) => {
      const began = '2020-01-01T00:00:00.000Z';
      return step === 'act' ? { ...(event as object), began } : event;
    };
    const bought = rehearsal.execute(started.shift() ?? '');
    rehearsal.rounds = () => {
      rehearsal.changed = (_, event) => event;
    };
    expect(await bought).toBeGreaterThan(1);
    expect(await bench.fleet.list()).not.toEqual([]);
  }, 60_000);

  it('end a cycle that a newer one has overtaken under the name by which it is caught', async () => {
    const rehearsal = new Rehearsal('greedy');
    const { bench, wake, started } = rehearsal;
    await bench.submit([job({ name: 'j-1', submittedMs: START_MS })]);
    await wake.wake();
    // The lease goes to another one between its snapshot and its record.
    rehearsal.between = async () => void (await bench.store.takeLease('another'));
    await expect(rehearsal.execute(started.shift() ?? '')).rejects.toMatchObject({ name: 'fenced' });
    expect(await bench.fleet.list()).toEqual([]);
  });

  it('refuse an event that is none, under the name of its error', async () => {
    provideDeployment(null);
    await expect(invoke(snapshot, { round: -1 })).rejects.toMatchObject({ name: 'usage' });
    await expect(invoke(act, { execution: 'c-1', round: 0 })).rejects.toMatchObject({ name: 'usage' });
  });
});
