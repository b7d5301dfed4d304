import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { noSolver } from '../../../bench/load/no-solver.ts';
import { discrepancies, EngineBench } from '../../support/engine-bench.ts';
import { CANCELLED, mixedDeeds, mixedJobs, SAVES, START_MS } from '../../support/mixed-workload.ts';
import { namedInstances, randomStages, type Targets } from '../../support/random-stages.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { work } from '../../support/engine-bench.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { epochMs, mib, milliCpu, raw, type EpochMs } from '../../../lib/kernel/units.ts';
import type { Attempt, Job } from '../../../lib/domain/job.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import { dominantShare, fits, NO_RESOURCES, plusResources } from '../../../lib/domain/resources.ts';
import { poolParts } from '../../../lib/domain/pool.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';

const DAY_MS = 86_400_000;
const market = (name: string, zone: string, [vcpus, gib, usd]: readonly [number, number, number]): SpotMarket => ({
  type: {
    name,
    family: name.split('.')[0] ?? name,
    generation: 5,
    arch: 'x86_64',
    capacity: { cpu: milliCpu(vcpus * 1000), memory: mib(gib * 1024), gpus: 0, disk: mib(100_000) },
  },
  zone,
  onDemandUsdPerHour: 3 * usd,
  prices: { atMs: Float64Array.of(raw(START_MS) - DAY_MS), usdPerHour: Float64Array.of(usd) },
  availability: {
    atMs: Float64Array.of(raw(START_MS) - DAY_MS, raw(START_MS) + 720_000, raw(START_MS) + 1_800_000),
    available: zone === 'a' ? Uint8Array.of(1, 0, 1) : Uint8Array.of(1, 1, 1),
  },
});
/** Types of which one has little memory for its vCPUs, and one few vCPUs for its memory. */
const trace = traceOf(
  { name: 'random', startMs: epochMs(raw(START_MS) - DAY_MS), endMs: epochMs(raw(START_MS) + DAY_MS) },
  [
    market('c5.xlarge', 'a', [4, 8, 0.04]),
    market('c5.xlarge', 'b', [4, 8, 0.06]),
    market('c5.2xlarge', 'b', [8, 4, 0.1]),
    market('r5.large', 'b', [2, 16, 0.05]),
  ],
);

/** Beside the mixed ones: tasks that want memory more than vCPUs, and tasks that share no instance. */
const jobs = (): Job[] => [
  ...mixedJobs(),
  job({
    name: 'j-large',
    submittedMs: START_MS,
    spec: spec({ name: 'large', stages: [stage({ tasks: 5, env: work(900), resources: resources(0.5, 3000) })] }),
  }),
  job({
    name: 'j-apart',
    submittedMs: START_MS,
    spec: spec({
      name: 'apart',
      stages: [stage({ tasks: 4, env: work(900), checkpoint: SAVES, placement: { maxPerInstance: 1 } })],
    }),
  }),
];

const VCPUS = 24;
const HOURS = 6;
const often = fc.double({ min: 0.3, max: 1, noNaN: true });
const seldom = fc.constantFrom(0, 0.02, 0.1);

it('random legal policies of all stages break no invariant of the cycle', async () => {
  const seen = {
    ...{ starts: 0, launches: 0, releases: 0, finished: 0, boundByMoney: 0, gangs: 0, large: 0, apart: 0 },
    ...{
      preempted: 0,
      moved: 0,
      movedTime: 0,
      movedToNamed: 0,
      copies: 0,
      superseded: 0,
      ahead: 0,
      types: new Set<string>(),
    },
  };
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 1e6 }),
      fc.record({
        ...{ starts: often, places: often, buys: often, releases: often },
        ...{ preempts: seldom, moves: seldom, copies: seldom, waits: fc.double({ min: 0, max: 0.7, noNaN: true }) },
      }),
      fc.constantFrom(0.15, 1),
      async (seed, drawn, maxUsdPerDay) => {
        const targets: Targets = new Map();
        const draw = randomStream(seed, 'random-policy');
        const bench = new EngineBench({
          trace,
          startMs: START_MS,
          config: { refundRule: 'none', maxUsdPerDay },
          vcpus: VCPUS,
          solver: noSolver,
          stages: (of) => randomStages(of, { draw, drawn, targets }),
        });
        await bench.submit(jobs());
        let late = false;
        try {
          await bench.drive({ deeds: mixedDeeds(), withinS: HOURS * 3600 });
        } catch (error) {
          // A policy that stops what it starts need not come to an end.
          if (!(error instanceof Error) || !error.message.startsWith('not done within')) throw error;
          late = true;
        }
        if (!late) expect(await discrepancies(bench)).toEqual([]);
        const attempts = await attemptsOf(bench);
        await expectAccounted(bench, { attempts, maxUsdPerDay });
        expectTargets(attempts, targets);
        seen.apart += expectApart(attempts.filter((a) => a.job === 'j-apart'));
        seen.movedTime += await expectEachSecondOnce(bench, attempts);
        const done = attempts.filter((a) => a.job !== CANCELLED && a.outcome !== null);
        const named = namedInstances(targets);
        const moved = done.filter((a) => a.outcome === 'moved');
        const isAt = (a: Attempt): boolean =>
          attempts.some((b) => isSameTask(a, b) && b.number === a.number + 1 && b.instance === a.goesTo);
        seen.moved += moved.filter(isAt).length;
        seen.movedToNamed += moved.filter((a) => isAt(a) && named.has(a.id)).length;
        seen.preempted += done.filter((a) => a.outcome === 'preempted' && a.goesTo === undefined && !isGang(a)).length;
        seen.copies += attempts.filter((a) => a.role === 'copy').length;
        seen.superseded += done.filter((a) => a.outcome === 'superseded').length;
        seen.gangs += done.filter((a) => isGang(a) && a.outcome === 'succeeded').length;
        seen.large += done.filter((a) => a.job === 'j-large' && a.outcome === 'succeeded').length;
        seen.starts += attempts.length;
        const instances = (await bench.store.instances(null, 1000, null)).items;
        seen.launches += instances.length;
        seen.releases += instances.filter((i) => i.endCause === 'released').length;
        for (const { pool, launchedMs } of instances) if (launchedMs !== null) seen.types.add(poolParts(pool).type);
        const events = await bench.store.events(0, 100_000);
        const isReached = events.some((e) => e.type === 'spending-limit' && e.data['percent'] === 100);
        seen.ahead += events.filter((e) => e.type === 'instance-requested' && e.text.includes('drawn ahead')).length;
        seen.boundByMoney += isReached ? 1 : 0;
        seen.finished += late ? 0 : 1;
      },
    ),
    { seed: 20260520, numRuns: 30, endOnFailure: true },
  );
  const { types, ...counts } = seen;
  expect([...types].sort()).toEqual(['c5.2xlarge', 'c5.xlarge', 'r5.large']);
  for (const [what, count] of Object.entries(counts)) expect([what, count > 3]).toEqual([what, true]);
}, 180_000);

const isSameTask = (a: Attempt, b: Attempt): boolean => a.job === b.job && a.stage === b.stage && a.index === b.index;
const isGang = ({ job: id }: Attempt): boolean => id === 'j-gang';
const attemptsOf = async (bench: EngineBench): Promise<readonly Attempt[]> =>
  (await Promise.all((await bench.jobs()).map((j) => bench.store.attempts(j.id)))).flat();

/** No two of these tasks live on one instance at once. Returns how many there are. */
function expectApart(attempts: readonly Attempt[]): number {
  for (const a of attempts) {
    const beside = attempts.filter((b) => b.id !== a.id && b.instance === a.instance && livesAt(b, a.placedMs));
    expect([a.id, beside.map((b) => b.id)]).toEqual([a.id, []]);
  }
  return attempts.length;
}

/** Attempts that stop for a named instance go there, and to no other. Where a task has several, one of them moves. */
function expectTargets(attempts: readonly Attempt[], targets: Targets): void {
  const named = namedInstances(targets);
  for (const attempt of attempts) {
    const { id, goesTo } = attempt;
    if (goesTo === undefined || !named.has(id)) continue;
    const overlaps = (a: Attempt): boolean => isSameTask(a, attempt) && livesAt(a, attempt.placedMs);
    const beside = attempts.filter((a) => a.id !== id && overlaps(a));
    const isAsked = [attempt, ...beside].some((a) => named.get(a.id) === goesTo || !named.has(a.id));
    expect([id, isAsked]).toEqual([id, true]);
  }
}

/**
 * The ledger has each second of an attempt in exactly one kind: its rows follow one another from its reservation, or
 * its start, to its end. Rows of moves are those of attempts that moved, or of room that was kept. Returns how many.
 */
async function expectEachSecondOnce(bench: EngineBench, attempts: readonly Attempt[]): Promise<number> {
  const pools = new Map(trace.pools.map((p) => [p.id, p]));
  const ended = new Map((await bench.store.instances(null, 1000, null)).items.map((i) => [i.id, i]));
  let moves = 0;
  for (const a of attempts) {
    const on = ended.get(a.instance);
    const pool = on === undefined ? undefined : pools.get(on.pool);
    if (on?.costUsd === null || on === undefined || pool === undefined || a.endedMs === null) continue;
    // Room that a restart in place kept and did not use is of the same attempt.
    const unused = (on.reservations ?? []).filter((r) => r.attempt === a.id);
    if (unused.length > 0) continue;
    const rows = (await bench.store.ledger({ instance: a.instance })).filter((row) => row.attempt === a.id);
    const fromMs = a.reservedMs ?? a.startedMs;
    const hours = fromMs === null ? 0 : Math.max(0, raw(a.endedMs) - raw(fromMs)) / 3_600_000;
    const share = dominantShare(a.resources, pool.type.capacity);
    const sum = rows.reduce((usd, row) => usd + row.onDemandUsd, 0);
    // Less where shares of unlike tasks sum to more than the instance.
    expect([a.id, sum <= raw(pool.onDemandUsdPerHour) * share * hours + 1e-9]).toEqual([a.id, true]);
    const inTime = rows.toSorted((x, y) => raw(x.fromMs) - raw(y.fromMs));
    const cuts = inTime.flatMap((row) => [raw(row.fromMs), raw(row.toMs)]);
    if (hours > 0) expect([a.id, cuts.at(0), cuts.at(-1)]).toEqual([a.id, raw(fromMs!), raw(a.endedMs)]);
    inTime.slice(1).forEach((row, i) => expect(row.fromMs).toEqual(inTime[i]?.toMs));
    const moved = rows.filter((row) => row.kind === 'moved');
    if (moved.length > 0) expect([a.id, a.leaving !== undefined || a.reservedMs !== undefined]).toEqual([a.id, true]);
    moves += moved.length;
  }
  return moves;
}

const livesAt = ({ placedMs, endedMs }: Attempt, at: EpochMs): boolean =>
  raw(placedMs) <= raw(at) && (endedMs === null || raw(endedMs) > raw(at));

/** Spent until an instant, at the mean price of each instance. */
const spentBy =
  (instances: readonly Instance[]) =>
  (at: EpochMs): number =>
    instances.reduce((sum, { launchedMs, endedMs, costUsd }) => {
      if (launchedMs === null || endedMs === null || costUsd === null) return sum;
      const [from, to] = [raw(launchedMs), Math.max(raw(endedMs), raw(launchedMs) + 1)];
      return sum + raw(costUsd) * Math.min(1, Math.max(0, (raw(at) - from) / (to - from)));
    }, 0);

/**
 * No instance is ever overfull in any resource, attempts of a task live side by side only as copies and never on one
 * instance, nothing begins once the limit on money is used up, and jobs are conserved.
 */
async function expectAccounted(
  bench: EngineBench,
  { attempts, maxUsdPerDay }: { readonly attempts: readonly Attempt[]; readonly maxUsdPerDay: number },
): Promise<void> {
  for (const own of Map.groupBy(attempts, (a) => `${a.job}/${a.stage}/${a.index}`).values()) {
    expect(own.filter((a) => a.outcome === 'succeeded').length).toBeLessThan(2);
    for (const a of own) {
      const beside = own.filter((b) => b.number < a.number && livesAt(b, a.placedMs));
      if (a.role !== 'copy') expect([a.id, beside.map((b) => b.id)]).toEqual([a.id, []]);
      expect(beside.map((b) => b.instance)).not.toContain(a.instance);
    }
  }
  const capacity = new Map(trace.pools.map((p) => [p.id, p.type.capacity]));
  const poolOf = new Map((await bench.store.instances(null, 1000, null)).items.map((i) => [i.id, i.pool]));
  for (const [instance, own] of Map.groupBy(attempts, (a) => a.instance)) {
    const whole = capacity.get(poolOf.get(instance) ?? trace.pools[0]?.id ?? ('' as never)) ?? NO_RESOURCES;
    for (const { placedMs } of own) {
      const there = own
        .filter((a) => livesAt(a, placedMs))
        .reduce((n, a) => plusResources(n, a.resources), NO_RESOURCES);
      expect([instance, fits(there, whole)]).toEqual([instance, true]);
    }
  }
  const spentUsd = spentBy((await bench.store.instances(null, 1000, null)).items);
  // What runs goes on, however long it takes; nothing is bought or begins once the limit is used up.
  for (const a of attempts) expect([a.id, spentUsd(a.placedMs) <= maxUsdPerDay + 1e-6]).toEqual([a.id, true]);
  for (const [task, times] of bench.completions()) {
    const isCopied = attempts.some((a) => a.role === 'copy' && `${a.job}/${a.stage}/${a.index}` === task);
    if (!isCopied) expect([task, times]).toEqual([task, 1]);
  }
  for (const j of await bench.jobs()) {
    for (const s of j.stages) expect(s.waiting + s.running + s.succeeded + s.failed + s.cancelled).toBe(s.nextFresh);
    if (j.id === CANCELLED) expect(['cancelled', 'running', 'pending', 'cancelling']).toContain(j.state);
  }
}
