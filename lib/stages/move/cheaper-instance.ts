import { chargedS } from '../../market/billing.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { LEAVING } from '../../policy/leaving.ts';
import { leftOfEach } from '../../policy/left-of.ts';
import { pricedPools } from '../../policy/on-demand-bids.ts';
import { allTo, ageS, byAttempt, cheaperPool, movables, patientUntil, type Movable } from './whole-instance.ts';

/**
 * HotSpot's migration (Stratus, sections 3.1.2 and 3.3.3): the work of an instance goes to the cheapest one that holds
 * it, once that is cheaper and the saving over the remaining running time exceeds what the move costs. With R the price
 * here, r the price there, t the remaining time, s the start-up and m the time without progress:
 *   stay:  R t            move:  R (s + m) + r (t + m)
 * Times are those that are charged. A decision holds until its target had time to start.
 * O(instances x pools), but a pool is only looked at while it is cheaper.
 */
export function movesToCheaper(context: DecisionContext): readonly Move[] {
  const { snapshot, memory, config } = context;
  const leaving = memory.of(LEAVING);
  leaving.forgetGone(snapshot, config.billing === 'per-hour');
  const byPrice = pricedPools(context).toSorted((a, b) => a.usdPerHour - b.usdPerHour);
  const open = new Set<string>(byPrice.map((p) => p.pool.id));
  return movables(context, leftOfEach(context))
    .flatMap((of): readonly Move[] => {
      const { view } = of;
      const { id } = view.instance;
      const decided = leaving.decided(id, snapshot.nowMs)?.to ?? null;
      if (decided?.pool !== undefined && open.has(decided.pool)) return allTo(view, decided, REASON);
      const target = cheaperPool(of, byPrice);
      if (target === null || !(savesUsd(of, target.usdPerHour, context) > 0)) {
        leaving.stays(id);
        return [];
      }
      const to = { pool: target.pool.id, bid: target.bid };
      leaving.decide(id, { to, untilMs: patientUntil(snapshot.nowMs, config) });
      return allTo(view, to, REASON);
    })
    .sort(byAttempt);
}

const REASON = 'a cheaper instance holds its work, and saves more than the move costs';

function savesUsd(
  { view, usdPerHour, leftS, migrationS }: Movable,
  thereUsdPerHour: number,
  { snapshot, config }: DecisionContext,
): number {
  const age = ageS(view, snapshot);
  const hereS = (s: number): number => chargedS(age + s, config) - chargedS(age, config);
  const stayUsd = usdPerHour * hereS(leftS);
  const leaveUsd = usdPerHour * hereS(config.startDelayMeanS + migrationS);
  return (stayUsd - leaveUsd - thereUsdPerHour * chargedS(leftS + migrationS, config)) / 3600;
}
