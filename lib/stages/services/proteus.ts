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
import { leastUnits, surplus, unitsHeld, unitsOf } from './units.ts';
import { endedWindows, lastsUntilReplaced, windowLeftMs } from './windows.ts';

const HOUR_S = seconds(3600);

/** O(candidates + instances x log instances). */
export const proteus: FootprintPolicy = (context) => {
  const needed = leastUnits(context.demand.utility, 1) ?? 0;
  const ended = endedWindows(context);
  const lasting = context.held.filter((held) => lastsUntilReplaced(held, context));
  const has = unitsHeld(lasting);
  if (has >= needed) {
    const over = surplus(has - needed, soonestEnd(lasting, context), 'less is needed, and its window ends first');
    return { buy: [], release: [...ended, ...over] };
  }
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

function soonestEnd(held: readonly HeldInstance[], context: FootprintContext): readonly HeldInstance[] {
  const leftMs = (of: HeldInstance): number => windowLeftMs(of, context);
  return held.toSorted((a, b) => (leftMs(a) === leftMs(b) ? compareText(a.id, b.id) : leftMs(a) - leftMs(b)));
}
