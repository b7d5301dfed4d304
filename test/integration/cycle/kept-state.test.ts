import { describe, expect, it } from '@jest/globals';
import { raw } from '../../../lib/kernel/units.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { MemoryStore } from '../../../lib/drivers/sim/memory-store.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/** A store that cannot tell what others changed: every cycle loads all that is active. */
function loading(store: Store, loads: { count: number }): Store {
  return new Proxy(store, {
    get: (target, method: keyof Store) => {
      if (method === 'changedByOthers') return undefined;
      if (method === 'loadActive') loads.count++;
      return target[method].bind(target);
    },
  });
}

async function run(store: Store): Promise<unknown> {
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    config: { refundRule: 'none' },
    vcpus: 12,
    store,
  });
  await bench.submit(mixedJobs());
  await bench.drive({ deeds: mixedDeeds() });
  const events = (await store.events(0, 10_000)).map((e) => `${raw(e.atMs)} ${e.type} ${e.text}`);
  const jobs = await bench.jobs();
  return {
    events,
    jobs,
    costs: await store.costs('job'),
    explained: await Promise.all(jobs.map((j) => store.explanation(j.id))),
    cycles: bench.cycles.length,
  };
}

describe('an engine that keeps its state between cycles', () => {
  it('decides as one that loads it each time, jobs and cancel requests of others among it', async () => {
    const loads = { count: 0 };
    const loaded = await run(loading(new MemoryStore(), loads));
    expect(await run(new MemoryStore())).toEqual(loaded);
    const { events, cycles } = loaded as { readonly events: readonly string[]; readonly cycles: number };
    expect(loads.count).toBeGreaterThan(cycles);
    expect(events.filter((e) => e.includes('cancel')).length).toBeGreaterThan(0);
    expect(events.filter((e) => e.includes('interrupted')).length).toBeGreaterThan(0);
  });
});
