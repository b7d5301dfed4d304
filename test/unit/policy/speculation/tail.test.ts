import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { withTime, type RunningTimes } from '../../../../lib/domain/running-times.ts';
import { tailOf } from '../../../../lib/policy/speculation/tail.ts';

const timesOf = (all: readonly number[]): RunningTimes => {
  let times: RunningTimes | undefined;
  for (const s of all) times = withTime(times, seconds(s));
  if (times === undefined) throw new Error('there are times');
  return times;
};
const pareto = (beta: number, n: number, scale = 30): readonly number[] => {
  const random = randomStream(8, `pareto/${beta}`);
  return Array.from({ length: n }, () => scale * (1 - random()) ** (-1 / beta));
};

describe('the tail of running times', () => {
  it('is the prior before anything is seen, and where tasks take no time', () => {
    expect(tailOf([])).toEqual({ beta: 1.5, deviation: expect.closeTo(1.5 / Math.sqrt(10), 10), seen: 0 });
    expect(tailOf([{ ended: timesOf([0, 0, 0]), running: [] }]).beta).toBeCloseTo(1.5, 10);
  });

  it.each([1.1, 1.3, 1.5, 1.7, 1.9])('is found within four deviations for %d', (beta) => {
    const stages = [1, 2, 3].map((i) => ({ ended: timesOf(pareto(beta, 300, 10 * i)), running: [] }));
    const tail = tailOf(stages);
    expect(Math.abs(tail.beta - beta)).toBeLessThan(4 * tail.deviation);
    expect(tail.deviation).toBeLessThan(0.15);
    expect(tail.seen).toBe(900);
  });

  it('is not taken for light because the slow tasks still run', () => {
    const all = pareto(1.2, 400);
    const untilS = 120;
    const ended = timesOf(all.filter((s) => s <= untilS));
    const running = all.filter((s) => s > untilS).map(() => untilS);
    const blind = tailOf([{ ended, running: [] }]);
    const seeing = tailOf([{ ended, running }]);
    expect(blind.beta).toBeGreaterThan(1.8);
    expect(Math.abs(seeing.beta - 1.2)).toBeLessThan(3 * seeing.deviation);
  });
});
