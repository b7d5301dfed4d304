import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { handler as act } from '../../../lambdas/act/handler.ts';
import { handler as confirm } from '../../../lambdas/confirm/handler.ts';
import { handler as estimate } from '../../../lambdas/estimate/handler.ts';
import { handler as forecast } from '../../../lambdas/forecast/handler.ts';
import { handler as look } from '../../../lambdas/look/handler.ts';
import { handler as record } from '../../../lambdas/record/handler.ts';
import { handler as solve } from '../../../lambdas/solve/handler.ts';
import { allInstances } from '../../../lib/api/known-instances.ts';
import { Carrier } from '../../../lib/aws/blobs.ts';
import { provideDeployment, type Deployment } from '../../../lib/aws/deployment.ts';
import type { Acted, Confirmed, LookAnswer, Recorded, Solved } from '../../../lib/aws/messages.ts';
import { Spent } from '../../../lib/aws/spent.ts';
import { Blobs } from '../../../lib/aws/store/blobs.ts';
import { Table } from '../../../lib/aws/store/table.ts';
import { Wake } from '../../../lib/aws/wake.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { replayMarket } from '../../../lib/local/market-replay.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { discrepancies, EngineBench, work } from '../../support/engine-bench.ts';
import { describeOnLocalStack, type OnLocalStack } from '../../support/localstack.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { invoke } from './lambda.ts';

/** Step Functions carries no more ("Service quotas"). */
const STATE_BYTES = 262_144;

/** A deployment whose instances and clock are in memory; each step is a process of its own. */
class Rehearsal {
  readonly bench: EngineBench;
  readonly started: string[] = [];
  largestState = 0;
  readonly #make: () => Deployment;
  readonly wake: Wake;

  constructor(on: OnLocalStack, place: { table: string; bucket: string }, preset: string) {
    this.bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, store: on.store(place) });
    const { bench } = this;
    const table = new Table({ client: on.dynamodb(), name: place.table });
    const blobs = new Blobs({ client: on.s3(), bucket: place.bucket });
    const nowMs = (): number => raw(bench.clock.now());
    this.wake = new Wake({
      table,
      nowMs,
      random: randomStream(1, 'executions'),
      start: async (execution) => void this.started.push(execution),
    });
    const market = replayMarket(mixedTrace, () => bench.clock.now());
    let processes = 0;
    this.#make = () => ({
      store: on.store(place),
      fleet: bench.fleet,
      clock: bench.clock,
      speed: 1,
      nowMs,
      random: randomStream(1, `process ${++processes}`),
      config: schedulerConfig.parse({ hazardPriorPerHour: 0.01, preset }),
      limits: { vcpus: 64 },
      draining: false,
      wake: this.wake,
      carrier: new Carrier(blobs),
      spent: new Spent(table),
      market: async () => ({ market, checkedMs: nowMs() }),
    });
  }

  async #step<T>(handler: unknown, event: unknown): Promise<T> {
    this.largestState = Math.max(this.largestState, JSON.stringify(event).length);
    provideDeployment(this.#make());
    return invoke<T>(handler, event);
  }

  /** What the state machine does with one execution. Returns its rounds. */
  async execute(execution: string): Promise<number> {
    let next: { execution: string; round?: number } = { execution };
    for (let rounds = 1; ; rounds++) {
      const looked = await this.#step<LookAnswer>(look, next);
      if (looked.idle) return rounds;
      const [{ runtime }, { market }] = await Promise.all([
        this.#step<{ runtime: string }>(estimate, looked),
        this.#step<{ market: string }>(forecast, looked),
      ]);
      const solved = await this.#step<Solved>(solve, { ...looked, runtime, market });
      const recorded = await this.#step<Recorded>(record, solved);
      const acted: Acted[] = [];
      for (const batch of recorded.batches) acted.push(await this.#step<Acted>(act, { ...recorded, batch }));
      const confirmed = await this.#step<Confirmed>(confirm, { ...recorded, acted });
      if (!confirmed.again) return rounds;
      next = confirmed;
    }
  }

  /** The minute's clock strikes, the fleet's news come in, executions run, until nothing is left to do. */
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
      await this.wake.wakeIfDue(raw(this.bench.clock.now()));
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

describeOnLocalStack('the handlers of the cycle', (on) => {
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
    const rehearsal = new Rehearsal(on, await on.place(), 'ebbtide');
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
    expect(await wake.wakeIfDue(raw(bench.clock.now()))).toBe('idle');
    expect(metrics.join('\n')).toContain('"QueueDepth"');
    expect(rehearsal.largestState).toBeLessThan(STATE_BYTES / 2);
  }, 120_000);

  /** Of all that was written of one metric since the test before. */
  const sumOf = (name: string): number => {
    const written = metrics.flatMap((text) => text.split('\n')).filter((line) => line.includes(`"${name}"`));
    const values = written.flatMap((line) => (JSON.parse(line) as Record<string, number | number[]>)[name] ?? []);
    return values.reduce((sum, value) => sum + value, 0);
  };

  it('bring a mixed workload with interruptions, cancellations and failures to its end, with every cent accounted for', async () => {
    const rehearsal = new Rehearsal(on, await on.place(), 'greedy');
    const { bench, wake } = rehearsal;
    await bench.submit(mixedJobs());
    await wake.wake();
    await rehearsal.drive(mixedDeeds());
    expect(await discrepancies(bench)).toEqual([]);
    // As forecast and as it came: every spot instance that came up is counted when it is paid for.
    const taken = (await allInstances(bench.store, false)).filter(
      (i) => i.forecast !== undefined && i.launchedMs !== null && i.endCause === 'interrupted',
    );
    expect(taken.length).toBeGreaterThan(0);
    expect(sumOf('EndedInterrupted')).toBe(taken.length);
    expect(sumOf('EndedExpected')).toBeGreaterThan(0);
    const states = new Map((await bench.jobs()).map((j) => [j.spec.name, j.state]));
    expect(new Set(states.values())).toContain('succeeded');
    expect([...states.values()]).not.toContain('running');
    expect([...states.values()]).not.toContain('pending');
  }, 180_000);

  it('end a cycle that a newer one has overtaken under the name by which it is caught', async () => {
    const rehearsal = new Rehearsal(on, await on.place(), 'greedy');
    const { bench, wake, started } = rehearsal;
    await bench.submit([job({ name: 'j-1', submittedMs: START_MS })]);
    await wake.wake();
    const execution = started.shift() ?? '';
    provideDeployment(null);
    const overtaken = rehearsal.execute(execution);
    // The lease goes to another one between its look and its record.
    const taken = (async () => {
      for (let i = 0; i < 500; i++) await bench.store.takeLease('another');
    })();
    await expect(Promise.all([overtaken, taken])).rejects.toMatchObject({ name: 'fenced' });
    await taken.catch(() => undefined);
  }, 60_000);

  it('refuse an event that is none, under the name of its error', async () => {
    provideDeployment(null);
    await expect(invoke(look, { round: -1 })).rejects.toMatchObject({ name: 'usage' });
    await expect(invoke(act, { execution: 'c-1', round: 0 })).rejects.toMatchObject({ name: 'usage' });
  });
});
