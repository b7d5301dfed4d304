import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { pInterruptedWithin } from '../../../../lib/domain/forecast.ts';
import type { PoolId } from '../../../../lib/kernel/ids.ts';
import { MarketForecaster } from '../../../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence, survivesCapacity } from '../../../../lib/market/forecast/hazard.ts';
import { relativesOf } from '../../../../lib/market/forecast/relatives.ts';
import { pool } from '../../../support/decision-world.ts';

const HOUR = 3_600_000;
const END = 480_000 * HOUR;
const config = { priceHistoryS: 7 * 86_400, hazardPriorPerHour: 0.03, hazardPriorHours: 20 };
const none = new CapacityEvidence();
const [a, b] = ['us-east-1a', 'us-east-1b'];
const unseen = pool({ type: 'c5.large', zone: a, onDemand: 0.1 });
const sibling = pool({ type: 'c5.xlarge', zone: a, onDemand: 0.2 });
const elsewhere = pool({ type: 'c5.large', zone: b, onDemand: 0.1 });
const stranger = pool({ type: 'm5.large', zone: a, onDemand: 0.1 });
const onDemand = pool({ type: 'c5.2xlarge', zone: a, option: 'on-demand' });

/** The price of a pool with history: up for half of each hour by `riseUsd`. */
function forecastWith(known: ReadonlyMap<PoolId, number>, pools: readonly ReturnType<typeof pool>[]) {
  return new MarketForecaster({
    config,
    pools: () => pools,
    history: (id, from, to) => {
      const rise = known.get(id);
      if (rise === undefined) return { atMs: Float64Array.of(END - HOUR), usdPerHour: Float64Array.of(0.03) };
      const at: number[] = [];
      const usd: number[] = [];
      for (let t = END - 168 * HOUR; t < END; t += HOUR) {
        at.push(t, t + HOUR / 2);
        usd.push(0.03, 0.03 + rise);
      }
      const low = Math.max(
        0,
        at.findLastIndex((t) => t <= raw(from)),
      );
      const high = at.findLastIndex((t) => t < raw(to)) + 1;
      return { atMs: Float64Array.from(at.slice(low, high)), usdPerHour: Float64Array.from(usd.slice(low, high)) };
    },
  }).at(epochMs(END), none);
}

describe('a pool never seen', () => {
  const all = [unseen, stranger, elsewhere, sibling, onDemand];
  const bid = usdPerHour(0.04);

  it('has relatives: of its family in its zone, of its family elsewhere, of its zone', () => {
    expect(relativesOf(unseen, all).map(({ name, pools }) => [name, pools.map((p) => p.id)])).toEqual([
      ['c5 in us-east-1a', [sibling.id]],
      ['c5 in other zones', [elsewhere.id]],
      ['us-east-1a', [stranger.id]],
    ]);
  });

  it('is forecast as the nearest that has a history, the bid scaled with the price on demand', () => {
    const capacity = 1 - survivesCapacity(none.posterior(unseen.id, config), seconds(3600));
    // 0.01 above the price at 0.1 on demand is 0.02 at 0.2: its sibling's rise of 0.03 passes what was bid in the low
    // half of an hour.
    const lost = forecastWith(new Map([[sibling.id, 0.03]]), all).interruption(unseen, bid);
    expect(lost.reason).toContain('too little history, mean of 1 pool(s) of c5 in us-east-1a');
    expect(pInterruptedWithin(lost, seconds(3600))).toBeCloseTo(1 - 0.5 * (1 - capacity), 6);
    // A rise of 0.015 would pass a bid of 0.01 above the price, and not one of 0.02.
    const kept = forecastWith(new Map([[sibling.id, 0.015]]), all).interruption(unseen, bid);
    expect(pInterruptedWithin(kept, seconds(3600))).toBeCloseTo(capacity, 6);
  });

  it('is forecast as strangers of its zone where its family has none, and by the prior of all markets where nobody has', () => {
    const near = forecastWith(new Map([[stranger.id, 0.03]]), all).interruption(unseen, bid);
    expect(near.reason).toContain('mean of 1 pool(s) of us-east-1a');
    expect(forecastWith(new Map(), all).interruption(unseen, bid).reason).toContain('prior of all markets');
  });
});
