import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import {
  measured,
  NO_PAIR,
  slowdownBeside,
  type Beside,
  type Known,
  type Own,
} from '../../../../lib/policy/colocation/slowdowns.ts';

/** Running times of a program that takes 100 s alone, with noise, and longer beside others. */
function learned(rounds: number, thetas: Readonly<Record<string, number>>, noise = 0.02): Known & { own: Own | null } {
  const draw = randomStream(3, 'slowdowns');
  let known: Known & { own: Own | null } = { own: null, pairs: new Map() };
  for (let n = 0; n < rounds; n++) {
    const beside: Beside[] = Object.keys(thetas)
      .map((group) => ({ group, exposure: Math.round(draw()) * draw() }))
      .filter((b) => b.exposure > 0);
    const extra = beside.reduce((sum, b) => sum + b.exposure * (thetas[b.group] ?? 0), 0);
    const after = measured(Math.log(100) + extra + noise * (draw() - 0.5), beside, known);
    known = { own: after.own, pairs: new Map([...known.pairs, ...after.pairs]) };
  }
  return known;
}

describe('slow-downs by neighbours', () => {
  it('are 1 where nothing is known', () => {
    expect(slowdownBeside([{ group: 'x', exposure: 1 }], new Map())).toEqual({
      factor: 1,
      sd: Math.sqrt(NO_PAIR.variance),
    });
  });

  it('tell apart who slows it down and who does not', () => {
    const { own, pairs } = learned(300, { loud: 0.5, quiet: 0 });
    expect(Math.exp(own?.mean ?? 0)).toBeCloseTo(100, -1);
    expect(slowdownBeside([{ group: 'loud', exposure: 1 }], pairs).factor).toBeCloseTo(Math.exp(0.5), 1);
    expect(slowdownBeside([{ group: 'quiet', exposure: 1 }], pairs).factor).toBeLessThan(1.03);
  });

  it('grow surer with measurements', () => {
    const sd = (rounds: number) =>
      slowdownBeside([{ group: 'loud', exposure: 1 }], learned(rounds, { loud: 0.5 }).pairs).sd;
    expect(sd(10)).toBeLessThan(Math.sqrt(NO_PAIR.variance));
    expect(sd(200)).toBeLessThan(sd(10) / 2);
  });

  it('do not blame a neighbour for a program whose own times vary', () => {
    const { pairs } = learned(300, { quiet: 0 }, 1);
    expect(slowdownBeside([{ group: 'quiet', exposure: 1 }], pairs).factor).toBeLessThan(1.15);
  });
});
