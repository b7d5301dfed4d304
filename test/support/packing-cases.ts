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
/** Of the longest of a bin, its shortest, and those between: bins are powers of two of seconds. */
const runtimes = fc.constantFrom(0.5, 1, 3, 100, 100, 120, 700, 900, 1500, 40_000);

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

/** Tasks of a few groups. Those of a zone say so by `allowed`, some by `inPool` too. */
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
        zone: fc.option(fc.constantFrom(...ZONES)),
        saysPools: fc.boolean(),
        gang: gangs ? fc.option(fc.constantFrom('g1', 'g2')) : fc.constant(null),
      }),
      { minLength: 1, maxLength: 6 },
    )
    .map((list) =>
      list.flatMap(({ count, need: [cpus, gib, gpus, tenths], runtimeS, zone, saysPools, gang }, i) =>
        tasksOf({
          id: `t${i}`,
          count,
          need: fromVector([cpus * 1000, gib * 1024, gpus, tenths * 10_000]),
          runtimeS,
          gang,
          allowed: (h) => zone === null || h.pool.zone === zone,
          ...(saysPools ? { inPool: (p: Pool) => zone === null || p.zone === zone } : {}),
        }),
      ),
    );

/** A task's name in records of who was placed where. */
export const keyOf = (t: { readonly task: TaskToPlace['task'] }): string => `${t.task.job}/${t.task.index}`;
