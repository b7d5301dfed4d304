import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { noSolver } from '../../../bench/load/no-solver.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { CANCELLED, mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { randomStream, type Uniform } from '../../../lib/kernel/random.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { brokenConstraint } from '../../../lib/domain/constraints.ts';
import { fits, minusResources } from '../../../lib/domain/resources.ts';
import { unsolved, type Placement, type Purchase } from '../../../lib/domain/plan.ts';
import { instanceParts } from '../../../lib/domain/snapshot.ts';
import type { Contract } from '../../../lib/policy/policy.ts';
import type { Stages } from '../../../lib/policy/contracts.ts';
import type { Solver } from '../../../lib/policy/solver.ts';

/** Probabilities of what a random policy does at each choice that it has. */
interface Drawn {
  readonly starts: number;
  readonly preempts: number;
  readonly places: number;
  readonly buys: number;
  readonly releases: number;
}

const pick = <T>(draw: Uniform, of: readonly T[]): T | undefined => of[Math.floor(draw() * of.length)];

/** Starts any part of any group on any of its offers; stops any best-effort task that runs. */
function randomPlan(draw: Uniform, { starts, preempts }: Drawn): Contract<'plan'> {
  return (input) => {
    const { snapshot, offers } = input;
    const chosen = snapshot.groups.flatMap((group) => {
      const offer = pick(
        draw,
        (offers.get(group.id)?.offers ?? []).filter((o) => o.opens === undefined),
      );
      if (offer === undefined || draw() >= starts) return [];
      const count = group.stage.gang ? group.count : 1 + Math.floor(draw() * group.count);
      const option = { group: group.id, offer, slot: 0, startMs: snapshot.nowMs, worthUsd: 1, costUsd: 0.1 };
      return [{ option, count, reason: 'drawn' }];
    });
    const startsOf = new Map(chosen.map((s) => [s.option.group, s.count]));
    const stopped = snapshot.running.filter(
      (r) => r.class === 'best-effort' && r.attempt.state === 'running' && draw() < preempts,
    );
    return Promise.resolve({
      starts: chosen,
      deferred: [],
      preemptions: stopped.map((r) => ({ attempt: r.attempt.id, reason: 'drawn' })),
      moves: [],
      waits: snapshot.groups.flatMap((g) => {
        const count = g.count - (startsOf.get(g.id) ?? 0);
        return count === 0 ? [] : [{ group: g.id, count, why: 'capacity' as const, detail: 'drawn' }];
      }),
      solve: unsolved(0),
    });
  };
}

/** Any host that is allowed and has room, gangs whole or not at all. */
const randomPlace =
  (draw: Uniform, { places }: Drawn): Contract<'place'> =>
  (tasks, hosts) => {
    const free = new Map(hosts.map((h) => [h, h.free]));
    const placed: Placement[] = [];
    const units = Map.groupBy(tasks, (t) => t.gang ?? t);
    for (const unit of units.values()) {
      if (draw() >= places) continue;
      const before = new Map(free);
      const own: Placement[] = [];
      for (const t of unit) {
        const fitting = hosts.filter((h) => t.allowed(h) && fits(t.need, free.get(h) ?? h.free));
        const host = pick(draw, fitting);
        if (host === undefined) break;
        free.set(host, minusResources(free.get(host) ?? host.free, t.need));
        own.push({ task: t.task, group: t.group, on: host.on, reason: 'drawn' });
      }
      if (own.length === unit.length) placed.push(...own);
      else for (const [h, f] of before) free.set(h, f);
    }
    return placed;
  };

/** Buys for any part of the leftovers, on any of their offers within the vCPU limit; gives any idle instance back. */
const randomScale =
  (draw: Uniform, { buys, releases }: Drawn): Contract<'scale'> =>
  ({ snapshot, leftovers, offers, used }) => {
    const pools = new Map(snapshot.pools.filter((v) => v.open && v.quote !== null).map((v) => [v.pool.id, v.pool]));
    let vcpus = snapshot.limits.vcpus;
    for (const { pool } of snapshot.instances.values()) vcpus -= raw(pool.type.capacity.cpu) / 1000;
    const bought = new Map<string, Purchase>();
    for (const { group, option } of leftovers) {
      if (group.stage.gang || draw() >= buys) continue;
      const offer = pick(draw, [option.offer, ...(offers.get(group.id)?.offers ?? [])]);
      const pool = offer === undefined ? undefined : pools.get(offer.pool);
      if (offer === undefined || pool === undefined || brokenConstraint(group.stage.constraints, pool) !== null)
        continue;
      const cpus = raw(pool.type.capacity.cpu) / 1000;
      if (cpus > vcpus) continue;
      vcpus -= cpus;
      const key = `${offer.pool} ${JSON.stringify(offer.bid)}`;
      const count = 1 + (bought.get(key)?.count ?? 0);
      bought.set(key, { pool: offer.pool, bid: offer.bid, count, reason: 'drawn' });
    }
    const idle = instanceParts(snapshot).idle.filter(
      ({ instance: { id, state } }) =>
        (state === 'ready' || state === 'starting') && !used.has(id) && draw() < releases,
    );
    return {
      purchases: [...bought.values()],
      releases: idle.map(({ instance }) => ({ instance: instance.id, reason: 'drawn' })),
    };
  };

const drawnStages =
  (seed: number, drawn: Drawn) =>
  (of: Stages<Solver>): Stages<Solver> => {
    const draw = randomStream(seed, 'random-policy');
    return { ...of, plan: randomPlan(draw, drawn), place: randomPlace(draw, drawn), scale: randomScale(draw, drawn) };
  };

const VCPUS = 12;
const HOURS = 6;
const often = fc.double({ min: 0.3, max: 1, noNaN: true });

it('a random legal policy breaks no invariant of the cycle', async () => {
  const seen = { starts: 0, launches: 0, releases: 0, stops: 0, finished: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 1e6 }),
      fc.record({
        starts: often,
        places: often,
        buys: often,
        releases: often,
        preempts: fc.constantFrom(0, 0, 0.02, 0.1),
      }),
      async (seed, drawn) => {
        const bench = new EngineBench({
          trace: mixedTrace,
          startMs: START_MS,
          config: { refundRule: 'none', maxUsdPerDay: MOST_USD },
          vcpus: VCPUS,
          solver: noSolver,
          stages: drawnStages(seed, drawn),
        });
        const jobs = mixedJobs().filter((j) => j.spec.stages.every((s) => !s.gang));
        await bench.submit(jobs);
        let late = false;
        try {
          await bench.drive({ deeds: mixedDeeds(), withinS: HOURS * 3600 });
        } catch (error) {
          // A policy that stops what it starts need not come to an end.
          if (!(error instanceof Error) || !error.message.startsWith('not done within')) throw error;
          late = true;
        }
        if (!late) expect(await discrepancies(bench)).toEqual([]);
        for (const [task, times] of bench.completions()) expect([task, times]).toEqual([task, 1]);
        await expectAccounted(bench);
        for (const { type } of await bench.store.events(0, 100_000)) {
          if (type === 'attempt-starting') seen.starts++;
          if (type === 'instance-requested') seen.launches++;
          if (type === 'attempt-stopping') seen.stops++;
        }
        seen.releases += (await bench.store.instances(null, 1000, null)).items.filter(
          (i) => i.endCause === 'released',
        ).length;
        seen.finished += late ? 0 : 1;
      },
    ),
    { seed: 20260520, numRuns: 25, endOnFailure: true },
  );
  expect(Math.min(seen.starts, seen.launches, seen.releases, seen.stops, seen.finished)).toBeGreaterThan(5);
}, 120_000);

const MOST_USD = 0.2;

/** No instance is ever overfull, no task has two live attempts, no bill is over the limit, and jobs are conserved. */
async function expectAccounted(bench: EngineBench): Promise<void> {
  const attempts = (await Promise.all((await bench.jobs()).map((j) => bench.store.attempts(j.id)))).flat();
  for (const own of Map.groupBy(attempts, (a) => `${a.job}/${a.stage}/${a.index}`).values()) {
    const inOrder = [...own].sort((a, b) => a.number - b.number);
    inOrder.forEach((a, i) => {
      const next = inOrder[i + 1];
      if (next !== undefined) expect(raw(a.endedMs ?? next.placedMs)).toBeLessThanOrEqual(raw(next.placedMs));
      if (next !== undefined) expect(a.outcome).not.toBe('succeeded');
    });
  }
  for (const [, own] of Map.groupBy(attempts, (a) => a.instance)) {
    for (const { placedMs } of own) {
      const there = own.filter(
        (a) => raw(a.placedMs) <= raw(placedMs) && (a.endedMs === null || raw(a.endedMs) > raw(placedMs)),
      );
      expect(there.reduce((n, a) => n + raw(a.resources.cpu), 0)).toBeLessThanOrEqual(4000);
    }
  }
  const usd = (await bench.store.ledger('all')).reduce((sum, row) => sum + row.usd, 0);
  expect(usd).toBeLessThanOrEqual(MOST_USD + 1e-6);
  for (const j of await bench.jobs()) {
    for (const s of j.stages) expect(s.waiting + s.running + s.succeeded + s.failed + s.cancelled).toBe(s.nextFresh);
    if (j.id === CANCELLED) expect(['cancelled', 'running', 'pending', 'cancelling']).toContain(j.state);
  }
}
