import { describe, expect, it } from '@jest/globals';
import { specOf, type Service } from '../../../../lib/domain/service.ts';
import type { Store } from '../../../../lib/ports/store.ts';
import { CHEAPER, serviceSpec, ServiceWorld } from '../../../support/service-world.ts';

const healthy = ({ replicas }: Service): number => replicas.filter((r) => r.phase === 'healthy').length;
const serving = (world: ServiceWorld): number =>
  (world.routes[0]?.targets ?? []).filter((t) => t.mode === 'serve' && world.healthOf(t.replica) === 'healthy').length;

const running = async (over: Readonly<Record<string, unknown>> = {}): Promise<ServiceWorld> => {
  const world = new ServiceWorld();
  await world.apply(serviceSpec(over));
  await world.pass(10);
  return world;
};

describe('controller of services', () => {
  it('begins as many replicas as `min`, each with a port and a job of its own', async () => {
    const world = await running();
    const service = await world.service();
    expect(service.state).toBe('healthy');
    expect(healthy(service)).toBe(2);
    expect(new Set(service.replicas.map((r) => r.port)).size).toBe(2);
    const jobs = await Promise.all(service.replicas.map((r) => world.store.job(r.job)));
    expect(jobs.map((j) => j?.spec.name)).toEqual(['web-1', 'web-2']);
    expect(jobs.map((j) => j?.spec.stages[0]?.env['PORT'])).toEqual(service.replicas.map((r) => String(r.port)));
    expect(service.good).toBe(1);
    expect(service.rollout).toBeNull();
  });

  it('follows the load within min and max, and keeps what it has while nothing is measured', async () => {
    const world = await running();
    world.rps = 40;
    await world.pass(70);
    // 40 rps and 1.64 times sqrt(40) for bursts, at 10 each.
    expect((await world.service()).wanted.replicas).toBe(6);
    world.rps = 1000;
    await world.pass(70);
    expect(healthy(await world.service())).toBe(8);
    world.rps = null;
    await world.pass(70);
    expect(healthy(await world.service())).toBe(8);
    world.rps = 0;
    await world.pass(140);
    expect(healthy(await world.service())).toBe(2);
    expect(await world.jobs()).toHaveLength(2);
  });

  it('replaces each replica of an earlier revision without ever serving with fewer', async () => {
    const world = await running({ min: 3 });
    await world.apply(serviceSpec({ min: 3, env: { VERSION: 2 } }));
    let fewest = Infinity;
    let most = 0;
    await world.pass(60, async () => {
      fewest = Math.min(fewest, serving(world));
      most = Math.max(
        most,
        (await world.service()).replicas.filter((r) => r.phase !== 'draining' && r.phase !== 'stopping').length,
      );
    });
    const service = await world.service();
    expect(service.replicas.map((r) => r.revision)).toEqual([2, 2, 2]);
    expect([fewest, most]).toEqual([3, 4]);
    expect([service.good, service.rollout, service.state]).toEqual([2, null, 'healthy']);
  });

  it.each(['crashes', 'never-healthy'] as const)('brings the good revision back where a new one %s', async (does) => {
    const world = await running();
    const before = (await world.service()).replicas.map((r) => r.number);
    await world.apply(serviceSpec({}, does));
    let fewest = Infinity;
    await world.pass(120, () => void (fewest = Math.min(fewest, serving(world))));
    const service = await world.service();
    expect(specOf(service)).toMatchObject({ number: 3, of: 1 });
    expect(specOf(service).spec.replica.stages[0]?.command).toEqual(['serves']);
    // The replicas of the good revision were there all the time.
    expect(service.replicas.map((r) => r.number)).toEqual(before);
    expect(fewest).toBe(2);
    expect(service.state).toBe('healthy');
    expect((await world.store.events(0, 1000)).map((e) => e.type)).toContain('service-rolled-back');
  });

  it('changes rules alone without replacing a replica', async () => {
    const world = await running();
    const before = (await world.service()).replicas.map((r) => r.number);
    await world.apply(serviceSpec({ max: 20, target: { latency: '2s' } }));
    await world.pass(20);
    const service = await world.service();
    expect(service.replicas.map((r) => r.number)).toEqual(before);
    expect(specOf(service).spec.max).toBe(20);
    expect(service.state).toBe('healthy');
  });

  it('tries a service that has never been good again and again, later each time', async () => {
    const world = new ServiceWorld();
    await world.apply(serviceSpec({ min: 1 }, 'crashes'));
    await world.pass(60);
    const soon = (await world.service()).nextReplica;
    await world.pass(600);
    const service = await world.service();
    expect(service.state).toBe('failing');
    expect(service.detail).toMatch(/replicas in a row failed; replica \d+ ended: exit code 1/);
    expect(soon).toBeGreaterThan(5);
    // In ten times as long not even twice as many.
    expect(service.nextReplica).toBeLessThan(2 * soon);
  });

  it('begins the next replica at the warning, and drains the lost one once that is healthy', async () => {
    const world = await running();
    await world.warn(1, 120);
    let fewest = Infinity;
    await world.pass(30, () => void (fewest = Math.min(fewest, serving(world))));
    const service = await world.service();
    expect(fewest).toBe(2);
    expect(service.replicas.map((r) => r.number)).toEqual([2, 3]);
    expect(service.state).toBe('healthy');
  });

  it('survives the loss of all of its instances at once', async () => {
    const world = await running();
    await world.warn(1, 2);
    await world.warn(2, 2);
    await world.pass(30);
    const service = await world.service();
    expect(healthy(service)).toBe(2);
    expect(await world.jobs()).toHaveLength(2);
  });

  it('ends all replicas of a deleted service, then forgets it', async () => {
    const world = await running();
    await world.delete();
    await world.pass(20);
    expect(await world.store.services()).toEqual([]);
    expect(await world.jobs()).toEqual([]);
    expect(world.routes).toEqual([]);
  });

  it('keeps a number that a person set, until the policy decides again', async () => {
    const world = await running();
    await world.scale(5);
    await world.pass(70);
    expect(healthy(await world.service())).toBe(5);
    await world.scale(null);
    await world.pass(70);
    expect(healthy(await world.service())).toBe(2);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no model');
      },
      /the scaling policy failed: no model/,
    ],
    ['answers NaN', () => NaN, /the scaling policy answered NaN/],
    ['answers less than nothing', () => -1, /the scaling policy answered -1/],
  ])('keeps its replicas where the scaling policy %s', async (_what, policy, reason) => {
    const world = await running();
    world.scaling = policy;
    await world.pass(10);
    const service = await world.service();
    expect(healthy(service)).toBe(2);
    expect(service.wanted.reason).toMatch(reason);
    expect((await world.store.events(0, 1000)).filter((e) => e.type === 'service-scaling-refused')).toHaveLength(1);
  });

  it('adds headroom while more requests are slow than the target allows, half of the load at most, and takes it back', async () => {
    const world = await running({ max: 20 });
    world.rps = 40;
    await world.pass(130);
    const wanted = async (): Promise<number> => (await world.service()).wanted.replicas;
    expect(await wanted()).toBe(6);
    world.slowShare = 0.05;
    await world.pass(300);
    expect(await wanted()).toBe(6);
    world.slowShare = 0.45;
    await world.pass(130);
    expect(await wanted()).toBe(8);
    expect((await world.service()).wanted.reason).toMatch(/ and 40 % headroom, because requests were slow/);
    await world.pass(600);
    // 40 rps and bursts, by one and a half.
    expect(await wanted()).toBe(8);
    world.slowShare = 0;
    await world.pass(1500);
    expect(await wanted()).toBe(6);
  });

  it('replaces lost replicas while metrics cannot be had, and says so', async () => {
    const world = await running();
    world.rps = 'fails';
    await world.pass(130);
    const [first] = (await world.service()).replicas;
    await world.warn(first?.number ?? 0, 30);
    await world.pass(40);
    expect(healthy(await world.service())).toBe(2);
    expect(world.faults.map(String)).toContain('Error: no metrics');
  });

  it('lets the replicas of a dear instance go where it is cheaper, and drains them only once the others serve', async () => {
    const world = await running({ min: 3 });
    await world.advise(2);
    let fewest = 3;
    await world.pass(30, () => void (fewest = Math.min(fewest, serving(world))));
    expect(fewest).toBe(3);
    const { replicas, relocation } = await world.service();
    expect(replicas.map((r) => r.number)).toEqual([1, 3, 4]);
    expect(relocation).toBeUndefined();
    const jobs = await Promise.all(replicas.map((r) => world.store.job(r.job)));
    expect(jobs.map((j) => j?.spec.stages[0]?.constraints)).toEqual([{}, {}, CHEAPER]);
  });

  it('leaves replicas where they are where cheaper pools refuse, and does not ask again for an hour', async () => {
    const world = await running();
    world.refusesCheaper = true;
    await world.advise(1);
    await world.pass(850);
    expect((await world.service()).replicas.map((r) => r.number)).toEqual([1, 2, 3]);
    await world.pass(100);
    expect((await world.service()).replicas.map((r) => r.number)).toEqual([1, 2]);
    await world.pass(3000);
    expect((await world.service()).nextReplica).toBe(4);
    expect(await world.jobs()).toHaveLength(2);
    const told = (await world.store.events(0, 1000)).filter((e) => e.type === 'service-relocation-failed');
    expect(told).toHaveLength(1);
  });

  it('gives a relocation up for an update', async () => {
    const world = await running();
    world.refusesCheaper = true;
    await world.advise(1);
    await world.pass(5);
    await world.apply(serviceSpec({ env: { V: 2 } }));
    await world.pass(60);
    const service = await world.service();
    expect([service.state, service.rollout, service.relocation]).toEqual(['healthy', null, undefined]);
    expect(service.replicas.every((r) => r.revision === 2 && r.within === undefined)).toBe(true);
  });

  it('begins replicas although their requests cannot be routed yet', async () => {
    const world = new ServiceWorld();
    world.refusesRoutes = true;
    await world.apply(serviceSpec());
    await world.pass(10);
    expect(await world.jobs()).toHaveLength(2);
    expect(world.faults.map(String)).toContain('Error: no load balancer');
    world.refusesRoutes = false;
    await world.pass(10);
    expect(healthy(await world.service())).toBe(2);
  });

  it('says whether the next round may have more to do', async () => {
    const world = new ServiceWorld();
    const controller = world.controller();
    expect(await controller.round()).toEqual({ services: 0, isChanging: false });
    await world.apply(serviceSpec());
    const seen: boolean[] = [];
    await world.pass(12, async () => void seen.push((await controller.round()).isChanging));
    // Waits for capacity, for which there is an event; starts; serves.
    expect([seen[0], seen.includes(true), seen.at(-1)]).toEqual([false, true, false]);
    await world.warn((await world.service()).replicas[0]?.number ?? 0, 60);
    expect((await controller.round()).isChanging).toBe(true);
  });

  it('does nothing twice with two controllers at once', async () => {
    const world = new ServiceWorld();
    const [one, two] = [world.controller(), world.controller()];
    await world.apply(serviceSpec({ min: 4 }));
    for (let s = 0; s < 20; s++) await world.pass(1, async () => void (await Promise.all([one.round(), two.round()])));
    const service = await world.service();
    expect(healthy(service)).toBe(4);
    expect(await world.jobs()).toEqual(service.replicas.map((r) => r.job));
    expect(service.nextReplica).toBe(5);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])('goes on where its predecessor died at write %i', async (dies) => {
    const world = new ServiceWorld();
    await world.apply(serviceSpec({ min: 3 }));
    let writes = 0;
    const mortal = new Proxy<Store>(world.store, {
      get: (store, name: keyof Store) => {
        const of = store[name];
        if (typeof of !== 'function') return of;
        if (!['putService', 'submit', 'requestCancel', 'dropService'].includes(name)) return of.bind(store);
        return async (...args: unknown[]) => {
          // Dies after the write in every second case: the answer never comes back.
          writes += 1;
          if (writes === dies && dies % 2 === 0) await (of as (...a: unknown[]) => Promise<unknown>).apply(store, args);
          if (writes >= dies) throw new Error('died');
          return (of as (...a: unknown[]) => Promise<unknown>).apply(store, args);
        };
      },
    });
    const first = world.controller(mortal);
    for (let s = 0; s < 5; s++) await first.round();
    expect(world.faults.length > 0).toBe(writes >= dies);
    await world.pass(20);
    const service = await world.service();
    expect(healthy(service)).toBe(3);
    expect(await world.jobs()).toEqual(service.replicas.map((r) => r.job));
  });
});
