import { describe, expect, it } from '@jest/globals';
import { nextDecisionS } from '../../../lib/cycle/decide/next-decision.ts';
import type { Snapshot } from '../../../lib/domain/snapshot.ts';
import { plus, seconds } from '../../../lib/kernel/units.ts';
import { instance, NOW, pool } from '../../support/decision-world.ts';

const RULES = { billing: 'per-second', refundRule: 'first-hour' } as const;

/** With a spot instance of this age, and a pause that ends so much later. */
function dueS(cyclePeriodS: number, ageS: number, over: { readonly pauseS?: number; readonly rules?: object } = {}) {
  const { pauseS, rules = {} } = over;
  const view = instance('i-1', pool({ option: 'spot' }), { launchedMs: plus(NOW, seconds(-ageS)) });
  const blocked = pauseS === undefined ? [] : [{ untilMs: plus(NOW, seconds(pauseS)) }];
  const snapshot = { nowMs: NOW, blocked, instances: new Map([['i-1', view]]) } as unknown as Snapshot;
  return Number(nextDecisionS(snapshot, { ...RULES, ...rules, cyclePeriodS }));
}

describe('the next decision', () => {
  it.each<[string, number, number]>([
    ['after the period of the cycle, where a window ends later', dueS(600, 600), 600],
    ['a minute before the end of a window', dueS(600, 3300), 240],
    ['after the period again in the last minute of a window', dueS(600, 3550), 600],
    ['after the period where a decision in the last minute comes anyway', dueS(60, 3490), 60],
    ['after a pause that ends sooner', dueS(600, 3300, { pauseS: 20 }), 20],
    ['after the period where nothing is refunded', dueS(600, 3300, { rules: { refundRule: 'none' } }), 600],
    ['before the end of each hour that is paid in full', dueS(600, 6900, { rules: { billing: 'per-hour' } }), 240],
  ])('is due %s', (_, due, expected) => {
    expect(due).toBeCloseTo(expected, 6);
  });
});
