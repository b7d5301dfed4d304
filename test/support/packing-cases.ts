import fc from 'fast-check';
import { instanceId } from '../../lib/kernel/ids.ts';
import { seconds } from '../../lib/kernel/units.ts';
import type { Pool } from '../../lib/domain/pool.ts';
import { fromVector, vector } from '../../lib/domain/resources.ts';
import type { Host, TaskToPlace } from '../../lib/policy/contracts.ts';
import { pool } from './decision-world.ts';
import { tasksOf } from './tasks-to-place.ts';

/** Tasks and hosts for properties of packers: each kind of resource is scarce somewhere, and hosts share pools. */

const ZONES = ['a', 'b'] as const;
const POOLS: readonly Pool[] = ZONES.flatMap((zone) => [
  pool({ zone, vcpus: 4, gib: 16 }),
  pool({ zone, vcpus: 8, gib: 8, type: 'c5.2xlarge' }),
  pool({ zone, vcpus: 8, gib: 32, gpus: 2, type: 'g5.2xlarge' }),
]);
/** Several of some bins, which are powers of two of seconds. */
const runtimes = fc.constantFrom(0.5, 1, 3, 70, 100, 120, 600, 700, 900, 1000, 1500, 40_000);

type Where = Pick<TaskToPlace, 'allowed' | 'inPool'>;
const anywhere = (): boolean => true;
const inZone = (zone: string): Where => ({ allowed: (h) => h.pool.zone === zone });
/** What groups share: constraints that are functions of the host, or of its pool. */
const SHARED: readonly Where[] = [
  { allowed: anywhere },
  ...ZONES.map(inZone),
  ...ZONES.map((zone) => ({ ...inZone(zone), inPool: (p: Pool) => p.zone === zone })),
];
const shared = fc.constantFrom(...SHARED);
/** Constraints of one group alone. */
const own = fc.constantFrom(...ZONES).map(inZone);

/** Hosts that run something, or nothing. */
export const hostLists: fc.Arbitrary<readonly Host[]> = fc
  .array(
    fc.record({
      pool: fc.nat(POOLS.length - 1),
      used: fc.tuple(fc.nat(5), fc.nat(9), fc.nat(1), fc.nat(8)),
      remainingS: fc.oneof({ weight: 2, arbitrary: runtimes }, { weight: 1, arbitrary: fc.constant(0) }),
    }),
    { minLength: 1, maxLength: 10 },
  )
  .map((list) =>
    list.map(({ pool: p, used, remainingS }, i) => {
      const of = POOLS[p] ?? pool();
      const [cpus, gib, gpus, tenths] = used;
      const [cpu, memory, allGpus, disk] = vector(of.type.capacity);
      const left = [cpu - cpus * 1000, memory - gib * 1024, allGpus - gpus, (disk * (10 - tenths)) / 10];
      return {
        on: instanceId(`h${i}`),
        pool: of,
        capacity: of.type.capacity,
        free: remainingS === 0 ? of.type.capacity : fromVector(left.map((x) => Math.max(0, x))),
        remainingS: seconds(remainingS),
      };
    }),
  );

/**
 * Tasks of a few groups. Tasks with odd numbers may run for another time than those with even ones, and may be outside
 * their gang.
 */
export const taskLists = (gangs: boolean): fc.Arbitrary<readonly TaskToPlace[]> =>
  fc
    .array(
      fc.record({
        count: fc.oneof(fc.integer({ min: 1, max: 2 }), fc.integer({ min: 1, max: 9 })),
        need: fc.tuple(
          fc.integer({ min: 1, max: 3 }),
          fc.integer({ min: 1, max: 5 }),
          fc.constantFrom(0, 0, 0, 0, 1),
          fc.constantFrom(0, 0, 3),
        ),
        runtimeS: runtimes,
        odd: fc.option(fc.record({ runtimeS: runtimes.map(seconds), gang: fc.constant(null) })),
        where: fc.oneof(shared, own),
        gang: gangs ? fc.option(fc.constantFrom('g1', 'g2')) : fc.constant(null),
      }),
      { minLength: 1, maxLength: 6 },
    )
    .map((list) =>
      list.flatMap(({ count, need: [cpus, gib, gpus, tenths], runtimeS, odd, where, gang }, i) =>
        tasksOf({
          id: `t${i}`,
          count,
          need: fromVector([cpus * 1000, gib * 1024, gpus, tenths * 10_000]),
          runtimeS,
          gang,
          ...where,
        }).map((t) => (t.task.index % 2 === 1 ? { ...t, ...odd } : t)),
      ),
    );

/** A task's name in records of who was placed where. */
export const keyOf = (t: { readonly task: TaskToPlace['task'] }): string => `${t.task.job}/${t.task.index}`;
