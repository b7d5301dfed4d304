import { describe, expect, it } from '@jest/globals';
import { randomStream, type Uniform } from '../../../../lib/kernel/random.ts';
import { distribution, Doubles, type Distribution } from '../../../../lib/domain/distribution.ts';
import { NEVER_INTERRUPTED as NEVER } from '../../../../lib/domain/forecast.ts';
import { tabulate, type CurveTable } from '../../../../lib/stages/appraise/curve-table.ts';
import { outcomeBefore, unhurriedOutcome, type Outcome, type Terms } from '../../../../lib/stages/appraise/outcome.ts';
import { exponential } from '../../../support/decision-world.ts';

const outcomeOf = (runtime: Distribution, table: CurveTable, terms: Terms): Outcome =>
  outcomeBefore(unhurriedOutcome(runtime, table, terms), { runtime, table, terms });

/** A plain simulation of what the closed forms are the expectation of: draws, and nothing of the code's. */
interface Run {
  readonly usd: number;
  readonly lateS: number;
  readonly lostS: number;
  readonly durationS: number;
  readonly interrupted: boolean;
}

function simulate(random: Uniform, r: number, perHour: number, t: Terms): Run {
  const draw = (): number => (-Math.log(1 - random()) / perHour) * 3600;
  let left = r;
  let now = 0;
  let usd = 0;
  let lostS = 0;
  let interrupted = false;
  for (;;) {
    const end = draw();
    if (end >= left) return { usd: usd + t.rate * left, durationS: now + left, lateS: now + left, lostS, interrupted };
    const lost = Math.min(end, t.lossS);
    usd += end < t.freeBeforeS ? 0 : t.rate * end;
    lostS += lost;
    left = left - end + lost + t.restoreS;
    interrupted = true;
    if (t.fallbackRate !== null) {
      return {
        usd: usd + t.fallbackRate * (t.startMeanS + left),
        durationS: now + end + t.startMeanS + left,
        lateS: now + end + t.startMaxS + left,
        lostS,
        interrupted,
      };
    }
    usd += t.rate * t.startMeanS;
    now += end + t.startMeanS;
  }
}

function average(runtime: Distribution, perHour: number, t: Terms) {
  const random = randomStream(3, `outcome/${perHour}/${t.lossS}`);
  const n = 60_000;
  const sum = { usd: 0, late: 0, lostS: 0, durationS: 0, interrupted: 0 };
  for (let i = 0; i < n; i++) {
    let u = random();
    let k = 0;
    while (k < runtime.weight.length - 1 && u > (runtime.weight[k] ?? 0)) u -= runtime.weight[k++] ?? 0;
    const run = simulate(random, runtime.atS[k] ?? 0, perHour, t);
    sum.usd += run.usd / n;
    sum.lostS += run.lostS / n;
    sum.durationS += run.durationS / n;
    sum.interrupted += Number(run.interrupted) / n;
    sum.late += Number(t.startMaxS + run.lateS > (t.deadlineInS ?? Infinity)) / n;
  }
  return sum;
}

const runtime = distribution([
  [900, 0.3],
  [3000, 0.4],
  [9000, 0.3],
]);
const base: Terms = {
  rate: 0.03 / 3600,
  fallbackRate: 0.1 / 3600,
  lossS: Infinity,
  restoreS: 0,
  startMeanS: 95,
  startMaxS: 160,
  deadlineInS: 11_000,
  // The last safe start has passed: after an interruption the task flees.
  safeInS: -1,
  freeBeforeS: 3600,
};
const checkpointed = { lossS: 0, restoreS: 10 };
const saving = { lossS: 600, restoreS: 10 };

describe('outcome, against a simulation', () => {
  it.each([
    ['no checkpoint', 0.3, {}],
    ['no checkpoint, rarely interrupted, no refunds', 0.05, { freeBeforeS: 0 }],
    ['saved at the warning', 0.5, checkpointed],
    ['saves every twenty minutes', 0.5, saving],
    ['saved at the warning, tight deadline', 0.4, { ...checkpointed, deadlineInS: 9350 }],
    ['no checkpoint, tight deadline', 0.4, { deadlineInS: 9600 }],
  ] as const)('fleeing to on-demand: %s', (_, perHour, over) => {
    const terms = { ...base, ...over };
    const got = outcomeOf(runtime, tabulate(exponential(perHour), new Doubles()), terms);
    const want = average(runtime, perHour, terms);
    expect(got.pInterrupted).toBeCloseTo(want.interrupted, 2);
    expect(got.pLate).toBeCloseTo(want.late, 2);
    expect(Math.abs(got.costUsd / want.usd - 1)).toBeLessThan(0.02);
    expect(got.durationS / want.durationS).toBeCloseTo(1, 2);
    expect(Math.abs(got.lostS - want.lostS)).toBeLessThan(0.03 * want.lostS + 1);
  });

  it.each([
    ['no checkpoint', 0.2, {}],
    ['saved at the warning', 0.5, checkpointed],
    ['saves every twenty minutes', 0.5, saving],
    ['saved at the warning, no refunds', 1, { ...checkpointed, freeBeforeS: 0 }],
  ] as const)('trying again and again: %s', (_, perHour, over) => {
    const terms = { ...base, ...over, fallbackRate: null, deadlineInS: null, safeInS: null };
    const got = outcomeOf(runtime, tabulate(exponential(perHour), new Doubles()), terms);
    const want = average(runtime, perHour, terms);
    expect(Math.abs(got.costUsd / want.usd - 1)).toBeLessThan(0.04);
    expect(Math.abs(got.durationS / want.durationS - 1)).toBeLessThan(0.03);
    expect(Math.abs(got.lostS - want.lostS)).toBeLessThan(0.05 * want.lostS + 1);
  });
});

describe('lateness with nowhere to flee to', () => {
  it.each([
    ['no checkpoint', 0.3, {}],
    ['saved at the warning', 0.6, checkpointed],
    ['saves every twenty minutes', 0.6, saving],
  ] as const)('is bounded from above, and falls as the deadline moves away: %s', (_, perHour, over) => {
    let before = 1;
    for (const deadlineInS of [9400, 12_000, 20_000, 40_000]) {
      const terms = { ...base, ...over, fallbackRate: null, deadlineInS, safeInS: null };
      const got = outcomeOf(runtime, tabulate(exponential(perHour), new Doubles()), terms).pLate;
      const starting = { ...terms, startMeanS: terms.startMaxS };
      expect(got).toBeGreaterThan(average(runtime, perHour, starting).late - 0.01);
      expect(got).toBeLessThanOrEqual(before + 1e-12);
      before = got;
    }
    expect(before).toBeLessThan(0.2);
  });
});

describe('outcome, closed cases', () => {
  it('of capacity that stays is price times time, and late when the run itself is too long', () => {
    const got = outcomeOf(runtime, tabulate(NEVER, new Doubles()), { ...base, deadlineInS: 5000 });
    expect(got).toMatchObject({ pInterrupted: 0, lostS: 0 });
    expect(got.durationS).toBeCloseTo(0.3 * 900 + 0.4 * 3000 + 0.3 * 9000, 9);
    expect(got.costUsd).toBeCloseTo((got.durationS * 0.03) / 3600, 12);
    expect(got.pLate).toBeCloseTo(0.3, 12);
  });

  it('takes the cheaper of fleeing and trying again while it is safe', () => {
    const table = tabulate(exponential(0.3), new Doubles());
    const free = { ...base, safeInS: null };
    const either = outcomeOf(runtime, table, free).costUsd;
    const flee = outcomeOf(runtime, table, base).costUsd;
    const again = outcomeOf(runtime, table, { ...free, fallbackRate: null }).costUsd;
    expect(either).toBeLessThanOrEqual(Math.min(flee, again) + 1e-12);
    expect(outcomeOf(runtime, table, { ...free, fallbackRate: base.rate / 100 }).costUsd).toBeLessThan(again);
  });

  // Interrupted at its mean time E[T; T <= r] / F(r) it buys anew twice, each in the longest time, and has what is kept
  // by then.
  it.each([
    ['no checkpoint', {}],
    ['saved at the warning', checkpointed],
    ['saves every ten minutes', saving],
  ] as const)('tries again only while the last safe start leaves time for it: %s', (_, over) => {
    const perS = 0.3 / 3600;
    const r = 3000;
    const meanS = 1 / perS - (r * Math.exp(-perS * r)) / (1 - Math.exp(-perS * r));
    const terms: Terms = { ...base, ...over, fallbackRate: 1 / 3600, deadlineInS: null };
    const neededS = 2 * terms.startMaxS + Math.min(meanS, terms.lossS);
    const usd = (safeInS: number | null): number =>
      outcomeOf(distribution([[r, 1]]), tabulate(exponential(0.3), new Doubles()), { ...terms, safeInS }).costUsd;
    expect(usd(null)).toBeLessThan(usd(-1));
    expect(usd(neededS + 20)).toBe(usd(null));
    expect(usd(neededS - 20)).toBe(usd(-1));
  });

  it('costs infinitely much where it never ends and there is nowhere to go', () => {
    const certain = tabulate(
      { horizonS: Float64Array.of(60), pInterrupted: Float64Array.of(1), reason: '' },
      new Doubles(),
    );
    const got = outcomeOf(runtime, certain, { ...base, fallbackRate: null });
    expect(got).toMatchObject({ costUsd: Infinity, pLate: 1, pInterrupted: 1 });
    expect(Number.isFinite(outcomeOf(runtime, certain, base).costUsd)).toBe(true);
  });

  it('is cheaper with refunds, and free tries make a low bid worth it with a checkpoint', () => {
    const table = tabulate(exponential(3), new Doubles());
    const terms = { ...base, ...checkpointed, safeInS: null, deadlineInS: null };
    const refunded = outcomeOf(runtime, table, terms).costUsd;
    const charged = outcomeOf(runtime, table, { ...terms, freeBeforeS: 0 }).costUsd;
    const calm = outcomeOf(runtime, tabulate(NEVER, new Doubles()), terms).costUsd;
    expect(refunded).toBeLessThan(charged);
    expect(refunded).toBeLessThan(calm);
  });
});
