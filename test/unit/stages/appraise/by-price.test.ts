import { describe, expect, it } from '@jest/globals';
import { plus, seconds } from '../../../../lib/kernel/units.ts';
import { certain } from '../../../../lib/domain/distribution.ts';
import { appraiseByPrice } from '../../../../lib/stages/appraise/by-price.ts';
import {
  config,
  exponential,
  group,
  instance,
  market,
  NOW,
  pool,
  resources,
  view,
  world,
} from '../../../support/decision-world.ts';

const HOUR_S = 3600;
const dear = view(pool({ zone: 'a' }), 0.05);
const cheap = view(pool({ zone: 'b' }), 0.03);
const onDemand = view(pool({ zone: 'a', option: 'on-demand', onDemand: 0.1 }), 0.1);
const soaring = view(pool({ zone: 'c', onDemand: 0.1 }), 0.11);
const closed = view(pool({ zone: 'd' }), 0.01, false);

type Facts = Partial<Parameters<typeof world>[0]>;
function offersOf(facts: Facts, over = {}) {
  const w = world({
    pools: [onDemand, dear, cheap, soaring, closed],
    groups: [group({ id: 'g', need: resources(1, 1) })],
    runtime: () => certain(seconds(HOUR_S)),
    ...facts,
  });
  const answer = [...appraiseByPrice({ ...w, config: config(over) }).values()][0];
  if (answer === undefined) throw new Error('no offers');
  return answer;
}

describe('pools by price', () => {
  it('come with the lowest price of an instance first, on-demand and spot alike', () => {
    const { offers, considered } = offersOf({});
    expect(offers.map((o) => o.pool)).toEqual([cheap, dear, onDemand].map((v) => v.pool.id));
    expect(offers[0]).toMatchObject({ bid: 'uncapped', share: 0.5, newShare: 0.5, pInterrupted: 0, pLate: 0 });
    expect(offers[0]?.expectedCostUsd).toBeCloseTo(0.5 * 0.03, 12);
    expect(considered.map((c) => c.verdict)).toEqual([
      'best: lowest price now',
      'dearer now; risks are not considered',
      'dearer now; risks are not considered',
    ]);
  });

  it('are no others for a risk that is forecast, a deadline that is near, or running times that are unknown', () => {
    const risky = market([dear, cheap, soaring], () => exponential(60));
    const near = group({ id: 'g', need: resources(1, 1), deadlineMs: plus(NOW, seconds(60)) });
    const of = (facts: Facts) => offersOf(facts).offers.map((o) => [o.pool, o.pLate, o.pInterrupted]);
    expect(of({ market: risky, groups: [near] })).toEqual(of({}));
  });

  it('are left out, with the reason, where they cannot be bought', () => {
    const large = group({ id: 'g', need: resources(64, 1) });
    expect(offersOf({}).excluded).toEqual([
      { constraint: 'price above on-demand', pools: 1 },
      { constraint: 'closed', pools: 1 },
    ]);
    expect(offersOf({ groups: [large] })).toMatchObject({
      offers: [],
      excluded: [{ constraint: 'resources', pools: 5 }],
    });
  });

  it('are as many as a group may have, and those whose instances take tasks', () => {
    const instances = [instance('i', soaring.pool)];
    const { offers } = offersOf({ instances }, { offersPerGroup: 2 });
    expect(offers.map((o) => o.pool)).toEqual([cheap, dear, soaring].map((v) => v.pool.id));
  });
});
