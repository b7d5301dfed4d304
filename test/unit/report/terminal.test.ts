import { describe, expect, it } from '@jest/globals';
import pc from 'picocolors';
import { simulationSummary } from '../../../lib/cli/views/simulation-summary.ts';
import { excessText } from '../../../lib/report/excess.ts';
import { badNews, cheaper, goodNews } from '../../../lib/report/sections.ts';
import { compare } from '../../../lib/report/comparison.ts';
import { outcome } from './outcomes.ts';

const PLAIN = { colors: pc.createColors(false), columns: 120 };
const run = (preset: string, seed: number, billedUsd: number, more: object = {}) =>
  outcome({ preset, seed, totals: { billedUsd, onDemandUsd: 20, deadlines: 50, succeeded: 60, ...more } });
const references = { onDemandUsd: 20, lowerBoundUsd: 2 };
const one = [run('on-demand', 1, 20), run('ebbtide', 1, 5, { missed: 2 })].map((r) => ({ ...r, references }));
const several = [1, 2, 3].flatMap((seed) => [run('on-demand', seed, 20 + seed), run('ebbtide', seed, 5 + seed)]);

describe('in the terminal', () => {
  it('one run: figures without intervals, misses, and what to do next', () => {
    const shown = simulationSummary(PLAIN, compare(one), null);
    expect(shown).toMatch(/^ebbtide +\$5\.00 +25% +0\.250 +2\.50 +2 of 50/m);
    expect(shown).toMatch(/^on-demand - ebbtide +\+\$15\.00/m);
    expect(shown).not.toContain('ORACLE');
    expect(shown).not.toContain('[$');
    expect(shown.trimEnd().split('\n').at(-1)).toContain('--report FILE.html');
  });

  it('several runs: an interval below each figure; the report last', () => {
    const shown = simulationSummary(PLAIN, compare(several), 'out\u001b[2J.html');
    expect(shown).toMatch(/^ebbtide +\$7\.00/m);
    expect(shown).toMatch(/^ +\[\$6\.00, \$8\.00\]/m);
    expect(shown.split('\n').at(-1)).toBe('open out\\x1b[2J.html');
    expect(
      Math.max(
        ...shown
          .split('\n')
          .slice(0, 8)
          .map((l) => l.length),
      ),
    ).toBeLessThan(120);
  });
});

it('a difference too small to be shown has no sign', () => {
  const cells = [0, 1, 2].flatMap((seed) => [
    run('a', seed, 5, { missed: 1, deadlines: 10_000_000 }),
    run('b', seed, 5, { missed: seed, deadlines: 10_000_000 }),
  ]);
  const rows = simulationSummary(PLAIN, compare(cells), null).split('\n');
  expect(rows.find((row) => row.startsWith('a - b'))).toMatch(/ 0 pp +neither$/);
});

it('the good news holds the cheapest against the on-demand reference, where that is known', () => {
  const known = several.map((r) => ({ ...r, references: { onDemandUsd: 28, lowerBoundUsd: 5 } }));
  expect(goodNews(compare(known)).at(-1)).toMatch(/ ebbtide, \$7\.00 per run, 25 % of the on-demand reference\.$/);
  expect(goodNews(compare([run('ebbtide', 1, 5)])).at(-1)).toMatch(/25 % of the same work at on-demand prices/);
});

it('the good news says which presets are not told apart from the cheapest', () => {
  const costs = [
    [5, 6, 40],
    [7, 6, 50],
    [5, 4.5, 40],
  ] as const;
  const runs = costs.flatMap(([a, b, c], seed) => [run('a', seed, a), run('b', seed, b), run('c', seed, c)]);
  expect(goodNews(compare(runs)).at(-1)).toMatch(/: b, \$5\.50 per run.*; no difference shown to a\.$/);
  expect(simulationSummary(PLAIN, compare(runs), null)).toMatch(/^a - b .* no difference shown$/m);
});

it('only bad news is in the list of what went wrong', () => {
  const late = compare([run('a', 1, 1, { missed: 5 }), run('b', 1, 2, { missed: 6 })]);
  expect(badNews(late, [])).toContain('Every preset misses more than 1 % of the deadlines.');
  expect(goodNews(late)).toEqual([]);
});

describe('why a preset is dearer than the lower bound', () => {
  const dear = (totals: object) =>
    compare([
      {
        ...run('dear', 1, 10, { workUsd: 6, idleUsd: 3, wastedUsd: 1, refundedUsd: 2, interruptions: 4, ...totals }),
        references: { onDemandUsd: 20, lowerBoundUsd: 5 },
        pools: [{ pool: 'c5.large/a/on-demand', option: 'on-demand', billedUsd: 2.5 } as never],
      },
    ]).presets.map(excessText);

  it('names the parts by size, and what is on-demand', () => {
    expect(dear({})).toEqual([
      'dear costs 2.40 times the lower bound of $5.00: $3.00 idle, $2.00 in hours that were refunded, ' +
        "$1.00 in lost work (4 interruptions), $1.00 in work above the bound's prices (25 % of the bill is on-demand).",
    ]);
  });

  it('leaves out what is next to nothing, and says nothing where a preset is not dearer or no bound is known', () => {
    expect(dear({ wastedUsd: 0.01, workUsd: 6.99 })[0]).not.toContain('lost work');
    expect(dear({ billedUsd: 3, workUsd: 3, idleUsd: 0, wastedUsd: 0 })).toEqual([null]);
    expect(compare([run('a', 1, 1)]).presets.map(excessText)).toEqual([null]);
  });
});

describe('bad news', () => {
  it('presets of which the same is to be said share a line', () => {
    const lines = badNews(compare([run('a', 1, 1, { refused: 3 }), run('b', 1, 1, { refused: 3 })]), ['note']);
    expect(lines).toEqual(['Every preset: 3 jobs refused at submission.', 'note']);
    const [some] = badNews(compare([run('a', 1, 1, { missed: 5, unfinished: 1 }), run('b', 1, 1)]), []);
    expect(some).toBe('a: 5 of 50 deadlines missed (10 %); 1 job unfinished at the end.');
  });

  it('a difference is only shown where its interval says so', () => {
    const verdict = (costs: readonly (readonly [number, number])[]) =>
      compare(costs.flatMap(([a, b], s) => [run('a', s, a), run('b', s, b)])).differences.map(cheaper);
    expect(verdict([[1, 2]])).toEqual(['a (one run)']);
    expect(verdict([[2, 2]])).toEqual(['neither']);
    expect(verdict([[3, 2], [5, 2], [4, 2]])).toEqual(['b']); // oxfmt-ignore
    expect(verdict([[3, 2], [1, 2], [2.2, 2]])).toEqual(['no difference shown']); // oxfmt-ignore
  });
});
