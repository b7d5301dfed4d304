import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import {
  besideHeir,
  measured,
  NO_PAIR,
  slowdownBeside,
  slowdownBetween,
  surelyOf,
  type Beside,
  type Known,
} from '../../../../lib/policy/colocation/slowdowns.ts';

interface World {
  readonly rounds: number;
  readonly thetas: Readonly<Record<string, number>>;
  readonly noise?: number;
  readonly alike?: number;
  /** Exposure in a round; default: at random, with nobody there in half of them. */
  readonly exposure?: (draw: () => number) => number;
}

/** Running times of a program that takes 100 s alone, with noise, and longer beside others. */
function learned({ rounds, thetas, noise = 0.02, alike = 1, exposure = (d) => Math.round(d()) * d() }: World): Known {
  const draw = randomStream(3, 'slowdowns');
  let known: Known = { usual: null, pairs: new Map() };
  for (let n = 0; n < rounds; n++) {
    const beside: Beside[] = Object.keys(thetas)
      .map((group) => ({ group, exposure: exposure(draw) }))
      .filter((b) => b.exposure > 0);
    const extra = beside.reduce((sum, b) => sum + b.exposure * (thetas[b.group] ?? 0), 0);
    const logS = Math.log(100) + extra + noise * (draw() - 0.5);
    const after = measured({ logS, beside, alike }, known);
    known = { usual: after.usual, pairs: new Map([...known.pairs, ...after.pairs]) };
  }
  return known;
}

const beside = (group: string, { pairs }: Known, exposure = 1) => slowdownBeside([{ group, exposure }], pairs);

describe('slow-downs by neighbours', () => {
  it('are 1 where nothing is known', () => {
    expect(slowdownBeside([{ group: 'x', exposure: 1 }], new Map())).toEqual({
      factor: 1,
      sd: Math.sqrt(NO_PAIR.variance),
    });
    expect(slowdownBetween([{ group: 'x', exposure: 1 }], new Map())).toEqual({ factor: 1, sd: 0 });
  });

  it('tell apart who slows it down and who does not', () => {
    const known = learned({ rounds: 300, thetas: { loud: 0.5, quiet: 0 } });
    expect(beside('loud', known).factor).toBeCloseTo(Math.exp(0.5), 1);
    expect(beside('quiet', known).factor).toBeLessThan(1.03);
  });

  it('grow surer with measurements', () => {
    const sd = (rounds: number) => beside('loud', learned({ rounds, thetas: { loud: 0.5 } })).sd;
    expect(sd(10)).toBeLessThan(Math.sqrt(NO_PAIR.variance));
    expect(sd(200)).toBeLessThan(sd(10) / 2);
  });

  it('do not blame a neighbour for a program whose own times vary', () => {
    const { pairs } = learned({ rounds: 300, thetas: { quiet: 0 }, noise: 1 });
    expect(surelyOf(pairs.get('quiet') ?? NO_PAIR)).toBe(0);
  });

  it('do not blame a neighbour that is always there: nothing tells how long it takes without', () => {
    const { pairs } = learned({ rounds: 300, thetas: { loud: 0.5 }, exposure: () => 0.6 });
    expect(surelyOf(pairs.get('loud') ?? NO_PAIR)).toBe(0);
  });

  it('take the tasks of one job for one measurement', () => {
    const sd = (alike: number) => beside('loud', learned({ rounds: 20, thetas: { loud: 0.5 }, alike, noise: 0.3 })).sd;
    expect(sd(20)).toBeGreaterThan(1.5 * sd(1));
  });

  it('between two places are below 1 where neighbours are fewer, and within bounds', () => {
    const { pairs } = learned({ rounds: 300, thetas: { loud: 0.5 } });
    const between = (exposure: number) => slowdownBetween([{ group: 'loud', exposure }], pairs).factor;
    expect(between(-0.5)).toBeCloseTo(Math.exp(-0.25), 1);
    expect(between(0.5)).toBeCloseTo(Math.exp(0.25), 1);
    expect(between(1000)).toBe(4);
    expect(between(-1000)).toBe(1 / 4);
  });

  it('stay numbers whatever is measured', () => {
    for (const logS of [0, -700, 700]) {
      const first = measured({ logS: 1, beside: [], alike: 1 }, { usual: null, pairs: new Map() });
      const { usual, pairs } = measured({ logS, beside: [{ group: 'x', exposure: 1e6 }], alike: 1e4 }, first);
      for (const x of [usual.mean, usual.noise, pairs.get('x')?.mean, pairs.get('x')?.variance])
        expect(Number.isFinite(x)).toBe(true);
    }
  });

  it('count what was beside a group that is no more as beside its heir', () => {
    const of = { mean: 1, noise: 1, count: 3, exposures: { a: 0.5, b: 0.25 } };
    expect(besideHeir(of, 'a', 'b')).toEqual({ ...of, exposures: { b: 0.75 } });
    expect(besideHeir(of, 'a', 'c')).toEqual({ ...of, exposures: { b: 0.25, c: 0.5 } });
    expect(besideHeir(of, 'a', null)).toEqual({ ...of, exposures: { b: 0.25 } });
    expect(besideHeir(of, 'z', 'b')).toBe(of);
  });
});
