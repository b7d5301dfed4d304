import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { epochMs, raw, usdPerHour } from '../../../lib/kernel/units.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { billOf, type BillingRules } from '../../../lib/market/billing.ts';
import { tinyTrace } from '../../unit/market/traces.ts';

const SPOT = poolKey('m5.large', 'us-east-1a', 'spot');
const ON_DEMAND = poolKey('m5.large', 'us-east-1a', 'on-demand');
const T0 = 1_700_000_000_000;

/** Steps at whole seconds, so that a walk second by second is exact. */
const scenario = fc.record({
  steps: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 15_000 }), fc.integer({ min: 1, max: 5000 })), {
    minLength: 1,
    maxLength: 12,
    selector: ([s]) => s,
  }),
  launchS: fc.integer({ min: 0, max: 4000 }),
  lengthS: fc.oneof(
    fc.integer({ min: 1, max: 130 }),
    fc.integer({ min: 3500, max: 3700 }),
    fc.integer({ min: 1, max: 12_000 }),
  ),
  bidUsd: fc.option(fc.integer({ min: 1, max: 5000 }).map((tenthsOfMills) => tenthsOfMills / 10_000)),
  takenByMarket: fc.boolean(),
  billing: fc.constantFrom('per-second' as const, 'per-hour' as const),
  refundRule: fc.constantFrom('first-hour' as const, 'none' as const),
});
type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never;

/** The rules read aloud, one second at a time. */
function naive(s: Scenario, usdAt: (second: number) => number): number {
  if (s.refundRule === 'first-hour' && s.takenByMarket && s.lengthS < 3600) return 0;
  let total = 0;
  const charged = s.billing === 'per-hour' ? Math.ceil(s.lengthS / 3600) * 3600 : Math.max(60, s.lengthS);
  for (let k = 0; k < charged; k++) {
    const ran = s.launchS + k;
    // A per-second bill holds the last price through the rest of the minimum; a per-hour one the hour's first price.
    const priced =
      s.billing === 'per-hour' ? s.launchS + Math.floor(k / 3600) * 3600 : Math.min(ran, s.launchS + s.lengthS - 1);
    total += Math.min(usdAt(priced), s.bidUsd ?? Infinity) / 3600;
  }
  return total;
}

const traceOfScenario = (s: Scenario) =>
  tinyTrace({
    prices: [...s.steps]
      .sort((a, b) => a[0] - b[0])
      .map(([second, tenthsOfMills]) => [T0 + second * 1000, tenthsOfMills / 10_000] as const),
    endMs: T0 + 20_000_000,
  });

const usdAt = (s: Scenario) => {
  const sorted = [...s.steps].sort((a, b) => a[0] - b[0]);
  return (second: number): number => (sorted.filter(([at]) => at <= second).at(-1) ?? sorted[0] ?? [0, 0])[1] / 10_000;
};
const use = (s: Scenario) => ({
  launchedMs: epochMs(T0 + s.launchS * 1000),
  untilMs: epochMs(T0 + (s.launchS + s.lengthS) * 1000),
  bid: s.bidUsd === null ? ('uncapped' as const) : usdPerHour(s.bidUsd),
  takenByMarket: s.takenByMarket,
});

describe('billing', () => {
  it('agrees with a bill made second by second', () => {
    fc.assert(
      fc.property(scenario, (s) => {
        const bill = billOf(traceOfScenario(s), SPOT, use(s), s);
        expect(raw(bill.totalUsd)).toBeCloseTo(naive(s, usdAt(s)), 9);
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  it('tiles the run with pieces that sum exactly to the total', () => {
    fc.assert(
      fc.property(scenario, (s) => {
        const { pieces, totalUsd } = billOf(traceOfScenario(s), SPOT, use(s), s);
        expect(pieces.reduce((sum, p) => sum + p.usd, 0)).toBe(raw(totalUsd));
        expect(raw(pieces[0]?.fromMs ?? epochMs(NaN))).toBe(raw(use(s).launchedMs));
        expect(raw(pieces.at(-1)?.toMs ?? epochMs(NaN))).toBe(raw(use(s).untilMs));
        pieces.forEach((p, i) => {
          expect(raw(p.toMs)).toBeGreaterThan(raw(p.fromMs));
          if (i > 0) expect(raw(p.fromMs)).toBe(raw(pieces[i - 1]?.toMs ?? epochMs(NaN)));
        });
      }),
      { seed: 12, numRuns: 300 },
    );
  });

  it('states what on-demand would have charged for the same time', () => {
    fc.assert(
      fc.property(scenario, (s) => {
        const bill = billOf(traceOfScenario(s), SPOT, use(s), s);
        const onDemand = billOf(traceOfScenario(s), ON_DEMAND, { ...use(s), bid: 'uncapped' }, s);
        expect(bill.pieces.reduce((sum, p) => sum + p.onDemandUsd, 0)).toBeCloseTo(raw(onDemand.totalUsd), 9);
        // Refunds are for spot only.
        expect(raw(onDemand.totalUsd)).toBeGreaterThan(0);
      }),
      { seed: 13, numRuns: 200 },
    );
  });

  const rules: BillingRules = { billing: 'per-second', refundRule: 'first-hour' };
  const flat = tinyTrace({ prices: [[T0, 0.036]], endMs: T0 + 1e8 });
  const total = (lengthMs: number, takenByMarket: boolean): number =>
    raw(
      billOf(
        flat,
        SPOT,
        { launchedMs: epochMs(T0), untilMs: epochMs(T0 + lengthMs), bid: 'uncapped', takenByMarket },
        rules,
      ).totalUsd,
    );

  it('refunds what the market takes within the first hour, not at its end', () => {
    expect(total(3_599_999, true)).toBe(0);
    expect(total(3_600_000, true)).toBeCloseTo(0.036, 12);
    expect(total(3_599_000, false)).toBeCloseTo(0.03599, 12);
  });

  it('charges a minute at least, and nothing for no time', () => {
    expect(total(1000, false)).toBeCloseTo(0.0006, 12);
    expect(
      billOf(
        flat,
        SPOT,
        { launchedMs: epochMs(T0), untilMs: epochMs(T0), bid: 'uncapped', takenByMarket: false },
        rules,
      ),
    ).toEqual({
      totalUsd: 0,
      pieces: [],
    });
  });
});
