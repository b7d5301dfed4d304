import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { replicasOf, specOf } from '../../../lib/domain/service.ts';
import { runs, seenMoreThan } from '../../support/properties.ts';
import { serviceSpec, ServiceWorld, type Behaviour } from '../../support/service-world.ts';

type Act =
  | { readonly do: 'apply'; readonly does: Behaviour; readonly version: number }
  | { readonly do: 'scale'; readonly replicas: number | null }
  | { readonly do: 'load'; readonly rps: number | null }
  | { readonly do: 'warn'; readonly nth: number; readonly noticeS: number }
  | { readonly do: 'warn-half'; readonly noticeS: number }
  | { readonly do: 'relocate'; readonly nth: number; readonly isRefused: boolean }
  | { readonly do: 'pass'; readonly seconds: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    do: fc.constant('apply' as const),
    does: fc.constantFrom<Behaviour>('serves', 'serves', 'crashes', 'never-healthy', 'leaves'),
    version: fc.nat(5),
  }),
  fc.record({ do: fc.constant('scale' as const), replicas: fc.option(fc.integer({ min: 0, max: 8 })) }),
  fc.record({ do: fc.constant('load' as const), rps: fc.option(fc.integer({ min: 0, max: 100 })) }),
  fc.record({
    do: fc.constant('warn' as const),
    nth: fc.nat(7),
    noticeS: fc.constantFrom(0, 2, 30, 120),
  }),
  fc.record({ do: fc.constant('warn-half' as const), noticeS: fc.constantFrom(2, 120) }),
  fc.record({ do: fc.constant('relocate' as const), nth: fc.nat(7), isRefused: fc.boolean() }),
  fc.record({ do: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
);

const rules = fc.record({
  min: fc.integer({ min: 0, max: 4 }),
  max: fc.integer({ min: 4, max: 8 }),
  update: fc.constantFrom(
    { maxSurge: 1, maxUnavailable: 0 },
    { maxSurge: '25%', maxUnavailable: '25%' },
    { maxSurge: 0, maxUnavailable: 1 },
    { maxSurge: '100%', maxUnavailable: 0 },
  ),
});

/** Healthy replicas that get requests, without those whose instance is being lost. */
async function staying(world: ServiceWorld): Promise<ReadonlySet<number>> {
  const { instances } = await world.store.loadActive();
  const isLost = new Set(instances.filter((i) => i.state !== 'ready').map((i) => i.id));
  const targets = world.routes[0]?.targets ?? [];
  const live = new Set(instances.map((i) => i.id));
  return new Set(
    targets
      .filter((t) => t.mode === 'serve' && live.has(t.instance) && !isLost.has(t.instance))
      .filter((t) => world.healthOf(t.replica) === 'healthy')
      .map((t) => t.replica),
  );
}

describe('services under random updates, loads and losses', () => {
  it('never have fewer healthy replicas than they may by our own doing, nor more than they may, and settle', async () => {
    let retired = 0;
    let rolledBack = 0;
    let relocated = 0;
    await fc.assert(
      fc.asyncProperty(rules, fc.array(act, { minLength: 3, maxLength: 14 }), async (of, acts) => {
        const world = new ServiceWorld();
        await world.apply(serviceSpec(of));
        const check = async (): Promise<void> => {
          const before = await staying(world);
          const { nextReplica: next } = await world.service();
          await world.round();
          const after = await staying(world);
          const service = await world.service();
          const { min, update } = specOf(service).spec;
          const { replicas: wanted } = service.wanted;
          const lacking = replicasOf(update.maxUnavailable, wanted, 'down');
          const more = Math.max(replicasOf(update.maxSurge, wanted, 'up'), lacking === 0 ? 1 : 0);
          const fewest = more > 0 ? Math.max(Math.min(min, wanted), wanted - lacking) : wanted - lacking;
          // A replica that served before this round and does not after it was taken out by it.
          if ([...before].some((r) => !after.has(r))) {
            retired += 1;
            expect(after.size).toBeGreaterThanOrEqual(fewest);
          }
          // Those that wait or serve, without the ones that are being lost or left.
          const { instances } = await world.store.loadActive();
          const lost = new Set(instances.filter((i) => i.state !== 'ready').map((i) => i.id));
          if (service.relocation !== undefined) lost.add(service.relocation.instance);
          const useful = service.replicas.filter((r) => ['starting', 'healthy', 'unhealthy'].includes(r.phase));
          const attempts = await Promise.all(useful.map((r) => world.store.attempts(r.job)));
          const here = attempts.filter((a) => !a.some((x) => x.state !== 'ended' && lost.has(x.instance)));
          // Nothing begins beyond what there may be at once; what is there already may have been wanted before.
          if (service.nextReplica > next) expect(here.length).toBeLessThanOrEqual(wanted + more);
          expect(new Set(service.replicas.map((r) => r.number)).size).toBe(service.replicas.length);
          expect(new Set(service.replicas.map((r) => r.port)).size).toBe(service.replicas.length);
        };
        for (const a of acts) {
          await applyAct(world, a, of);
          await world.pass(a.do === 'pass' ? a.seconds : 4, () => undefined, check);
        }
        world.refusesCheaper = false;
        await world.apply(serviceSpec({ ...of, env: { LAST: 1 } }));
        await world.scale(null);
        world.rps = 25;
        await world.pass(900);
        const service = await world.service();
        expect([service.state, service.rollout]).toEqual(['healthy', null]);
        expect(service.replicas.filter((r) => r.phase === 'healthy')).toHaveLength(service.wanted.replicas);
        expect(await world.jobs()).toHaveLength(service.replicas.length);
        expect(world.faults).toEqual([]);
        const { length } = (await world.store.events(0, 5000)).filter((e) => e.type === 'service-rolled-back');
        rolledBack += length;
        relocated += (await world.store.events(0, 5000)).filter((e) => e.type === 'service-relocating').length;
      }),
      { numRuns: runs(90), seed: 24 },
    );
    expect(retired).toBeGreaterThan(seenMoreThan(10));
    expect(rolledBack).toBeGreaterThan(seenMoreThan(5));
    expect(relocated).toBeGreaterThan(seenMoreThan(5));
  });
});

async function applyAct(world: ServiceWorld, a: Act, of: Readonly<Record<string, unknown>>): Promise<void> {
  switch (a.do) {
    case 'apply':
      await world.apply(serviceSpec({ ...of, env: { VERSION: a.version } }, a.does));
      return;
    case 'scale':
      await world.scale(a.replicas);
      return;
    case 'load':
      world.rps = a.rps;
      return;
    case 'warn': {
      const { replicas } = await world.service();
      const replica = replicas[a.nth % Math.max(1, replicas.length)];
      if (replica !== undefined) await world.warn(replica.number, a.noticeS);
      return;
    }
    case 'warn-half': {
      const { replicas } = await world.service();
      for (const r of replicas.slice(0, Math.ceil(replicas.length / 2))) await world.warn(r.number, a.noticeS);
      return;
    }
    case 'relocate': {
      world.refusesCheaper = a.isRefused;
      const { replicas } = await world.service();
      const replica = replicas[a.nth % Math.max(1, replicas.length)];
      if (replica !== undefined) await world.advise(replica.number);
      return;
    }
    case 'pass':
      return;
  }
}
