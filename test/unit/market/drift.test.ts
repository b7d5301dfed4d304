import { describe, expect, it } from '@jest/globals';
import { poolId } from '../../../lib/kernel/ids.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import { driftOf, expectedInterruptions } from '../../../lib/market/forecast/drift.ts';
import { rateInterval } from '../../../lib/market/forecast/rate-interval.ts';

const HOUR = 3_600_000;
const NOW = epochMs(1000 * HOUR);
const A = poolId('m5.large/us-east-1a/spot');
const ANY = { risk: 'any', by: null } as const;
const B = poolId('c5.large/us-east-1a/spot');

/** Held for so many hours, bought by a forecast of a constant hazard per hour. */
function held(hours: number, hazard: number, of: Partial<Instance> = {}) {
  const horizonS = [3600, 7200, 86_400];
  const pInterrupted = horizonS.map((s) => 1 - Math.exp((-hazard * s) / 3600));
  return {
    pool: A,
    launchedMs: epochMs(0),
    endedMs: epochMs(hours * HOUR),
    endCause: 'released' as const,
    forecast: { by: 'v1', horizonS, pInterrupted },
    ...of,
  };
}

describe('the interval of a rate', () => {
  // Tables of Garwood 1936, as in Ulm, American Journal of Epidemiology 131, 1990.
  it.each([
    [0, 0, 3.689],
    [1, 0.025, 5.572],
    [5, 1.623, 11.668],
    [10, 4.795, 18.39],
    [50, 37.111, 65.919],
    [100, 81.364, 121.627],
  ])('of %i that came one by one is that of the tables', (count, low, high) => {
    const found = rateInterval(new Array<number>(count).fill(1));
    expect(found.low).toBeCloseTo(low, 2);
    expect(found.high).toBeCloseTo(high, 2);
  });

  it('of events that each take ten is that of ten times as few, tenfold', () => {
    const [ten, one] = [rateInterval([10, 10, 10]), rateInterval([1, 1, 1])];
    expect(ten.low).toBeCloseTo(10 * one.low, 6);
    expect(ten.high).toBeCloseTo(10 * one.high, 6);
  });
});

describe('drift', () => {
  it('expects of an instance the hazard over the time for which it was held', () => {
    expect(expectedInterruptions(held(1, 0.3), NOW, ANY)).toBeCloseTo(0.3, 6);
    expect(expectedInterruptions(held(2, 0.3), NOW, ANY)).toBeCloseTo(0.6, 6);
    // Beyond the last horizon the hazard goes on; one that runs is watched until now.
    expect(expectedInterruptions(held(100, 0.01), NOW, ANY)).toBeCloseTo(1, 6);
    expect(expectedInterruptions(held(1, 0.001, { endedMs: null, endCause: null }), NOW, ANY)).toBeCloseTo(1, 6);
    expect(expectedInterruptions({ ...held(1, 0.3), launchedMs: null }, NOW, ANY)).toBe(null);
  });

  it('is told per pool and of all, by version or of any', () => {
    const { forecast: _, ...unforecast } = held(5, 1);
    const list = [
      held(1, 0.5, { endCause: 'interrupted' }),
      held(2, 0.5),
      held(1, 0.25, { pool: B, endCause: 'lost' }),
      held(1, 2, { forecast: { by: 'history', horizonS: [3600], pInterrupted: [1 - Math.exp(-2)] } }),
      unforecast,
    ];
    const { overall, pools } = driftOf(list, NOW, { risk: 'any', by: 'v1' });
    expect(overall).toMatchObject({ instances: 3, hours: 4, observed: 1 });
    expect(overall.expected).toBeCloseTo(1.75, 6);
    expect(overall.ratio?.value).toBeCloseTo(1 / 1.75, 6);
    expect(overall.ratio?.high).toBeCloseTo(5.572 / 1.75, 2);
    expect(pools.map(({ pool, drift }) => [pool, drift.instances, drift.observed])).toEqual([
      [A, 2, 1],
      [B, 1, 0],
    ]);
    expect(driftOf(list, NOW, ANY).overall.instances).toBe(4);
    expect(driftOf([], NOW, ANY)).toMatchObject({ overall: { instances: 0, ratio: null }, pools: [] });
  });

  it('of capacity alone holds its own hazard against interruptions for want of it', () => {
    const kept = (by: string, hazard: number) => {
      const { horizonS, pInterrupted } = held(1, 5).forecast;
      return {
        by: 'v1',
        horizonS,
        pInterrupted,
        capacity: { by, pInterrupted: held(1, hazard).forecast.pInterrupted },
      };
    };
    const list = [
      held(1, 5, { forecast: kept('c1', 0.5), endCause: 'interrupted', marketCause: 'capacity' }),
      held(2, 5, { forecast: kept('c1', 0.25), endCause: 'interrupted', marketCause: 'price' }),
      held(1, 5, { forecast: kept('observed', 0.125) }),
      // One of a version that kept nothing of capacity, and a launch that was refused.
      held(1, 5, { endCause: 'interrupted' }),
      held(1, 5, { forecast: kept('c1', 1), launchedMs: null, endCause: 'failed', marketCause: 'capacity' }),
    ];
    const { overall } = driftOf(list, NOW, { risk: 'capacity', by: null });
    expect(overall).toMatchObject({ instances: 3, hours: 4, observed: 1 });
    expect(overall.expected).toBeCloseTo(1.125, 6);
    expect(driftOf(list, NOW, { risk: 'capacity', by: 'c1' }).overall.expected).toBeCloseTo(1, 6);
    expect(driftOf(list, NOW, { risk: 'capacity', by: 'v1' }).overall.instances).toBe(0);
    expect(driftOf(list, NOW, { risk: 'any', by: 'v1' }).overall).toMatchObject({ instances: 4, observed: 3 });
  });

  it('is none where instances are lost as forecast, some released before, and is seen where they are lost twice as often', () => {
    const random = randomStream(1, 'test/drift');
    const hazard = 0.2;
    const lives = (rate: number) =>
      Array.from({ length: 2000 }, (_, i) => {
        const [lost, released] = [-Math.log(1 - random()) / rate, 8 * random()];
        const [hours, endCause] = [Math.min(lost, released), lost < released ? 'interrupted' : 'released'] as const;
        return held(hours, hazard, {
          endCause,
          launchedMs: epochMs(i * HOUR),
          endedMs: epochMs((i + hours) * HOUR),
        });
      });
    const right = driftOf(lives(hazard), NOW, ANY).overall.ratio;
    expect(right?.low).toBeLessThan(1);
    expect(right?.high).toBeGreaterThan(1);
    const wrong = driftOf(lives(2 * hazard), NOW, ANY).overall.ratio;
    expect(wrong?.low).toBeGreaterThan(1.8);
    expect(wrong?.high).toBeLessThan(2.2);
  });

  it('is not seen where pools are lost as forecast, with all that is held of them', () => {
    const random = randomStream(2, 'test/drift-at-once');
    const [HAZARD, PER_POOL, POOLS, TRIES] = [0.1, 8, 20, 300];
    const holds = Array.from({ length: TRIES }, () => {
      const list = Array.from({ length: POOLS }, (_, k) => {
        const lost = -Math.log(1 - random()) / HAZARD;
        const pool = poolId(`m5.large/zone-${k}/spot`);
        const life = held(Math.min(lost, 10), HAZARD, { pool, endCause: lost < 10 ? 'interrupted' : 'released' });
        return new Array<typeof life>(PER_POOL).fill(life);
      });
      const { ratio } = driftOf(list.flat(), NOW, ANY).overall;
      return ratio !== null && ratio.low <= 1 && ratio.high >= 1;
    });
    // By instances, each for itself, it would be seen in every second try.
    expect(holds.filter(Boolean).length / TRIES).toBeGreaterThan(0.93);
  });
});
