import { expect, it } from '@jest/globals';
import { tick, tickAt } from '../../../../lib/drivers/aws/cycle/tick.ts';
import { raw } from '../../../../lib/kernel/units.ts';

const BY_CLOCK = { source: 'aws.events', 'detail-type': 'Scheduled Event', time: '2026-01-05T12:00:00Z' };
const NOON = Date.UTC(2026, 0, 5, 12);

it('what the clock sends says when, and nothing else does', () => {
  expect(tick.parse(BY_CLOCK).time).toBe(NOON);
  for (const time of [undefined, 'noon', NOON]) expect(tick.safeParse({ ...BY_CLOCK, time }).success).toBe(false);
});

it('is told in engine time, whatever this process takes the time to be', () => {
  expect(raw(tickAt(NOON, undefined))).toBe(NOON);
  expect(raw(tickAt(NOON, { wallMs: NOON - 1000, engineMs: 5, speed: 60 }))).toBe(60_005);
});
