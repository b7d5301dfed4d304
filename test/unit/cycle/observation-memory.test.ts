import { describe, expect, it } from '@jest/globals';
import { ObservationMemory } from '../../../lib/cycle/observe/remembered.ts';
import type { ObservedState } from '../../../lib/cycle/decide/decision.ts';
import { observe } from '../../../lib/cycle/steps.ts';
import { composeLearners } from '../../../lib/cycle/learn/compose-learners.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { plus, seconds, usd } from '../../../lib/kernel/units.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { EngineBench, work } from '../../support/engine-bench.ts';
import { mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/** What is read of single jobs, call by call. */
const READS = ['ledger', 'attempts', 'findJobs', 'job'] as const;

/** A bench with a job that has a budget and waited for another, and runs. */
class TestObserver {
  readonly bench = new EngineBench({ trace: mixedTrace, startMs: START_MS });
  readonly reads: string[] = [];
  /** The next commit fails. */
  isBroken = false;

  static async begin(): Promise<TestObserver> {
    const observer = new TestObserver();
    const { bench } = observer;
    await bench.submit([job({ name: 'j-before', submittedMs: START_MS, spec: spec({ name: 'before' }) })]);
    await bench.drive({ withinS: 7200 });
    const stages = [stage({ tasks: 2, env: work(20_000) })];
    const limited = spec({ name: 'limited', after: ['j-before'], maxCostUsd: usd(100), stages });
    const after = [jobId('j-before')];
    await bench.submit([job({ name: 'j-limited', submittedMs: bench.clock.now(), after, spec: limited })]);
    await expect(bench.drive({ withinS: 1200 })).rejects.toThrow('not done');
    return observer;
  }

  /** A look by the process that has this memory; what it saw, and what it read of single jobs. */
  async by(
    memory: ObservationMemory,
  ): Promise<{ readonly observed: ObservedState; readonly reads: readonly string[] }> {
    const { bench } = this;
    this.reads.length = 0;
    const parts = {
      store: this.#store(),
      fleet: bench.fleet,
      market: replayMarket(mixedTrace, () => bench.clock.now()),
      clock: bench.clock,
      limits: { vcpus: 64 },
      config: bench.config,
      learners: composeLearners(),
      random: randomStream(1, 'look'),
      holder: 'look',
      memory,
    };
    const observed = await observe(parts, false);
    if (observed === null) throw new Error('nothing is left to do');
    return { observed, reads: [...this.reads] };
  }

  #store(): Store {
    return new Proxy(this.bench.store, {
      get: (store, name: keyof Store) => {
        const method = store[name]?.bind(store) as ((...args: unknown[]) => unknown) | undefined;
        if (method === undefined) return undefined;
        return (...args: unknown[]): unknown => {
          if ((READS as readonly string[]).includes(name)) this.reads.push(name);
          if (name === 'commit' && this.isBroken) throw new Error('the table does not answer');
          return method(...args);
        };
      },
    });
  }

  async pass(s: number): Promise<void> {
    await this.bench.clock.advanceTo(plus(this.bench.clock.now(), seconds(s)));
  }
}

describe('memory of a process between observations', () => {
  it('spares reading accounts of jobs and the ends of others, and says the same', async () => {
    const observer = await TestObserver.begin();
    const memory = new ObservationMemory();
    expect((await observer.by(memory)).reads.toSorted()).toEqual(['attempts', 'findJobs', 'ledger']);
    await observer.pass(600);
    const warm = await observer.by(memory);
    expect(warm.reads).toEqual([]);
    const cold = await observer.by(new ObservationMemory());
    expect(cold.reads).toHaveLength(3);
    const spent = ({ observed }: typeof warm) => [...observed.snapshot.spentUsd];
    expect(spent(warm)).toHaveLength(1);
    expect(spent(warm)).toEqual(spent(cold));
    expect(warm.observed.lastRanMs).toEqual(cold.observed.lastRanMs);
  });

  it('is forgotten once another process has observed, and after an observation that failed', async () => {
    const observer = await TestObserver.begin();
    const memory = new ObservationMemory();
    await observer.by(memory);
    await observer.by(new ObservationMemory());
    expect((await observer.by(memory)).reads).toHaveLength(3);
    expect((await observer.by(memory)).reads).toEqual([]);
    observer.isBroken = true;
    const [instance] = await observer.bench.fleet.list();
    if (instance === undefined) throw new Error('nothing runs');
    for (const { instance: id } of await observer.bench.fleet.list()) observer.bench.fleet.lose(id);
    await expect(observer.by(memory)).rejects.toThrow('does not answer');
    observer.isBroken = false;
    // The ledgers of all instances that ran for it, and the attempts on them, are read again.
    expect((await observer.by(memory)).reads).toEqual(expect.arrayContaining(['attempts', 'findJobs', 'ledger']));
  });
});
