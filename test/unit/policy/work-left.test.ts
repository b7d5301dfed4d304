import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { RunningTask, Snapshot } from '../../../lib/domain/snapshot.ts';
import { epochMs, seconds } from '../../../lib/kernel/units.ts';
import { hasSettled, relocationS } from '../../../lib/policy/work-left.ts';

const config = schedulerConfig.parse({});
const HOUR_S = 3600;

/** An attempt that has run for so long, of a task whose stops by the scheduler have lost so much. */
function settled(number: number, ranS: number | null, lostS = 0): boolean {
  const nowMs = epochMs(1_800_000_000_000);
  const startedMs = ranS === null ? null : epochMs(1_800_000_000_000 - 1000 * ranS);
  const attempt = { number, startedMs } as RunningTask['attempt'];
  const running = { attempt, ownStops: { count: number - 1, lostS: seconds(lostS) } };
  return hasSettled(running, { snapshot: { nowMs } as Snapshot, config });
}

describe('a task that was stopped before', () => {
  it('stays for as long as a relocation takes', () => {
    const least = relocationS(config);
    expect([settled(2, null), settled(2, least - 1), settled(2, least)]).toEqual([false, false, true]);
  });

  it('stays for as long as the work that its stops have lost', () => {
    expect([settled(3, HOUR_S - 1, HOUR_S), settled(3, HOUR_S, HOUR_S)]).toEqual([false, true]);
  });

  it('loses less than twice its running time, however often others want its place', () => {
    const runtimeS = 5 * HOUR_S;
    let lostS = 0;
    let stops = 0;
    // The worst case: it is stopped as soon as it may be.
    for (let ranS = 0; ranS < runtimeS; ranS += 60) {
      if (!settled(stops + 1, ranS, lostS) || ranS === 0) continue;
      lostS += ranS;
      stops += 1;
      ranS = 0;
    }
    expect(stops).toBeGreaterThan(3);
    expect(lostS).toBeLessThan(2 * runtimeS);
  });
});

it('the first attempt of a task may be stopped at any time', () => {
  expect(settled(1, 0)).toBe(true);
});
