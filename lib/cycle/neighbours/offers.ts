/** Offers for groups of which an instance takes only some tasks: these pay for the whole instance. */
import { hoursIn, raw } from '../../kernel/units.ts';
import type { Offer } from '../../domain/forecast.ts';
import { bidNumber } from '../../domain/pool.ts';
import type { AppraisePolicy, GroupOffers } from '../../policy/contracts.ts';
import type { Neighbours } from './neighbours.ts';

/**
 * The same appraisal, but each task pays at least its part of an instance on which as many are as may be, and the
 * instances that suit that are among the offers. O(offers log offers) for each such group.
 */
export const appraiseByRules =
  (appraise: AppraisePolicy, neighbours: Neighbours): AppraisePolicy =>
  (context) => {
    const answer = appraise(context);
    const most = context.snapshot.groups.flatMap(({ id, job, stage }) => {
      const of = neighbours.of({ job, stage: stage.name });
      const perInstance = of === null ? Infinity : neighbours.mostOnNew(of);
      return perInstance >= 1 && perInstance < Infinity ? [[id, perInstance] as const] : [];
    });
    if (most.length === 0) return answer;
    const offers = new Map(answer);
    for (const [id, perInstance] of most) {
      const of = answer.get(id);
      if (of !== undefined) offers.set(id, shared(of, perInstance));
    }
    return offers;
  };

function shared(of: GroupOffers, perInstance: number): GroupOffers {
  const known = new Map<string, Offer>();
  for (const offer of [...of.offers, ...(of.further?.sizes() ?? [])])
    known.set(`${offer.pool} ${bidNumber(offer.bid)}`, offer);
  const offers = [...known.values()].map((offer) => withShare(offer, 1 / perInstance)).sort(cheapestFirst);
  return {
    offers,
    ...(of.further === undefined ? {} : { further: of.further }),
    excluded: of.excluded,
    get considered() {
      return of.considered;
    },
  };
}

function withShare(offer: Offer, least: number): Offer {
  if (offer.newShare >= least) return offer;
  const moreUsd = (least - offer.newShare) * raw(offer.priceUsdPerHour) * hoursIn(offer.expectedDurationS);
  return { ...offer, newShare: least, expectedCostUsd: offer.expectedCostUsd + moreUsd };
}

const netUsd = ({ expectedCostUsd, preferenceUsd = 0 }: Offer): number => expectedCostUsd - preferenceUsd;
const cheapestFirst = (a: Offer, b: Offer): number => netUsd(a) - netUsd(b);
