import type { Acquire } from './acquire.ts';
import type { Purchase } from '../../domain/plan.ts';
import { vector } from '../../domain/resources.ts';
import type { Leftover } from '../../policy/contracts.ts';
import { Scaler, type Bought } from './scaler.ts';
import { capUsd } from '../../domain/pool.ts';

/**
 * Buys for leftovers with Stratus' scaler and Tributary's diversification (lib/stages/scale/scaler.ts). A gang without
 * room as a whole is left out, and the purchase is made anew without it. Deterministic; the order of leftovers, offers
 * and pools does not matter.
 */
export const stratusTributary: Acquire = (input) => {
  const excluded = new Set<Leftover>();
  for (;;) {
    const scaler = new Scaler(input, excluded);
    const short = scaler.run().filter((l) => l.group.stage.gang);
    if (short.length === 0) return purchasesOf(scaler.bought);
    for (const l of short) excluded.add(l);
  }
};

/** One purchase per pool and bid, ordered by pool and bid. */
function purchasesOf(bought: readonly Bought[]): readonly Purchase[] {
  const alike = Map.groupBy(bought, (b) => `${b.pool.id} ${capUsd(b.bid)}`);
  return [...alike.keys()].sort().flatMap((key): Purchase[] => {
    const list = alike.get(key) ?? [];
    const first = list[0];
    if (first === undefined) return [];
    const count = list.reduce((n, b) => n + b.count, 0);
    return [{ pool: first.pool.id, bid: first.bid, count, reason: reasonOf(list, count) }];
  });
}

function reasonOf(list: readonly Bought[], count: number): string {
  let tasks = 0;
  let used = 0;
  let usdPerHour = 0;
  let pInterrupted = 0;
  for (const b of list) {
    const capacity = vector(b.pool.type.capacity);
    const utilisation = Math.max(
      ...b.free.flatMap((f, k) => {
        const all = capacity[k] ?? 0;
        return all > 0 ? [1 - f / all] : [];
      }),
    );
    tasks += b.tasks * b.count;
    used += utilisation * b.count;
    usdPerHour += b.effectiveUsdPerHour * b.count;
    pInterrupted += b.pInterrupted * b.count;
  }
  return (
    `for ${tasks} ${tasks === 1 ? 'task' : 'tasks'}${count === 1 ? '' : ` on ${count} instances`}, ` +
    `${((100 * used) / count).toFixed(0)} % full, weighed at ${(usdPerHour / count).toFixed(4)} USD/h with all risks, ` +
    `P(interrupted before done) ${((100 * pInterrupted) / count).toFixed(1)} %`
  );
}
