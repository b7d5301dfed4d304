import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { groupId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { certain, distribution } from '../../../../lib/domain/distribution.ts';
import { appraise } from '../../../../lib/stages/appraise/appraise.ts';
import { lossOf } from '../../../../lib/policy/work-left.ts';
import { bidsFor } from '../../../../lib/stages/appraise/pools.ts';
import { isBoughtAs, isSpotPool } from '../../../../lib/domain/pool.ts';
import {
  config,
  curve,
  exponential,
  group,
  instance,
  market,
  NOW,
  pool,
  resources,
  view,
  world,
  worth,
  type WorldFacts,
} from '../../../support/decision-world.ts';

const checkpoint = { signal: 'SIGUSR1', graceS: seconds(30), everyS: null } as const;

/** Eight spot pools of rising price and one on-demand pool per zone. */
const zones = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const spots = zones.map((zone, i) => view(pool({ zone }), 0.03 + i * 0.002));
const onDemand = [
  view(pool({ zone: 'a', option: 'on-demand', onDemand: 0.1 }), 0.1),
  view(pool({ zone: 'b', option: 'on-demand', onDemand: 0.09 }), 0.09),
];

function offersOf(facts: Omit<WorldFacts, 'pools'> & Partial<Pick<WorldFacts, 'pools'>>, over = {}) {
  const w = world({ pools: [...spots, ...onDemand], ...facts });
  const id = w.snapshot.groups[0]?.id ?? groupId('none');
  const answer = appraise({ ...w, config: config(over) }).get(id);
  if (answer === undefined) throw new Error('no offers');
  return answer;
}

describe('appraisal', () => {
  it('ranks by expected cost, one bid per pool, with the cheapest on-demand pool', () => {
    const { offers } = offersOf({ groups: [group({ id: 'g', stage: { checkpoint } })] });
    expect(offers).toHaveLength(6);
    expect(new Set(offers.map((o) => o.pool)).size).toBe(6);
    expect(offers.map((o) => o.pool)).toContain('m5.large/b/on-demand');
    expect(offers[0]?.pool).toBe('m5.large/a/spot');
    const costs = offers.map((o) => o.expectedCostUsd);
    expect([...costs].sort((a, b) => a - b)).toEqual(costs);
  });

  it('takes second bids of a pool only when pools run out', () => {
    const { offers } = offersOf({
      groups: [group({ id: 'g' })],
      pools: [spots[0] ?? view(pool(), 1), onDemand[0] ?? view(pool(), 1)],
    });
    expect(offers.filter((o) => isSpotPool(o.pool)).length).toBeGreaterThan(1);
    expect(offers.filter((o) => isBoughtAs(o.pool, 'on-demand'))).toHaveLength(1);
  });

  it('prices on-demand as share x price x time and counts the start-up to nobody', () => {
    const { offers } = offersOf({
      groups: [group({ id: 'g', need: resources(1, 1), count: 2 })],
      runtime: () => certain(seconds(7200)),
    });
    const od = offers.find((o) => o.pool === 'm5.large/b/on-demand');
    expect(od).toMatchObject({ share: 0.5, newShare: 0.5 });
    expect(od?.expectedCostUsd).toBeCloseTo(0.5 * 0.09 * 2, 12);
    expect(od).toMatchObject({ pInterrupted: 0, pLate: 0, bid: 'uncapped' });
  });

  describe('under billing by the hour', () => {
    const hourly = { billing: 'per-hour' } as const;
    const TEN_MINUTES = 600;
    const onDemandOf = (facts: Partial<WorldFacts>, over = {}) => {
      const groups = facts.groups ?? [group({ id: 'g', need: resources(1, 1), class: 'best-effort' })];
      const { offers } = offersOf(
        { runtime: () => certain(seconds(TEN_MINUTES)), worth: () => worth(null), ...facts, groups },
        { ...hourly, ...over },
      );
      const offer = offers.find((o) => o.pool === 'm5.large/b/on-demand');
      if (offer === undefined) throw new Error('on-demand is always offered');
      return offer;
    };

    it('charges a task alone all of the hour that it begins', () => {
      expect(onDemandOf({}).expectedCostUsd).toBeCloseTo(0.09, 12);
      expect(onDemandOf({ runtime: () => certain(seconds(3550)) }).expectedCostUsd).toBeCloseTo(2 * 0.09, 12);
      expect(onDemandOf({}, { billing: 'per-second' }).expectedCostUsd).toBeCloseTo(0.09 / 6, 12);
    });

    it('divides the hour among waiting tasks that may use it one after the other', () => {
      const groups = [group({ id: 'g', need: resources(1, 1), class: 'best-effort', count: 12 })];
      expect(onDemandOf({ groups }).expectedCostUsd).toBeCloseTo(0.09 / 12, 12);
    });

    it('charges tasks with a deadline an hour of their place each, for they start together', () => {
      const groups = [group({ id: 'g', need: resources(1, 1), count: 12 })];
      expect(onDemandOf({ groups, worth: () => worth(36_000) }).expectedCostUsd).toBeCloseTo(0.09 / 2, 12);
    });

    it('knows the time that is paid anyway', () => {
      const paidFor = (minutes: number) => ({ launchedMs: epochMs(raw(NOW) - (60 - minutes) * 60_000) });
      const b = pool({ zone: 'b', option: 'on-demand', onDemand: 0.09 });
      const inRoom = (minutes: number): number =>
        onDemandOf({ instances: [instance('i', b, paidFor(minutes))] }).roomShare;
      // Half of an instance for ten minutes: free but for a token, or an hour more.
      expect(inRoom(30)).toBeCloseTo(0.05 * 0.5, 12);
      expect(inRoom(5)).toBeCloseTo(0.5 * 6, 12);
    });
  });

  it('offers capacity to a task that asks for nothing, with a deadline and without', () => {
    for (const dated of [worth(36_000), worth(null)]) {
      const { offers } = offersOf({ groups: [group({ id: 'g', need: resources(0, 0) })], worth: () => dated });
      expect(offers.map((o) => o.expectedCostUsd)).toEqual(new Array<number>(6).fill(0));
    }
  });

  it('finds the cheapest pools, however many dearer ones have room', () => {
    const letters = Array.from({ length: 40 }, (_, i) => `z${String(i).padStart(2, '0')}`);
    const dear = letters.map((zone) => pool({ zone }));
    const pools = [...spots, ...onDemand, ...dear.map((p) => view(p, 0.08))];
    const instances = dear.map((p, i) => instance(`i-${i}`, p));
    const { offers } = offersOf({ pools, instances, groups: [group({ id: 'g', count: 100, stage: { checkpoint } })] });
    expect(offers[0]?.pool).toBe('m5.large/a/spot');
    expect(offers.filter((o) => o.priceUsdPerHour === usdPerHour(0.08))).toEqual([]);
  });

  it('charges a task without company the whole instance, and so does not take a large one for it', () => {
    const giant = { type: 'm5.24xlarge', vcpus: 96, gib: 384, onDemand: 4 };
    const pools = [
      ...onDemand,
      ...zones.map((zone) => view(pool({ ...giant, zone, option: 'on-demand' }), 4)),
      ...zones.map((zone) => view(pool({ ...giant, zone }), 0.8)),
    ];
    const need = resources(1, 1);
    const alone = offersOf({ pools, groups: [group({ id: 'g', need })], runtime: () => certain(seconds(7200)) });
    const od = alone.offers.find((o) => o.pool === 'm5.large/b/on-demand');
    expect(od).toMatchObject({ share: 0.5, newShare: 1 });
    expect(alone.offers[0]?.pool).toBe('m5.large/b/on-demand');
    // Short tasks beside it use the large instance for a minute of its two hours.
    const short = group({ id: 'short', need, count: 500 });
    const beside = offersOf({
      pools,
      groups: [group({ id: 'g', need }), short],
      runtime: ({ id }) => certain(seconds(id === 'short' ? 60 : 7200)),
    });
    expect(beside.offers[0]?.pool).toBe('m5.large/b/on-demand');
    const company = group({ id: 'long', need, count: 500 });
    const filled = offersOf({
      pools,
      groups: [group({ id: 'g', need }), company],
      runtime: () => certain(seconds(7200)),
    });
    const chosen = pools.find((v) => v.pool.id === filled.offers[0]?.pool)?.pool;
    expect([chosen?.type.name, chosen?.option]).toEqual(['m5.24xlarge', 'spot']);
    expect(filled.offers[0]?.newShare).toBeCloseTo(1 / 96, 2);
  });

  it('counts what each constraint excludes, resources, closed pools and pools without a price', () => {
    const pools = [
      view(pool({ type: 't4g.large', arch: 'arm64' }), 0.01),
      view(pool({ zone: 'x' }), 0.01),
      view(pool({ type: 'c4.large' }), 0.01),
      view(pool({ type: 'm5.medium', vcpus: 1 }), 0.01),
      view(pool({ zone: 'us-east-1b' }), null),
      view(pool({ zone: 'us-east-1c' }), 0.01, false),
      view(pool(), 0.03),
    ];
    const constraints = { arch: ['x86_64' as const], zones: ['us-east-1*'], minGeneration: 5 };
    const { excluded, offers } = offersOf({
      pools,
      groups: [group({ id: 'g', need: resources(2, 2), stage: { constraints } })],
    });
    expect(Object.fromEntries(excluded.map((e) => [e.constraint, e.pools]))).toEqual({
      arch: 1,
      zones: 1,
      minGeneration: 1,
      resources: 1,
      'no price': 1,
      closed: 1,
    });
    expect(new Set(offers.map((o) => o.pool))).toEqual(new Set([pool().id]));
  });

  it('has no offers where nothing fits, and says what excludes', () => {
    const { offers, excluded, considered } = offersOf({ groups: [group({ id: 'g', need: resources(64, 1) })] });
    expect(offers).toEqual([]);
    expect(considered).toEqual([]);
    expect(excluded).toEqual([{ constraint: 'resources', pools: 10 }]);
  });

  it('keeps a job of unknown running time, whose deadline must be met, off spot if an interruption loses work, and says so', () => {
    const groups = [group({ id: 'g', class: 'deadline' })];
    const blind = offersOf({ groups, basis: 'prior', worth: () => worth(20_000) }, { lateBudget: 0 });
    expect(blind.offers.every((o) => isBoughtAs(o.pool, 'on-demand'))).toBe(true);
    expect(blind.considered.find((c) => isSpotPool(c.pool))?.verdict).toContain('nothing is known of the running time');
    const weighed = offersOf({ groups, basis: 'prior', worth: () => worth(20_000) });
    expect(weighed.offers.some((o) => isSpotPool(o.pool))).toBe(true);
    const known = offersOf({ groups, basis: 'history', worth: () => worth(20_000) });
    expect(known.offers.some((o) => isSpotPool(o.pool))).toBe(true);
    const saves = [group({ id: 'g', class: 'deadline', stage: { checkpoint } })];
    const safe = offersOf({ groups: saves, basis: 'prior', worth: () => worth(20_000) });
    expect(safe.offers.some((o) => isSpotPool(o.pool))).toBe(true);
    const spotOnly = offersOf({ groups, basis: 'prior', worth: () => worth(20_000), pools: spots });
    expect(spotOnly.offers.length).toBeGreaterThan(0);
  });

  it('prefers on-demand when spot is too likely to be late, and the cheapest when all are', () => {
    const groups = [group({ id: 'g', class: 'deadline' })];
    const risky = market([...spots, ...onDemand], () => exponential(0.5));
    const tight = offersOf({ groups, market: risky, worth: () => worth(3800) });
    expect(tight.offers.every((o) => isBoughtAs(o.pool, 'on-demand'))).toBe(true);
    expect(tight.considered.some((c) => c.verdict.includes('late with probability'))).toBe(true);
    const hopeless = offersOf({ groups, market: risky, worth: () => worth(600) });
    expect(hopeless.offers[0]?.pLate).toBe(1);
    expect(isSpotPool(hopeless.offers[0]?.pool ?? pool().id)).toBe(true);
    expect(hopeless.considered[0]?.verdict).toContain('no offer is much safer; late with probability');
  });

  it('values a preferred pool as if it were cheaper, and keeps the true cost', () => {
    const preferences = [{ prefer: { zones: ['d'] }, weight: 0.5 }];
    const liked = offersOf({ groups: [group({ id: 'g', stage: { checkpoint, preferences } })] });
    const best = liked.offers[0];
    expect(best?.pool).toBe('m5.large/d/spot');
    expect(best?.preferenceUsd).toBeCloseTo(0.5 * (best?.expectedCostUsd ?? 0), 12);
    const plain = offersOf({ groups: [group({ id: 'g', stage: { checkpoint } })] });
    expect(plain.offers.find((o) => o.pool === best?.pool)?.expectedCostUsd).toBeCloseTo(
      best?.expectedCostUsd ?? 0,
      12,
    );
  });

  it('offers no spot that costs more than on-demand, and to work that may only use spot no bid beyond on-demand', () => {
    const dear = [view(pool({ zone: 'a' }), 0.11), view(pool({ zone: 'b' }), 0.03)];
    const spotOnly = offersOf({ groups: [group({ id: 'g' })], pools: dear });
    expect(new Set(spotOnly.offers.map((o) => o.pool))).toEqual(new Set(['m5.large/b/spot']));
    expect(spotOnly.excluded).toEqual([{ constraint: 'price above on-demand', pools: 1 }]);
    expect(spotOnly.offers.every((o) => o.bid !== 'uncapped' && Number(o.bid) <= 0.1)).toBe(true);
    const may = offersOf({ groups: [group({ id: 'g' })], pools: [...dear, ...onDemand] });
    expect(may.offers.some((o) => o.bid === 'uncapped' && o.pool === 'm5.large/b/spot')).toBe(true);
  });

  it('charges uncapped bids the mean price, which holds the spikes', () => {
    const pools = [view(pool({ zone: 'a' }), 0.03), ...onDemand];
    const base = market(pools, () => exponential(1e-6));
    const w = (meanPrice: number) =>
      offersOf({
        groups: [group({ id: 'g', need: resources(2, 1) })],
        pools,
        market: { ...base, meanPrice: () => usdPerHour(meanPrice) },
      });
    const uncapped = (usd: number) =>
      w(usd).offers.find((o) => o.bid === 'uncapped' && isSpotPool(o.pool))?.expectedCostUsd;
    expect(uncapped(0.2)).toBeCloseTo(0.2, 4);
    expect(uncapped(0.01)).toBeCloseTo(0.03, 4);
    expect(w(0.2).offers.find((o) => o.bid !== 'uncapped')?.expectedCostUsd).toBeCloseTo(0.03, 4);
  });

  it('looks past cheap pools that are lost at once for safer ones', () => {
    const many = Array.from({ length: 40 }, (_, i) => view(pool({ zone: `z${i}` }), 0.03 + i * 0.0005));
    const safe = many[35]?.pool.id;
    const curves = market(many, (p) => (p.id === safe ? exponential(0.001) : curve([[60, 1]])));
    const { offers } = offersOf({ groups: [group({ id: 'g' })], pools: [...many, ...onDemand], market: curves });
    expect(offers[0]?.pool).toBe(safe);
  });

  it('bounds what it remembers of the considered', () => {
    const many = Array.from({ length: 40 }, (_, i) => view(pool({ zone: `z${i}` }), 0.03 + i * 0.0005));
    const { considered } = offersOf({ groups: [group({ id: 'g' })], pools: [...many, ...onDemand] });
    expect(considered).toHaveLength(12);
    expect(considered.every((c) => c.verdict.length > 0)).toBe(true);
    expect(considered[0]?.verdict).toContain('best');
  });

  it('counts kept work and the time to read it', () => {
    const kept = (keptS: number) =>
      offersOf({
        groups: [group({ id: 'g', keptS: seconds(keptS), stage: { checkpoint } })],
        runtime: () => certain(seconds(3600)),
      }).offers.find((o) => o.pool === 'm5.large/b/on-demand');
    expect(raw(kept(0)?.expectedDurationS ?? seconds(NaN))).toBeCloseTo(3600, 9);
    expect(raw(kept(1800)?.expectedDurationS ?? seconds(NaN))).toBeCloseTo(1810, 9);
    const [again] = offersOf({
      groups: [group({ id: 'g', ranS: seconds(1000) })],
      runtime: () =>
        distribution([
          [600, 0.5],
          [3600, 0.5],
        ]),
    }).offers.filter((o) => o.pool === 'm5.large/b/on-demand');
    expect(raw(again?.expectedDurationS ?? seconds(NaN))).toBeCloseTo(3600, 9);
  });

  it('gives groups that are alike the same offers under their own names', () => {
    const w = world({ pools: [...spots, ...onDemand], groups: ['x', 'y'].map((id) => group({ id })) });
    const answer = appraise({ ...w, config: config() });
    const [x, y] = ['x', 'y'].map((id) => answer.get(groupId(id))?.offers ?? []);
    expect(y?.every((o) => o.group === 'y')).toBe(true);
    expect(y?.map((o) => ({ ...o, group: 'x' }))).toEqual(x);
  });
});

describe('what an interruption costs', () => {
  it.each([
    ['all without a checkpoint', null, Infinity],
    ['nothing when the signal fits into the warning', { ...checkpoint, everyS: seconds(600) }, 0],
    ['half a period when it does not', { ...checkpoint, graceS: seconds(300), everyS: seconds(600) }, 300],
    ['all when it does not and nothing is saved in between', { ...checkpoint, graceS: seconds(300) }, Infinity],
  ] as const)('%s', (_, given, expected) => {
    expect(lossOf({ checkpoint: given })).toBe(expected);
  });
});

describe('bids', () => {
  const deltas = { bidDeltas: [0.1, 0.0001, 0.01] };
  it('ascend from the market price over the on-demand price to none', () => {
    expect(bidsFor(pool({ onDemand: 0.1 }), 0.03, deltas)).toEqual([0.0301, 0.04, 0.1, 'uncapped']);
  });
  it('leave out the on-demand price where the market is above it', () => {
    expect(bidsFor(pool({ onDemand: 0.1 }), 0.3, deltas)).toEqual([0.3001, 0.31, 0.4, 'uncapped']);
  });
  it('are none on demand', () => {
    expect(bidsFor(pool({ option: 'on-demand' }), 0.1, deltas)).toEqual(['uncapped']);
  });
});

/** Offers, and what they were appraised from: held by nobody else. */
function appraisedOnce() {
  const w = world({ pools: [...spots, ...onDemand], groups: [group({ id: 'g' })] });
  const offers = appraise({ ...w, config: config() }).get(groupId('g'));
  return { offers, market: new WeakRef(w.forecasts.market) };
}

/** Collects what nothing holds; what was looked at by a weak reference is held until the turn is over. */
async function collected<T extends WeakKey>(of: WeakRef<T>): Promise<T | undefined> {
  await new Promise(setImmediate);
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return of.deref();
}

describe('what was appraised', () => {
  it('is kept until it is told what was considered, and then let go', async () => {
    const { offers, market } = appraisedOnce();
    expect(await collected(market)).toBeDefined();
    expect(offers?.considered).not.toHaveLength(0);
    expect(await collected(market)).toBeUndefined();
    expect(offers?.offers).not.toHaveLength(0);
  });
});
