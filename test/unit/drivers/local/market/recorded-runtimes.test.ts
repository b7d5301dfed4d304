import { describe, expect, it } from '@jest/globals';
import { epochMs, seconds } from '../../../../../lib/kernel/units.ts';
import { stageRuntimes } from '../../../../../lib/drivers/local/engine/recorded-runtimes.ts';
import { attempt, stage } from '../../../../support/builders.ts';

type Over = Parameters<typeof attempt>[0];
const ran = (index: number, s: number, outcome: NonNullable<Over>['outcome'], more: Over = {}) =>
  attempt({ index, outcome: outcome ?? null, endedMs: epochMs(s * 1000), ...more });
const UNTIL = epochMs(1_000_000);
const five = stage({ tasks: 5, expectedRuntimeS: seconds(120) });

describe('running times of a record', () => {
  it('are those of the attempts that succeeded, from the beginning of the work', () => {
    const { runtimeS, guessed } = stageRuntimes(
      stage({ tasks: 2 }),
      [
        ran(0, 40, 'interrupted'),
        ran(0, 50, 'succeeded', { number: 2, resumedFromS: seconds(30) }),
        ran(1, 7, 'succeeded'),
      ],
      UNTIL,
    );
    expect([...runtimeS]).toEqual([80, 7]);
    expect(guessed).toBe(0);
  });

  it('are guessed of tasks that never finished: what is usual, and no less than they had run', () => {
    const known = stageRuntimes(
      five,
      [
        ran(0, 30, 'succeeded'),
        ran(1, 10, 'interrupted'),
        ran(2, 300, 'cancelled'),
        ran(3, 90, 'timed-out'),
        // Still running.
        attempt({ index: 4, startedMs: epochMs(400_000) }),
      ],
      UNTIL,
    );
    expect([...known.runtimeS]).toEqual([30, 30, 300, 91, 600]);
    expect(known.guessed).toBe(4);
    expect([...stageRuntimes(five, [], UNTIL).runtimeS]).toEqual([120, 120, 120, 120, 120]);
  });

  it('of tasks that failed to the last are those of their tries', () => {
    const { runtimeS, failures } = stageRuntimes(
      stage({ expectedRuntimeS: seconds(3600) }),
      [ran(0, 60, 'failed'), ran(0, 62, 'failed', { number: 2 })],
      UNTIL,
    );
    expect([...runtimeS]).toEqual([62]);
    expect([...failures]).toEqual([2]);
  });
});
