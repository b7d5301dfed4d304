import { describe, expect, it } from '@jest/globals';
import { LookMemory } from '../../../lib/cycle/observe/remembered.ts';
import type { Sight } from '../../../lib/cycle/decide/decision.ts';
import { look } from '../../../lib/cycle/steps.ts';
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
class Looks {
  readonly bench = new EngineBench({ trace: mixedTrace, startMs: START_MS });
  readonly reads: string[] = [];
  /** The next commit fails. */
  isBroken = false;

  static async begin(): Promise<Looks> {
    const looks = new Looks();
    const { bench } = looks;
    await bench.submit([job({ name: 'j-before', submittedMs: START_MS, spec: spec({ name: 'before' }) })]);
    await bench.drive({ withinS: 7200 });
    const stages = [stage({ tasks: 2, env: work(20_000) })];
    const limited = spec({ name: 'limited', after: ['j-before'], maxCostUsd: usd(100), stages });
    const after = [jobId('j-before')];
    await bench.submit([job({ name: 'j-limited', submittedMs: bench.clock.now(), after, spec: limited })]);
    await expect(bench.drive({ withinS: 1200 })).rejects.toThrow('not done');
    return looks;
  }

  /** A look by the process that has this memory; what it saw, and what it read of single jobs. */
  async by(memory: LookMemory): Promise<{ readonly sight: Sight; readonly reads: readonly string[] }> {
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
    const sight = await look(parts, false);
    if (sight === null) throw new Error('nothing is left to do');
    return { sight, reads: [...this.reads] };
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

describe('what a process keeps from look to look', () => {
  it('spares reading accounts of jobs and the ends of others, and says the same', async () => {
    const looks = await Looks.begin();
    const memory = new LookMemory();
    expect((await looks.by(memory)).reads.toSorted()).toEqual(['attempts', 'findJobs', 'ledger']);
    await looks.pass(600);
    const warm = await looks.by(memory);
    expect(warm.reads).toEqual([]);
    const cold = await looks.by(new LookMemory());
    expect(cold.reads).toHaveLength(3);
    const spent = ({ sight }: typeof warm) => [...sight.snapshot.spentUsd];
    expect(spent(warm)).toHaveLength(1);
    expect(spent(warm)).toEqual(spent(cold));
    expect(warm.sight.lastRanMs).toEqual(cold.sight.lastRanMs);
  });

  it('is forgotten once another process has looked, and after a look that failed', async () => {
    const looks = await Looks.begin();
    const memory = new LookMemory();
    await looks.by(memory);
    await looks.by(new LookMemory());
    expect((await looks.by(memory)).reads).toHaveLength(3);
    expect((await looks.by(memory)).reads).toEqual([]);
    looks.isBroken = true;
    const [instance] = await looks.bench.fleet.list();
    if (instance === undefined) throw new Error('nothing runs');
    for (const { instance: id } of await looks.bench.fleet.list()) looks.bench.fleet.lose(id);
    await expect(looks.by(memory)).rejects.toThrow('does not answer');
    looks.isBroken = false;
    // The ledgers of all instances that ran for it, and the attempts on them, are read again.
    expect((await looks.by(memory)).reads).toEqual(expect.arrayContaining(['attempts', 'findJobs', 'ledger']));
  });
});
