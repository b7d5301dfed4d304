/** Runs as rows of tables: one for each load and beta, and one for each load. */
import { percentile } from '../figures.ts';
import { clusterRatio } from '../intervals.ts';
import { recorded, shown, type EstimateRecord } from '../cluster/results.ts';
import type { Answer } from './order.ts';
import type { Row, Table } from './record.ts';

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  return [...Map.groupBy(answers, (a) => a.load)].flatMap(([load, ofLoad]) => {
    const betas = [...Map.groupBy(ofLoad, (a) => a.beta)].sort(([a], [b]) => a - b);
    return [
      ...betas.map(([beta, of]) => tableOf(of, { load, beta, presets })),
      tableOf(ofLoad, { load, beta: null, presets }),
    ];
  });
}

function tableOf(
  answers: readonly Answer[],
  { presets, ...of }: Pick<Table, 'load' | 'beta'> & { readonly presets: readonly string[] },
): Table {
  const by = (preset: string): readonly Answer[] => answers.filter((a) => a.preset === preset);
  const rows = presets.map((preset): Row => {
    const mine = by(preset);
    const times = mine.flatMap((a) => Object.values(a.figures.jctS));
    const sum = (figure: (a: Answer) => number): number => mine.reduce((n, a) => n + figure(a), 0);
    const attempts = sum((a) => a.figures.attempts);
    const copies = sum((a) => a.figures.copies);
    return {
      preset,
      meanS: times.reduce((a, b) => a + b, 0) / Math.max(1, times.length),
      toSpeculation: ratio(mine, by('srpt-speculation')),
      toHopper: ratio(mine, by('hopper-unfair')),
      p50S: percentile(times, 0.5),
      p95S: percentile(times, 0.95),
      copies: copies / Math.max(1, attempts - copies),
      superseded: sum((a) => a.figures.superseded) / Math.max(1, mine.length),
      undone: sum((a) => a.figures.undone),
    };
  });
  return { ...of, jobs: by(presets[0] ?? '').reduce((n, a) => n + Object.keys(a.figures.jctS).length, 0), rows };
}

/** Over the jobs that both have done; seeds are drawn again as a whole. */
function ratio(over: readonly Answer[], under: readonly Answer[]): EstimateRecord | null {
  const unit = ({ seed, beta }: Answer): string => `${seed} ${beta}`;
  const base = new Map(under.map((a) => [unit(a), a.figures.jctS]));
  const pairs = over.flatMap((a) => {
    const jctS = base.get(unit(a)) ?? {};
    const both = Object.entries(a.figures.jctS).filter(([key]) => key in jctS);
    const sum = (of: (key: string, s: number) => number): number => both.reduce((n, [key, s]) => n + of(key, s), 0);
    return both.length === 0 ? [] : [{ cluster: a.seed, over: sum((_, s) => s), under: sum((key) => jctS[key] ?? 0) }];
  });
  return pairs.length === 0 ? null : recorded(clusterRatio(pairs));
}

export const COLUMNS = [
  'preset',
  'mean s',
  '/ srpt-speculation',
  '/ hopper-unfair',
  'p50',
  'p95',
  'copies',
  'wasted',
  'undone',
];

export const cellsOf = (r: Row): readonly string[] => [
  r.preset,
  r.meanS.toFixed(1),
  shown(r.toSpeculation),
  shown(r.toHopper),
  r.p50S.toFixed(0),
  r.p95S.toFixed(0),
  r.copies.toFixed(2),
  `${(100 * r.superseded).toFixed(1)} %`,
  String(r.undone),
];
