import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { distribution } from '../../../../lib/domain/distribution.ts';
import type { Offer, RuntimeForecast } from '../../../../lib/domain/forecast.ts';
import { appraise } from '../../../../lib/stages/appraise/appraise.ts';
import { isBoughtAs } from '../../../../lib/domain/pool.ts';
import { config, curve, group, market, pool, view, world, worth } from '../../../support/decision-world.ts';

const HORIZONS = [300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400];
const POOLS = 18;
/** So many that each of the spot pools is on the shortlist. */
const MOST_OFFERS = 6;

interface Case {
  readonly saves: boolean;
  readonly deadlineInS: number | null;
  readonly nonInterruptiblePools: number;
  readonly basis: RuntimeForecast['basis'];
}

const CASES: readonly (readonly [name: string, of: Case])[] = [
  ['no checkpoint', { saves: false, deadlineInS: null, nonInterruptiblePools: 2, basis: 'history' }],
  ['no checkpoint and a deadline', { saves: false, deadlineInS: 15_000, nonInterruptiblePools: 2, basis: 'history' }],
  ['a checkpoint', { saves: true, deadlineInS: null, nonInterruptiblePools: 2, basis: 'history' }],
  ['a checkpoint and a deadline', { saves: true, deadlineInS: 15_000, nonInterruptiblePools: 2, basis: 'history' }],
  ['nothing to flee to', { saves: true, deadlineInS: 30_000, nonInterruptiblePools: 0, basis: 'history' }],
  ['a running time that nobody knows', { saves: false, deadlineInS: 15_000, nonInterruptiblePools: 2, basis: 'prior' }],
];

/** Random prices, also such that are expected to change, hazards over three decades, and pools that are preferred. */
function randomWorld(random: () => number, of: Case) {
  const hazards = new Map<string, number>();
  const later = new Map<string, number>();
  const views = Array.from({ length: POOLS }, (_, i) => {
    const isNonInterruptible = i < of.nonInterruptiblePools;
    const p = pool({ zone: `z${i}`, option: isNonInterruptible ? 'on-demand' : 'spot', onDemand: 0.1 });
    const usd = isNonInterruptible ? 0.1 : 0.02 + 0.08 * random();
    hazards.set(p.id, 0.001 * 1000 ** random());
    later.set(p.id, usd * (0.5 + random()));
    return view(p, usd);
  });
  const prices = market(views, (p, bid) => {
    const perHour = (hazards.get(p.id) ?? 0) * (bid === 'uncapped' ? 0.5 : 1);
    return curve(HORIZONS.map((h) => [h, 1 - Math.exp((-perHour * h) / 3600)]));
  });
  const checkpoint = of.saves ? ({ signal: 'SIGUSR1', graceS: seconds(30), everyS: null } as const) : null;
  const preferences = [{ prefer: { zones: ['z7', 'z8'] }, weight: random() }];
  return world({
    pools: views,
    groups: [group({ id: 'g', class: 'deadline', stage: { checkpoint, preferences } })],
    market: { ...prices, expectedPrice: (p) => usdPerHour(later.get(p.id) ?? NaN) },
    runtime: () => distribution([1, 2, 3].map(() => [300 * 40 ** random(), 1])),
    worth: () => worth(of.deadlineInS),
    basis: of.basis,
  });
}

/** The best of each pool by its rank, the cheapest that stays among them. */
function firstOf(all: readonly Offer[], most: number): Offer[] {
  const first = all.filter((o, i) => all.findIndex((other) => other.pool === o.pool) === i);
  const kept = first.slice(0, most);
  const nonInterruptible = first.find((o) => isBoughtAs(o.pool, 'on-demand'));
  if (nonInterruptible === undefined || kept.includes(nonInterruptible)) return kept;
  return [...kept.slice(0, most - 1), nonInterruptible];
}

/** Where more offers are asked for than there are pools, each pool is looked at. */
describe('offers of pools that were not looked at', () => {
  it.each(CASES)('would not have been kept: %s', (name, of) => {
    const random = randomStream(3, `unseen/${name}`);
    let unseen = 0;
    for (let round = 0; round < 60; round++) {
      const w = randomWorld(random, of);
      const asked = (offersPerGroup: number) => {
        // What an uncapped bid pays is asked of a spot pool that is looked at, and of no other.
        const looked = new Set<string>();
        const meanPrice = ({ id }: { readonly id: string }): null => {
          looked.add(id);
          return null;
        };
        const settings = config({ offersPerGroup, maxLateProbability: 0.1 });
        const answer = appraise({
          ...w,
          forecasts: { ...w.forecasts, market: { ...w.forecasts.market, meanPrice } },
          config: settings,
        });
        const given = [...answer.values()][0];
        if (given === undefined) throw new Error('no offers');
        return { given, unseen: POOLS - of.nonInterruptiblePools - looked.size };
      };
      const few = asked(MOST_OFFERS);
      const all = asked(200);
      expect(few.given.offers).toEqual(firstOf(all.given.offers, MOST_OFFERS));
      unseen += few.unseen;
      if (of.basis === 'history') expect(all.unseen).toBe(0);
      // Explained is also what was not looked at.
      expect(few.given.considered).toHaveLength(12);
    }
    expect(unseen).toBeGreaterThan(100);
  });
});
