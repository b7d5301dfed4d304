import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { raw } from '../../../../lib/kernel/units.ts';
import { vector } from '../../../../lib/domain/resources.ts';
import type { PoolView } from '../../../../lib/domain/pool.ts';
import { cheapestSpot } from '../../../../lib/stages/scale/cheapest-spot.ts';
import { onDemandOnly } from '../../../../lib/stages/scale/on-demand-only.ts';
import { Scaler } from '../../../../lib/stages/scale/scaler.ts';
import { stratusTributary } from '../../../../lib/stages/scale/stratus-tributary.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';
import { group, pool, resources, view } from '../../../support/decision-world.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';

const SIZES = [
  { type: 'm5.large', vcpus: 2, gib: 8 },
  { type: 'm5.xlarge', vcpus: 4, gib: 16 },
  { type: 'c5.2xlarge', vcpus: 8, gib: 16 },
  { type: 'r5.xlarge', vcpus: 4, gib: 32 },
];
const poolViews = fc
  .uniqueArray(fc.record({ size: fc.nat(3), price: fc.integer({ min: 10, max: 400 }) }), {
    minLength: 2,
    maxLength: 4,
    selector: (p) => p.size,
  })
  .map((list) => list.map(({ size, price }) => view(pool({ ...SIZES[size], zone: 'a' }), price / 1000)));

interface Load {
  readonly vcpus: number;
  readonly gib: number;
  readonly count: number;
  readonly runtimeS: number;
  readonly mask: number;
}
const loads = (most: number, runtimeS: fc.Arbitrary<number>) =>
  fc.array(
    fc.record({
      vcpus: fc.integer({ min: 1, max: 4 }),
      gib: fc.integer({ min: 1, max: 8 }),
      count: fc.integer({ min: 1, max: most }),
      runtimeS,
      mask: fc.integer({ min: 1, max: 15 }),
    }),
    { minLength: 1, maxLength: 5 },
  );

function wantedOf(list: readonly Load[], views: readonly PoolView[]): Wanted[] {
  return list.flatMap((l, i) => {
    const need = resources(l.vcpus, l.gib);
    const fitting = views.filter(
      ({ pool: p }, k) =>
        ((l.mask >> k) & 1) === 1 && vector(need).every((n, r) => n <= (vector(p.type.capacity)[r] ?? 0)),
    );
    return fitting.length === 0
      ? []
      : [{ group: group({ id: `g${i}`, count: l.count, need }), runtimeS: l.runtimeS, pools: fitting }];
  });
}

/** Stratus 3.2.3 word by word on single tasks of one bin: no groups, no counts, no steps. */
function naiveStratus(wanted: readonly Wanted[], views: readonly PoolView[]): Record<string, number> {
  interface Single {
    readonly need: readonly number[];
    readonly where: ReadonlySet<string>;
  }
  let tasks = [...wanted]
    .sort((a, b) => b.runtimeS - a.runtimeS || (a.group.id < b.group.id ? -1 : 1))
    .flatMap((w) =>
      Array.from({ length: w.group.count }, (): Single => ({
        need: vector(w.group.need),
        where: new Set(w.pools.map((v) => v.pool.id)),
      })),
    );
  const offered = views.filter((v) => wanted.some((w) => w.pools.includes(v)));
  const smallest = [0, 1, 2, 3].map((k) =>
    Math.min(...offered.map((v) => vector(v.pool.type.capacity)[k] ?? 0).filter((c) => c > 0)),
  );
  const bought: Record<string, number> = {};
  while (tasks.length > 0) {
    let best = { score: 0, id: '', taken: [] as Single[] };
    for (const v of [...views].sort((a, b) => (a.pool.id < b.pool.id ? -1 : 1))) {
      if (tasks[0]?.where.has(v.pool.id) !== true) continue;
      const capacity = vector(v.pool.type.capacity);
      const able = tasks.filter((t) => t.where.has(v.pool.id));
      for (let i = 1; i <= able.length; i++) {
        const first = able.slice(0, i);
        const used = [0, 1, 2, 3].map((k) => first.reduce((sum, t) => sum + (t.need[k] ?? 0), 0));
        if (used.some((u, k) => u > (capacity[k] ?? 0) + 1e-6)) break;
        const share = used.map((u, k) => ((capacity[k] ?? 0) > 0 ? u / (capacity[k] ?? 1) : 0));
        const constraining = share.findIndex((s) => s >= Math.max(...share) - 1e-12);
        const score = (used[constraining] ?? 0) / (smallest[constraining] ?? 1) / raw(v.quote ?? (0 as never));
        if (score > best.score * (1 + 1e-12)) best = { score, id: v.pool.id, taken: first };
      }
    }
    const gone = new Set(best.taken);
    tasks = tasks.filter((t) => !gone.has(t));
    bought[best.id] = (bought[best.id] ?? 0) + 1;
  }
  return bought;
}

const counts = (purchases: readonly { pool: string; count: number }[]): Record<string, number> =>
  Object.fromEntries(purchases.map((p) => [p.pool, p.count]));
const PLAIN = { correlationPenalty: 0, startDelayMeanS: 0 };

/**
 * Least price of instances that hold all tasks, by trying everything: each task joins an open instance or opens one.
 */
function cheapest(wanted: readonly Wanted[], views: readonly PoolView[]): number {
  const tasks = wanted.flatMap((w) => Array.from({ length: w.group.count }, () => w));
  let best = Infinity;
  const open: { free: number[]; id: string }[] = [];
  const place = (i: number, usd: number): void => {
    if (usd >= best) return;
    const task = tasks[i];
    if (task === undefined) {
      best = usd;
      return;
    }
    const need = vector(task.group.need);
    const where = new Set<string>(task.pools.map((v) => v.pool.id));
    for (const o of open) {
      if (!where.has(o.id) || need.some((n, k) => n > (o.free[k] ?? 0) + 1e-6)) continue;
      need.forEach((n, k) => (o.free[k] = (o.free[k] ?? 0) - n));
      place(i + 1, usd);
      need.forEach((n, k) => (o.free[k] = (o.free[k] ?? 0) + n));
    }
    for (const v of views) {
      if (!where.has(v.pool.id)) continue;
      open.push({ free: vector(v.pool.type.capacity).map((c, k) => c - (need[k] ?? 0)), id: v.pool.id });
      place(i + 1, usd + raw(v.quote ?? (Infinity as never)));
      open.pop();
    }
  };
  place(0, 0);
  return best;
}

describe('scaler', () => {
  it('costs less than Stratus, which counts the constraining resource alone', () => {
    const usd = { ours: 0, stratus: 0 };
    let cheaper = 0;
    fc.assert(
      fc.property(poolViews, loads(5, fc.integer({ min: 1024, max: 2047 })), (views, list) => {
        const wanted = wantedOf(list, views);
        if (wanted.length === 0) return;
        const price = new Map(views.map((v) => [v.pool.id as string, raw(v.quote ?? (NaN as never))]));
        const bill = (of: Record<string, number>): number =>
          Object.entries(of).reduce((sum, [id, n]) => sum + n * (price.get(id) ?? NaN), 0);
        const ours = bill(counts(stratusTributary(acquireInput(wanted, { pools: views }, PLAIN))));
        const stratus = bill(naiveStratus(wanted, views));
        usd.ours += ours;
        usd.stratus += stratus;
        if (ours < stratus - 1e-9) cheaper++;
      }),
      { seed: 31, numRuns: runs(400) },
    );
    expect(cheaper).toBeGreaterThan(seenMoreThan(20));
    expect(usd.ours).toBeLessThan(usd.stratus);
  });

  it('costs little more than the best there is', () => {
    let ratios = 0;
    let n = 0;
    fc.assert(
      fc.property(poolViews, loads(2, fc.constant(1500)), (views, list) => {
        const wanted = wantedOf(list.slice(0, 3), views);
        if (wanted.length === 0) return;
        const price = new Map(views.map((v) => [v.pool.id as string, raw(v.quote ?? (NaN as never))]));
        const paid = stratusTributary(acquireInput(wanted, { pools: views }, PLAIN)).reduce(
          (sum, p) => sum + p.count * (price.get(p.pool) ?? NaN),
          0,
        );
        const least = cheapest(wanted, views);
        expect(paid).toBeGreaterThanOrEqual(least - 1e-9);
        ratios += paid / least;
        n++;
      }),
      { seed: 32, numRuns: runs(300) },
    );
    expect(n).toBeGreaterThan(seenMoreThan(200));
    expect(ratios / n).toBeLessThan(1.05);
  });

  it('gives every task room, overfills nothing, whatever the order of its input', () => {
    fc.assert(
      fc.property(poolViews, loads(300, fc.integer({ min: 1, max: 100_000 })), (views, list) => {
        const wanted = wantedOf(list, views);
        const input = acquireInput(wanted, { pools: views });
        const scaler = new Scaler(input, new Set());
        expect(scaler.run()).toEqual([]);
        const tasks = scaler.bought.reduce((sum, b) => sum + b.count * b.tasks, 0);
        expect(tasks).toBe(wanted.reduce((sum, w) => sum + w.group.count, 0));
        for (const b of scaler.bought) {
          expect(b.count).toBeGreaterThan(0);
          for (const f of b.free) expect(f).toBeGreaterThanOrEqual(-1e-3);
        }
        for (let k = 0; k < 2; k++) {
          const used = scaler.bought.reduce(
            (sum, b) => sum + b.count * ((vector(b.pool.type.capacity)[k] ?? 0) - (b.free[k] ?? 0)),
            0,
          );
          const needed = wanted.reduce((sum, w) => sum + w.group.count * (vector(w.group.need)[k] ?? 0), 0);
          expect(used).toBeCloseTo(needed, 3);
        }
        const shuffled = acquireInput([...wanted].reverse(), { pools: [...views].reverse() });
        expect(stratusTributary(shuffled)).toEqual(stratusTributary(input));
      }),
      { seed: 33, numRuns: runs(150) },
    );
  });

  it.each([
    ['stratus-tributary', stratusTributary],
    ['cheapest-spot', cheapestSpot],
    ['on-demand-only', onDemandOnly],
  ] as const)('%s never passes the vCPU limit', (_, policy) => {
    let bound = 0;
    fc.assert(
      fc.property(
        poolViews,
        loads(40, fc.integer({ min: 1, max: 9000 })),
        fc.integer({ min: 0, max: 60 }),
        (spots, list, vcpus) => {
          const views =
            policy === onDemandOnly
              ? spots.map((v) =>
                  view(
                    pool({ ...v.pool.type, ...SIZES.find((s) => s.type === v.pool.type.name), option: 'on-demand' }),
                    raw(v.quote ?? (1 as never)),
                  ),
                )
              : spots;
          const bought = policy(acquireInput(wantedOf(list, views), { pools: views, vcpus }));
          const sizes = new Map(views.map((v) => [v.pool.id as string, raw(v.pool.type.capacity.cpu) / 1000]));
          const used = bought.reduce((sum, p) => sum + p.count * (sizes.get(p.pool) ?? NaN), 0);
          expect(used).toBeLessThanOrEqual(vcpus);
          if (used > 0 && used > vcpus - 8) bound++;
        },
      ),
      { seed: 34, numRuns: runs(150) },
    );
    expect(bound).toBeGreaterThan(seenMoreThan(30));
  });
});
