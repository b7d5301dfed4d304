import { compareText } from '../../kernel/compare.ts';
import { dominantShare } from '../../domain/resources.ts';
import type { Leftover } from '../../policy/contracts.ts';
import type { Acquire } from './acquire.ts';
import { mayUse } from './eligible.ts';
import { pricedPools } from '../../policy/on-demand-bids.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { purchasesOf, type Lot } from './purchases.ts';

/**
 * HotSpot's purchase (Stratus, section 3.1.2): for each task an instance of its own, the cheapest on which it fits,
 * spot or not. Gangs whole or not at all; stops at the vCPU limit. O(leftovers x pools).
 */
export const cheapestFit: Acquire = (input) => {
  const byPrice = pricedPools(input).toSorted((a, b) => a.usdPerHour - b.usdPerHour);
  let vcpus = vcpusLeft(input.snapshot);
  const lots: Lot[] = [];
  for (const { group, count: wanted } of [...input.leftovers].sort(byId)) {
    const of = byPrice.find(({ pool, vcpus: size }) => mayUse(pool)(group) && size <= vcpus + 1e-9);
    if (of === undefined) continue;
    const count = Math.min(wanted, Math.floor((vcpus + 1e-9) / of.vcpus));
    if (group.stage.gang && count < wanted) continue;
    vcpus -= count * of.vcpus;
    lots.push({ of, count, tasks: 1, used: dominantShare(group.need, of.pool.type.capacity) });
  }
  return purchasesOf(lots);
};

const byId = (a: Leftover, b: Leftover): number => compareText(a.group.id, b.group.id);
