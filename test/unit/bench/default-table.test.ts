import { describe, expect, it } from '@jest/globals';
import { PartsTally } from '../../../bench/cost-parts.ts';
import type { CaseResult } from '../../../bench/default/runner.ts';
import { rowOf } from '../../../bench/default/table.ts';

const GROUND = { name: 'ground', about: 'made by hand' };

/** Costs of each preset by case; a case of its own unit each. */
const results = (
  costs: Readonly<Record<string, readonly number[]>>,
  over: (preset: string, n: number) => Partial<CaseResult> = () => ({}),
): CaseResult[] =>
  Object.entries(costs).flatMap(([preset, usds]) =>
    usds.map((usd, key) => ({
      ground: GROUND.name,
      unit: String(key),
      group: 'all',
      key,
      preset,
      usd,
      grossUsd: usd + 1,
      deadlines: 100,
      missed: 0,
      undone: 0,
      onDemandUsd: 20,
      lowerBoundUsd: 4,
      parts: new PartsTally().parts,
      tookS: 1,
      ...over(preset, key),
    })),
  );

const row = (all: readonly CaseResult[]) => rowOf(GROUND, all, [...new Set(all.map((r) => r.preset))]);

describe('a row of the table of grounds', () => {
  it('has ratios of sums over references, the bound before refunds', () => {
    const { presets, cases, units } = row(results({ ebbtide: [4, 6], other: [10, 10] }));
    expect([cases, units]).toEqual([2, 2]);
    expect(presets[0]?.toOnDemand?.value).toBe(10 / 40);
    expect(presets[0]?.toBound?.value).toBe(12 / 8);
  });

  it('names the cheapest preset that misses at most 1 %, and never the oracle', () => {
    const costs = { ebbtide: [5, 5], late: [3, 3], allowed: [4, 4], oracle: [1, 1] };
    const missed = (preset: string): Partial<CaseResult> =>
      preset === 'late' ? { missed: 2 } : preset === 'allowed' ? { missed: 1 } : {};
    const { winner, toRival } = row(results(costs, missed));
    expect(winner).toBe('allowed');
    expect(toRival).toMatchObject({ rival: 'allowed', ratio: { value: 1.25, low: 1.25, high: 1.25 } });
    expect(row(results({ ebbtide: [5], late: [3] }, () => ({ missed: 2 }))).winner).toBeNull();
  });

  it('takes no preset that leaves more undone than another', () => {
    const undone = (preset: string): Partial<CaseResult> => (preset === 'lazy' ? { undone: 1 } : {});
    expect(row(results({ ebbtide: [5], lazy: [1] }, undone))).toMatchObject({ winner: 'ebbtide', toRival: null });
  });

  it('leaves out cases that some preset lacks, and ratios without a reference', () => {
    const all = results({ ebbtide: [5, 5], other: [4, 4] }).filter((r) => r.preset !== 'other' || r.key === 0);
    expect(row(all).cases).toBe(1);
    const without = results({ ebbtide: [5], other: [4] }, () => ({ onDemandUsd: null, lowerBoundUsd: null }));
    expect(row(without).presets.map((p) => [p.toOnDemand, p.toBound])).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  it('has the ratio and the largest one of each part', () => {
    const parts = (_: string, n: number): Partial<CaseResult> => ({ group: n < 2 ? 'tight' : 'loose' });
    expect(row(results({ ebbtide: [30, 10, 2] }, parts)).groups).toEqual([
      { group: 'loose', cases: 1, toOnDemand: 0.1, most: 0.1 },
      { group: 'tight', cases: 2, toOnDemand: 1, most: 1.5 },
    ]);
  });
});
