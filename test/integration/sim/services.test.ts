import { describe, expect, it } from '@jest/globals';
import { normaliseService } from '../../../lib/domain/service-file/service-file.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import type { SimulatedService } from '../../../lib/drivers/sim/services/sim-traffic.ts';
import type { SimulationInput } from '../../../lib/drivers/sim/simulation.ts';
import { epochMs, plus, seconds } from '../../../lib/kernel/units.ts';
import { SHIPPED_PRESETS } from '../../../lib/policy/presets.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { onOffMarket, START } from '../../support/on-off-market.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** Spot capacity that is gone for ten minutes in each hour. */
const market = onOffMarket(Array.from({ length: 20 }, (_, i) => [i, i + 0.84] as const));

const web = (over: Readonly<Record<string, unknown>> = {}, minutes = 240, rps = 30): SimulatedService => ({
  spec: normaliseService(
    {
      name: 'web',
      command: './serve',
      resources: { cpu: 1, memory: '512MiB' },
      target: { latency: '1s' },
      capacity: { perReplica: '10 rps' },
      min: 2,
      max: 12,
      ...over,
    },
    { baseDir: '/srv', defaultOwner: 'ana', scalings: ['reactive'] },
  ),
  perMinute: new Float64Array(minutes).fill(60 * rps),
  serviceS: 0.1,
  queuePerVcpu: 10,
});

const run = (services: readonly SimulatedService[], over: Partial<SimulationInput> = {}) =>
  simulated(over.jobs === undefined ? [] : [...(over.jobs as ReturnType<typeof simulatedJob>[])], {
    trace: market,
    market: (now) => replayMarket(market, now),
    fromMs: epochMs(START),
    toMs: plus(epochMs(START), seconds(86_400)),
    services,
    ...over,
  });

describe('a simulated service', () => {
  it('serves through the loss of its instances, and is gone when its requests are over', async () => {
    const { services, collected, ended, store, events } = await run([web()]);
    expect(ended).toBe('done');
    expect(await store.services()).toEqual([]);
    const [figures] = services;
    // Four hours at 30 requests per second, within what chance leaves of it.
    expect(Math.abs((figures?.requests ?? 0) / (240 * 60 * 30) - 1)).toBeLessThan(0.01);
    expect((figures?.slow ?? 0) / (figures?.requests ?? 1)).toBeLessThan(0.05);
    expect(collected.interruptions).toBeGreaterThan(2);
    // Three replicas by the load, one or two for bursts, and no more than twice that with spare ones.
    expect(figures?.replicaHours ?? 0).toBeGreaterThan(4 * 3);
    expect(figures?.replicaHours ?? Infinity).toBeLessThan(4 * 10);
    const stopped = events.filter((e) => /attempt-(preempted|moved|superseded)/.test(e.type));
    expect(stopped).toEqual([]);
  }, 60_000);

  it('costs no more than the list price of its replicas', async () => {
    const { collected, services } = await run([web()]);
    const usd = Object.values(collected.usd).reduce((a, b) => a + b, 0);
    // On-demand: a dollar for an instance of four replicas.
    expect(usd).toBeLessThan((services[0]?.replicaHours ?? 0) / 4);
  }, 60_000);

  it('has half of its replicas on another instance where it is to have two at least', async () => {
    const calm = onOffMarket([[0, 96]]);
    const instances = async (over: Readonly<Record<string, unknown>>): Promise<number> => {
      const { events } = await run([web(over, 60, 5)], { trace: calm, market: (now) => replayMarket(calm, now) });
      return events.filter((e) => e.type === 'instance-ready').length;
    };
    expect(await instances({})).toBe(2);
    expect(await instances({ min: 1 })).toBe(1);
    expect(await instances({ placement: { maxPerInstance: 4 } })).toBe(1);
  }, 60_000);

  it('is the same again with the same seed', async () => {
    const [a, b] = await Promise.all([run([web({}, 60)]), run([web({}, 60)])]);
    expect(a.services).toEqual(b.services);
    expect(a.events.map((e) => e.text)).toEqual(b.events.map((e) => e.text));
  }, 60_000);

  it('comes before best-effort work where vCPUs are short, and takes its place', async () => {
    const jobs = [simulatedJob('batch', 0, new Array<number>(60).fill(1800))];
    const { services, events } = await run([web({ min: 4 }, 120, 30)], { jobs, vcpus: 8 });
    const [figures] = services;
    expect((figures?.slow ?? 0) / (figures?.requests ?? 1)).toBeLessThan(0.1);
    expect(events.some((e) => e.type === 'job-succeeded' && e.text.includes('batch'))).toBe(true);
  }, 60_000);

  // Every way to decide for jobs has to leave replicas alone.
  it.each(Object.keys(SHIPPED_PRESETS).filter((name) => name !== 'fargate'))(
    'runs under %s beside jobs, and no plan moves, copies or preempts a replica',
    async (name) => {
      // The default plan without a solver, which a simulation of a test has none of.
      const { stages } = presetNamed(['ebbtide', 'tributary'].includes(name) ? 'greedy' : name);
      const jobs = [0, 300, 900].map((at, i) => simulatedJob(`job-${i}`, at, [600, 900, 300], { deadlineS: 7200 }));
      const { services, events } = await run([web({}, 90)], {
        jobs,
        deciders: () => ({ name, stages }),
      });
      const [figures] = services;
      expect((figures?.slow ?? 0) / (figures?.requests ?? 1)).toBeLessThan(0.25);
      const stopped = events.filter(
        (e) => /attempt-(preempted|moved|superseded)/.test(e.type) && /web-\d/.test(e.text),
      );
      expect(stopped).toEqual([]);
    },
    120_000,
  );
});
