import { raw, seconds, usdPerHour } from '../../lib/kernel/units.ts';
import type { Offer } from '../../lib/domain/forecast.ts';
import type { PoolView } from '../../lib/domain/pool.ts';
import { dominantShare } from '../../lib/domain/resources.ts';
import type { PendingGroup } from '../../lib/domain/snapshot.ts';
import type { AcquireInput, GroupOffers, Leftover } from '../../lib/policy/contracts.ts';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { GroupId } from '../../lib/kernel/ids.ts';
import { config, NOW, world, type WorldFacts } from './decision-world.ts';

export interface Wanted {
  readonly group: PendingGroup;
  readonly runtimeS: number;
  /** Pools it may go to, uncapped, each at its quote; the first is what the plan chose. */
  readonly pools: readonly PoolView[];
  readonly offer?: Partial<Offer>;
}

/** An offer of a pool at its quote without risk: price x share x time, unless told otherwise. */
export function offer(w: Wanted, v: PoolView): Offer {
  const price = raw(v.quote ?? usdPerHour(NaN));
  const share = dominantShare(w.group.need, v.pool.type.capacity);
  return {
    group: w.group.id,
    pool: v.pool.id,
    bid: 'uncapped',
    priceUsdPerHour: usdPerHour(price),
    share,
    roomShare: share,
    newShare: share,
    startDelayS: seconds(0),
    pInterrupted: 0,
    pLate: 0,
    expectedLostS: seconds(0),
    expectedDurationS: seconds(w.runtimeS),
    expectedCostUsd: (price * share * w.runtimeS) / 3600,
    ...w.offer,
  };
}

export function acquireInput(
  wanted: readonly Wanted[],
  facts: Omit<WorldFacts, 'pools'> & { readonly pools: readonly PoolView[] },
  over: Partial<SchedulerConfig> = {},
): AcquireInput {
  const offers = new Map<GroupId, GroupOffers>();
  const leftovers: Leftover[] = [];
  for (const w of wanted) {
    const list = w.pools.map((v) => offer(w, v));
    offers.set(w.group.id, { offers: list, excluded: [], considered: [] });
    const chosen = list[0];
    if (chosen === undefined) throw new Error('a leftover has an offer');
    const option = {
      group: w.group.id,
      offer: chosen,
      slot: 0,
      startMs: NOW,
      worthUsd: 1,
      costUsd: chosen.expectedCostUsd,
    };
    leftovers.push({ group: w.group, option, count: w.group.count, runtimeS: seconds(w.runtimeS) });
  }
  return { ...world({ ...facts, groups: wanted.map((w) => w.group) }), offers, leftovers, config: config(over) };
}
