import { describe, expect, it } from '@jest/globals';
import {
  best,
  DeadlineProgram,
  IDLE_DOWN,
  IDLE_UP,
  ON_DEMAND_DOWN,
  ON_DEMAND_UP,
  ON_SPOT,
  type Place,
  type Rule,
  type Terms,
} from '../../../../lib/policy/deadline-program/program.ts';
import { AGE_FROM_H, AGES, DOWN_PER_HOUR, UP_PER_HOUR } from '../../../../lib/policy/deadline-program/spells.ts';
import { bruteForce } from '../../../support/brute-deadline.ts';

const TERMS: Terms = {
  mostWorkH: 8,
  mostSlackH: 8,
  price: 0.3,
  takesH: 0.25,
  paidH: 0.25,
  late: 1e4,
  upFactor: 1,
  pools: 1,
};
const OLDEST = AGES - 1;
const program = (terms: Partial<Terms> = {}): DeadlineProgram => new DeadlineProgram({ ...TERMS, ...terms });

describe('closed forms', () => {
  const calm = program({ upFactor: 1e-9 });

  it('on-demand costs the work', () => {
    for (const workH of [0.1, 1, 7.3])
      for (const slackH of [0, 0.1, 0.4])
        expect(program().cost({ place: ON_DEMAND_DOWN, workH, slackH, age: OLDEST })).toBeCloseTo(workH, 3);
  });

  it('spot that is never interrupted costs its price, one start included', () => {
    for (const workH of [0.5, 2, 6])
      expect(calm.cost({ place: IDLE_UP, workH, slackH: 3, age: OLDEST })).toBeCloseTo(0.3 * (workH + 0.25), 3);
  });

  it('an outage without memory is waited out to the end of the slack', () => {
    // No more slack than two starts take: then on-demand is not left again.
    const [workH, slackH] = [4, 0.4];
    const action = best(calm.actions({ place: IDLE_DOWN, workH, slackH, age: OLDEST }));
    const stays = Math.exp(-(DOWN_PER_HOUR[OLDEST] ?? 0) * (slackH - 0.25));
    const expected = (workH + 0.25) * (stays + (1 - stays) * 0.3);
    expect(action).toBe('stay');
    const fine = new DeadlineProgram({ ...TERMS, upFactor: 1e-9 }, { fineness: 8 });
    expect(fine.cost({ place: IDLE_DOWN, workH, slackH, age: OLDEST }) / expected).toBeCloseTo(1, 3);
  });

  it('what is past saving costs its lateness and the work', () => {
    expect(program({ late: 50 }).cost({ place: IDLE_DOWN, workH: 3, slackH: -0.1, age: 0 })).toBe(53);
  });
});

describe('against brute force in small time steps', () => {
  const small: Terms = { ...TERMS, mostWorkH: 2, mostSlackH: 2, takesH: 0.2, paidH: 0.2 };
  const fine = new DeadlineProgram(small, { fineness: 4 });
  const brute = bruteForce(small, { up: UP_PER_HOUR, down: DOWN_PER_HOUR, agesFromH: AGE_FROM_H }, 0.01);
  const states = ([IDLE_UP, IDLE_DOWN, ON_SPOT, ON_DEMAND_UP] as const).flatMap((place) =>
    [0.6, 1.4].flatMap((workH) => [0.4, 0.9, 1.6].map((slackH) => ({ place, workH, slackH }))),
  );

  it.each(states)('costs the same: place $place, $workH h of work, $slackH h of slack', (state) => {
    for (const age of [0, 2, OLDEST]) {
      const exact = brute({ ...state, age });
      expect(fine.cost({ ...state, age }) / exact).toBeGreaterThan(0.97);
      expect(fine.cost({ ...state, age }) / exact).toBeLessThan(1.03);
    }
  });
});

describe('grid', () => {
  it.each([0.07, 0.25, 0.45])('costs within 2 % of a grid four times as fine, starts of %d h', (takesH) => {
    const terms = { ...TERMS, takesH, paidH: takesH };
    const [coarse, fine] = [new DeadlineProgram(terms), new DeadlineProgram(terms, { fineness: 4 })];
    for (const place of [IDLE_UP, IDLE_DOWN] as const)
      for (const slackH of [1, 4, 7])
        for (const age of [0, 3]) {
          const state = { place, workH: 6, slackH, age };
          expect(Math.abs(coarse.cost(state) / fine.cost(state) - 1)).toBeLessThan(0.02);
        }
  });

  it('is bounded for the longest work', () => {
    expect(program({ mostWorkH: 1024, mostSlackH: 512, takesH: 0.05 }).size).toBeLessThan(2_000_000);
  });
});

/** Greedy and Uniform Progress of "Can't Be Late" (NSDI 2024), as rules on the grid. */
const LEAVES_H = 0.3;
const isOnDemand = (place: Place): boolean => place === ON_DEMAND_UP || place === ON_DEMAND_DOWN;
const greedy: Rule = ({ place, slackH }) => {
  if (isOnDemand(place)) return 'stay';
  if (slackH <= LEAVES_H) return 'on-demand';
  return place === IDLE_UP ? 'spot' : 'stay';
};
const uniform =
  (workH: number, slackH: number): Rule =>
  (state) => {
    const done = workH - state.workH;
    const passed = done + slackH - state.slackH;
    const line = (t: number): number => (t * workH) / (workH + slackH);
    if (state.slackH <= LEAVES_H) return isOnDemand(state.place) ? 'stay' : 'on-demand';
    if (state.place === IDLE_UP) return 'spot';
    if (state.place === ON_DEMAND_UP) return done >= line(passed + 0.5) && state.slackH > 0.6 ? 'spot' : 'stay';
    return state.place === IDLE_DOWN && done < line(passed) ? 'on-demand' : 'stay';
  };

describe('rules under the same model', () => {
  const places: readonly Place[] = [IDLE_UP, IDLE_DOWN, ON_SPOT, ON_DEMAND_UP, ON_DEMAND_DOWN];
  const terms = { ...TERMS, pools: 2 };
  const chosen = new DeadlineProgram(terms);

  it.each([
    ['greedy', greedy, 1.2],
    ['uniform progress', uniform(8, 6), 1.05],
  ] as const)('is never dearer than %s, and cheaper somewhere', (_, rule, gain) => {
    const ruled = new DeadlineProgram(terms, { rule });
    let most = 0;
    for (const place of places)
      for (const workH of [0.5, 2, 5, 8])
        for (const slackH of [0.1, 0.3, 0.6, 1.5, 4, 7])
          for (let age = 0; age < AGES; age++) {
            const state = { place, workH, slackH, age };
            const ratio = ruled.cost(state) / chosen.cost(state);
            expect(ratio).toBeGreaterThan(0.999);
            most = Math.max(most, ratio);
          }
    expect(most).toBeGreaterThan(gain);
  });
});
