import { raw } from '../../lib/kernel/units.ts';
import { brokenConstraint } from '../../lib/domain/constraints.ts';
import { vector } from '../../lib/domain/resources.ts';
import type { AcquireInput } from '../../lib/policy/contracts.ts';

/**
 * Oracle of Stratus' scaler (section 3.2.3): every group of every bin on every pool, one task and one instance at a
 * time. Counts of instances by pool.
 */
export function productScan({ leftovers, snapshot }: AcquireInput): Record<string, number> {
  const KINDS = [0, 1, 2, 3] as const;
  const open = snapshot.pools.flatMap(({ pool, quote, open: sells }) => {
    const price = quote === null ? NaN : raw(quote);
    const tooDear = pool.option === 'spot' && price > raw(pool.onDemandUsdPerHour);
    return !sells || quote === null || tooDear ? [] : [{ pool, price, has: vector(pool.type.capacity) }];
  });
  type Priced = (typeof open)[number];
  type Task = {
    readonly needs: readonly number[];
    readonly s: number;
    readonly where: string;
    readonly may: (p: Priced) => boolean;
  };
  const tasks = leftovers.flatMap((l): Task[] => {
    const may = ({ pool }: Priced): boolean => brokenConstraint(l.group.stage.constraints, pool) === null;
    return Array.from({ length: l.count }, () => ({
      needs: vector(l.group.need),
      s: raw(l.runtimeS),
      where: JSON.stringify(l.group.stage.constraints),
      may,
    }));
  });
  const usable = open.filter((p) => tasks.some((t) => t.may(p)));
  const smallest = KINDS.map((k) => Math.min(...usable.map((p) => p.has[k]).filter((c) => c > 0)));
  const bin = (s: number): number => {
    let n = 0;
    for (let upTo = 1; s >= upTo; upTo *= 2) n++;
    return n;
  };
  const score = (p: Priced, uses: readonly number[]): number => {
    const parts = KINDS.map((k) => (p.has[k] > 0 ? (uses[k] ?? 0) / p.has[k] : 0));
    const constraining = parts.indexOf(Math.max(...parts));
    return (uses[constraining] ?? 0) / (smallest[constraining] ?? 1) / p.price;
  };
  const counts: Record<string, number> = {};
  const bins = [...new Set(tasks.map((t) => bin(t.s)))].sort((a, b) => b - a);
  const larger = (a: Task, b: Task): number =>
    KINDS.map((k) => (b.needs[k] ?? 0) - (a.needs[k] ?? 0)).find((d) => d !== 0) ?? 0;
  for (const b of bins) {
    let left = tasks
      .filter((t) => bin(t.s) === b)
      .sort((x, y) => y.s - x.s || larger(x, y) || (x.where < y.where ? -1 : 1));
    while (left.length > 0) {
      let best: { p: Priced; i: number; score: number } | null = null;
      for (const p of usable) {
        let uses = KINDS.map(() => 0);
        for (const [n, t] of left.entries()) {
          uses = uses.map((u, k) => u + (t.needs[k] ?? 0));
          if (!t.may(p) || KINDS.some((k) => (uses[k] ?? 0) > p.has[k])) break;
          const found = { p, i: n + 1, score: score(p, uses) };
          if (best === null || isBetter(found, best)) best = found;
        }
      }
      if (best === null) left = left.slice(1);
      else {
        counts[best.p.pool.id] = (counts[best.p.pool.id] ?? 0) + 1;
        left = left.slice(best.i);
      }
    }
  }
  return counts;
}

interface Found {
  readonly p: { readonly pool: { readonly id: string }; readonly price: number };
  readonly i: number;
  readonly score: number;
}

/** The higher score; of equal ones the larger group, the lower price, the first name. */
function isBetter(a: Found, b: Found): boolean {
  if (a.score !== b.score) return a.score > b.score;
  if (a.i !== b.i) return a.i > b.i;
  if (a.p.price !== b.p.price) return a.p.price < b.p.price;
  return a.p.pool.id < b.p.pool.id;
}
