/**
 * Baseline: Proteus' acquisition as Tributary implements it (sections 2.1.2 and 2.4.6), with spot alone: the pool and
 * bid with the lowest expected cost per vCPU-hour, free hours counted. As many vCPUs as the load needs, all from the
 * one that is best now; what is lost is bought anew.
 */
import { compareText } from '../../kernel/compare.ts';
import { seconds, usdPerHour } from '../../kernel/units.ts';
import { pInterruptedWithin } from '../../domain/forecast.ts';
import { rateText } from '../../domain/pool.ts';
import { expectedShare } from '../../policy/footprint/expected-cost.ts';
import type { FootprintContext, FootprintPolicy, HeldInstance } from '../../policy/services/contracts.ts';
import { candidatesOf, type Candidate } from './candidates.ts';
import { windowLeftMs } from './holdings.ts';
import { leastUnits, unitsOf } from './units.ts';

const HOUR_S = seconds(3600);

/** O(candidates + instances x log instances). */
export const proteus: FootprintPolicy = (context) => {
  const needed = leastUnits(context.demand.utility, 1) ?? 0;
  const left = new Map(context.held.map((held) => [held, windowLeftMs(held, context)]));
  const ended = context.held
    .filter((held) => (left.get(held) ?? 0) <= 0)
    .map(({ id }) => ({ instance: id, reason: 'its window has ended: an interruption is no longer refunded' }));
  // A replacement serves before the window ends.
  const lasting = context.held.filter((held) => (left.get(held) ?? 0) > context.config.startDelayMeanS * 1000);
  const has = lasting.reduce((sum, { pool }) => sum + unitsOf(pool), 0);
  if (has >= needed) return { buy: [], release: [...ended, ...surplus(has - needed, lasting, left)] };
  const best = cheapest(context);
  if (best === null) return { buy: [], release: ended };
  const count = Math.ceil((needed - has) / unitsOf(best.pool));
  const reason = `lowest expected cost per vCPU-hour, at ${rateText(usdPerHour(best.priceUsd))} USD/h`;
  return { buy: [{ pool: best.pool.id, bid: best.bid, count, reason }], release: ended };
};

function cheapest(context: FootprintContext): Candidate | null {
  const { market } = context;
  const usd = ({ costUsd, pLost, pool }: Candidate): number => costUsd / (unitsOf(pool) * expectedShare(pLost));
  return candidatesOf(context, (pool, bid) => pInterruptedWithin(market.interruption(pool, bid), HOUR_S))
    .filter(({ pLost }) => pLost < 1)
    .reduce<Candidate | null>((best, of) => (best === null || usd(of) < usd(best) ? of : best), null);
}

/** As far as they are too many, those whose window ends first. */
function surplus(
  tooMany: number,
  held: readonly HeldInstance[],
  left: ReadonlyMap<HeldInstance, number>,
): ReturnType<FootprintPolicy>['release'] {
  let over = tooMany;
  const leftMs = (of: HeldInstance): number => left.get(of) ?? 0;
  return held
    .toSorted((a, b) => (leftMs(a) === leftMs(b) ? compareText(a.id, b.id) : leftMs(a) - leftMs(b)))
    .flatMap(({ id, pool }) => {
      if (unitsOf(pool) > over) return [];
      over -= unitsOf(pool);
      return [{ instance: id, reason: 'less is needed, and its window ends first' }];
    });
}
