import { describe, expect, it } from '@jest/globals';
import { usualStart, windowStarts } from '../../../../lib/cli/simulation/windows.ts';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';

const DAY = 86_400_000;
const span = (days: number) => ({ startMs: epochMs(0), endMs: epochMs(days * DAY) });

describe('where a workload begins that nobody gave a time', () => {
  it.each([
    [13, 0],
    [14, 7],
    [30, 7],
  ])('in a market of %i days: on day %i', (days, begin) =>
    expect(raw(usualStart(span(days), false))).toBe(begin * DAY),
  );

  it('in every generated market: at the same time, with more than a week of prices before it', () => {
    const generated = { startMs: epochMs(Date.UTC(2026, 0, 5)), endMs: epochMs(Date.UTC(2026, 0, 19)) };
    expect(raw(usualStart(generated, true))).toBe(Date.UTC(2026, 0, 14, 10, 40));
  });
});

describe('windows', () => {
  it('begin evenly from the first instant, none at the last', () => {
    expect(windowStarts(4, { fromMs: 100, toMs: 500 })).toEqual([100, 200, 300, 400]);
    expect(windowStarts(1, { fromMs: 100, toMs: 500 })).toEqual([100]);
  });

  it('have no room before their end', () => {
    expect(() => windowStarts(2, { fromMs: 500, toMs: 500 })).toThrow('no time to spread windows over');
  });
});
