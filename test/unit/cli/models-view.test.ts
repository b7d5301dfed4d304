import { describe, expect, it } from '@jest/globals';
import { judgementText } from '../../../lib/cli/views/model-views.ts';
import type { Judgement } from '../../../lib/drivers/local/models/judging.ts';
import { PLAIN } from '../../support/run-ebb.ts';

function judgedOn(days: number): Judgement {
  const figure = { value: 0.25, low: 0.125, high: 0.375 };
  const [accuracy, f1, aucPr, brier, ece] = [figure, figure, figure, figure, figure];
  return {
    record: {
      format: 1,
      horizonS: 3600,
      from: '2026-01-06T00:00:00Z',
      to: '2026-01-16T00:00:00Z',
      markets: ['m'],
      bids: 100,
      days,
      lostShare: 0.25,
      forecasts: [{ name: 'mine', accuracy, f1, aucPr, brier, ece }],
    },
    differences: [
      { than: 'history', difference: { ...figure, horizonsS: [3600], bids: 100, days, verdict: 'undecided' } },
    ],
  };
}

describe('figures of a version', () => {
  it('have intervals where there are days to draw them from', () => {
    const text = judgementText(PLAIN, judgedOn(7));
    expect(text).toContain('95 % intervals by days');
    expect(text).toContain('0.250 [0.125, 0.375]');
    expect(text).toContain('Brier +0.2500 [+0.1250, +0.3750]');
  });

  it('have none where there are not', () => {
    const text = judgementText(PLAIN, judgedOn(6));
    expect(text).toContain('fewer than 7 days, so no intervals');
    expect(text).toMatch(/Brier \+0\.2500 \(100 bids, 6 days/);
    expect(text).not.toContain('[');
  });
});
