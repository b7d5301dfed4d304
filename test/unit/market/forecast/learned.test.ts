import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import { pInterruptedWithin, type LossModel } from '../../../../lib/domain/forecast.ts';
import { MarketForecaster } from '../../../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence, survivesCapacity } from '../../../../lib/market/forecast/hazard.ts';
import { LearnedLosses, type Question } from '../../../../lib/market/forecast/learned.ts';
import { HORIZONS_S } from '../../../../lib/market/forecast/survival.ts';
import { FEATURES, FEATURE_WIDTH } from '../../../../lib/market/features/names.ts';
import { pool } from '../../../support/decision-world.ts';

const HOUR = 3_600_000;
const T0 = 472_000 * HOUR;
const spot = pool({ onDemand: 0.1 });
/** A price per hour, 0.03 and 0.05 in turns, for eight days. */
const atMs = Float64Array.from({ length: 192 }, (_, h) => T0 + h * HOUR);
const usd = Float64Array.from(atMs, (_, h) => (h % 2 === 0 ? 0.03 : 0.05));
const END = T0 + 191 * HOUR + 600_000;

const history: Question['history'] = (_, from, to) => {
  const low = Math.max(
    0,
    atMs.findLastIndex((t) => t <= raw(from)),
  );
  const high = atMs.findLastIndex((t) => t < raw(to)) + 1;
  return { atMs: atMs.slice(low, high), usdPerHour: usd.slice(low, high) };
};

/** Loses bids at 1 and 3 hours with a chance that halves with each cent of delta; keeps what it was asked. */
function halving(): LossModel & { readonly asked: Float32Array[] } {
  const asked: Float32Array[] = [];
  return {
    asked,
    version: 'v7',
    horizonsS: [3600, 10_800],
    run: async (rows) => {
      asked.push(rows);
      const delta = FEATURES.indexOf('bidDeltaUsd');
      const values = Array.from({ length: rows.length / FEATURE_WIDTH }, (_, r) => {
        const p = 0.5 * 0.5 ** ((rows[r * FEATURE_WIDTH + delta] ?? NaN) * 100);
        return [p, 1 - (1 - p) ** 3];
      });
      return { kind: 'values', values: Float32Array.from(values.flat()) };
    },
  };
}
const bids = [0.06, 0.07].map(usdPerHour);
const question = (nowMs: number, more: Partial<Question> = {}): Question => ({
  now: epochMs(nowMs),
  pools: [spot],
  asked: bids.map((bid) => ({ pool: spot, bid })),
  history,
  ...more,
});

describe('price losses by a model', () => {
  it('are asked for in one batch, with the features of each bid', async () => {
    const model = halving();
    await new LearnedLosses(model).losses(question(END));
    expect(model.asked).toHaveLength(1);
    const [rows] = model.asked;
    const of = (row: number, name: string): number => rows?.[row * FEATURE_WIDTH + FEATURES.indexOf(name)] ?? NaN;
    expect(of(0, 'priceUsd')).toBeCloseTo(0.05, 6);
    expect(of(0, 'bidDeltaUsd')).toBeCloseTo(0.01, 6);
    expect(of(1, 'bidDeltaUsd')).toBeCloseTo(0.02, 6);
    expect(of(0, 'changes24hLog')).toBeCloseTo(Math.log(25), 6);
    expect(of(0, 'sinceChangeSLog')).toBeCloseTo(Math.log(601), 6);
  });

  it('are curves of constant hazard between the horizons of the model and beyond', async () => {
    const losses = await new LearnedLosses(halving()).losses(question(END));
    const found = losses(spot, bids[0] ?? 'uncapped');
    if (found?.kind !== 'curve') throw new Error(JSON.stringify(found));
    // 0.25 in an hour at a constant hazard, whatever the horizon.
    HORIZONS_S.forEach((h, i) => expect(found.p[i]).toBeCloseTo(1 - 0.75 ** (h / 3600), 5));
  });

  it('take what is new from cycle to cycle, and begin anew when the clock goes back', async () => {
    const model = halving();
    const learned = new LearnedLosses(model);
    for (const now of [END - 5 * HOUR, END - 2 * HOUR, END, END - 30 * HOUR]) await learned.losses(question(now));
    const fresh = halving();
    for (const now of [END - 5 * HOUR, END - 2 * HOUR, END, END - 30 * HOUR]) {
      await new LearnedLosses(fresh).losses(question(now));
    }
    model.asked.forEach((rows, i) => {
      rows.forEach((value, at) => expect(value).toBeCloseTo(fresh.asked[i]?.[at] ?? NaN, 5));
    });
  });

  it.each([
    ['a price gap', question(END + 40 * HOUR), /last reported 40 h ago/],
    [
      'no price',
      question(T0 - HOUR, { history: () => ({ atMs: new Float64Array(), usdPerHour: new Float64Array() }) }),
      /no price yet/,
    ],
    ['an unknown pool', question(END, { pools: [] }), /does not know the pool/],
  ])('name %s', async (_what, asked, why) => {
    const model = halving();
    const losses = await new LearnedLosses(model).losses(asked);
    expect(losses(spot, bids[0] ?? 'uncapped')).toEqual({ kind: 'none', why: expect.stringMatching(why) });
    expect(model.asked).toEqual([]);
  });

  it('are none where one number of the batch is none', async () => {
    const broken: LossModel = { ...halving(), run: async () => ({ kind: 'not-finite', row: 1 }) };
    const losses = await new LearnedLosses(broken).losses(question(END));
    for (const bid of bids) expect(losses(spot, bid)).toEqual({ kind: 'none', why: expect.stringContaining('v7') });
  });

  it('are nothing for bids that were not asked about, are uncapped, or are passed already', async () => {
    const asked = [0.04, 0.06].map((bid) => ({ pool: spot, bid: usdPerHour(bid) }));
    const losses = await new LearnedLosses(halving()).losses(
      question(END, { asked: [...asked, { pool: spot, bid: 'uncapped' }] }),
    );
    for (const bid of [usdPerHour(0.09), usdPerHour(0.04), 'uncapped' as const]) expect(losses(spot, bid)).toBe(null);
    expect(losses(spot, usdPerHour(0.06))?.kind).toBe('curve');
  });
});

describe('price losses, when prices are not as they should be', () => {
  /** History of which the entry at an instant is another, or comes later than the rest. */
  const historyOf = (at: readonly number[], prices: readonly number[]): Question['history'] => {
    const [times, values] = [Float64Array.from(at), Float64Array.from(prices)];
    return (_, from, to) => {
      const low = Math.max(
        0,
        times.findLastIndex((t) => t <= raw(from)),
      );
      const high = times.findLastIndex((t) => t < raw(to)) + 1;
      return { atMs: times.slice(low, high), usdPerHour: values.slice(low, high) };
    };
  };

  it('take a price that was published late as if it had come in time', async () => {
    const now = END + 3 * HOUR;
    const lateMs = END + 0.5 * HOUR;
    const inTime = historyOf([...atMs, lateMs, END + HOUR], [...usd, 0.04, 0.045]);
    const late = historyOf([...atMs, END + HOUR], [...usd, 0.045]);
    const [streamed, whole] = [halving(), halving()];
    const learned = new LearnedLosses(streamed);
    await learned.losses(question(END + 0.75 * HOUR, { history: late }));
    await learned.losses(question(now, { history: inTime }));
    await new LearnedLosses(whole).losses(question(now, { history: inTime }));
    const [rows, expected] = [streamed.asked.at(-1), whole.asked[0]];
    expect(rows?.length).toBe(2 * FEATURE_WIDTH);
    rows?.forEach((value, i) => expect(value).toBeCloseTo(expected?.[i] ?? NaN, 5));
  });

  it.each([
    ['zero', 0, /last price is zero/],
    ['NaN', NaN, /last price is no number/],
  ])('are none for a pool whose last price is %s, until it has one again', async (_what, bad, why) => {
    const badMs = END + HOUR;
    const learned = new LearnedLosses(halving());
    const broken = historyOf([...atMs, badMs], [...usd, bad]);
    const while_ = await learned.losses(question(badMs + 60_000, { history: broken }));
    expect(while_(spot, bids[0] ?? 'uncapped')).toEqual({ kind: 'none', why: expect.stringMatching(why) });
    const mended = historyOf([...atMs, badMs, badMs + HOUR], [...usd, bad, 0.05]);
    const after = await learned.losses(question(badMs + HOUR, { history: mended }));
    expect(after(spot, bids[0] ?? 'uncapped')?.kind).toBe('curve');
  });

  it('are answered through a silence where prices are known to be complete', async () => {
    const now = END + 40 * HOUR;
    const learned = new LearnedLosses(halving());
    const asked = question(now, { completeUntil: epochMs(now - HOUR) });
    expect((await learned.losses(asked))(spot, bids[0] ?? 'uncapped')?.kind).toBe('curve');
    const since = await learned.losses(question(now + 36 * HOUR, { completeUntil: epochMs(now - HOUR) }));
    expect(since(spot, bids[0] ?? 'uncapped')).toEqual({ kind: 'none', why: expect.stringContaining('37 h ago') });
  });

  it.each([
    ['more than one', { kind: 'values', values: Float64Array.of(0.1, 0.2, 0.3, 1.5) }, /no probabilities/],
    ['what cannot be run', { kind: 'failed', what: 'out of memory' }, /cannot be run: out of memory/],
  ])('are none from a model that gives %s', async (_what, answer, why) => {
    const values = 'values' in answer ? { ...answer, values: Float32Array.from(answer.values) } : answer;
    const broken: LossModel = { ...halving(), run: async () => values as Awaited<ReturnType<LossModel['run']>> };
    const losses = await new LearnedLosses(broken).losses(question(END));
    for (const bid of bids) expect(losses(spot, bid)).toEqual({ kind: 'none', why: expect.stringMatching(why) });
  });
});

describe('the market forecast with a model', () => {
  const config = { priceHistoryS: 7 * 86_400, hazardPriorPerHour: 0.03, hazardPriorHours: 20 };
  const none = new CapacityEvidence();
  const hour = seconds(3600);

  it('joins its price losses with those of capacity, and says which version spoke', async () => {
    const losses = await new LearnedLosses(halving()).losses(question(END));
    const market = new MarketForecaster({ config, history }).at(epochMs(END), none, { losses });
    const curve = market.interruption(spot, bids[0] ?? 'uncapped');
    const survives = survivesCapacity(none.posterior(spot.id, config), hour);
    expect(pInterruptedWithin(curve, hour)).toBeCloseTo(1 - survives * 0.75, 5);
    expect(curve.reason).toContain('by the model v7');
    expect(curve.reason).toContain('capacity:');
  });

  it('answers from history where the model does not, and says why', async () => {
    const losses = await new LearnedLosses(halving()).losses(question(END + 40 * HOUR));
    const [with_, without] = [losses, null].map((by) =>
      new MarketForecaster({ config, history })
        .at(epochMs(END + 40 * HOUR), none, { losses: by })
        .interruption(spot, usdPerHour(0.06)),
    );
    expect([...(with_?.pInterrupted ?? [])]).toEqual([...(without?.pInterrupted ?? [])]);
    expect(with_?.reason).toContain('not by the model: the price was last reported 40 h ago');
  });
});
