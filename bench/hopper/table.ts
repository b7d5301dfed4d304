/** Runs as tables: one for each load and beta, and one for each load. */
import { percentile } from '../figures.ts';
import { jctRatio, shown, type EstimateRecord } from '../cluster/results.ts';
import type { Figure, Plot, Table } from '../cluster/record.ts';
import type { Answer } from './order.ts';

const COLUMNS = [
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

type By = (preset: string) => readonly Answer[];
const byPreset =
  (answers: readonly Answer[]): By =>
  (preset) =>
    answers.filter((a) => a.preset === preset);

const ratio = (by: By, over: string, under: string): EstimateRecord | null => {
  const ran = (preset: string) =>
    by(preset).map(({ seed, beta, figures }) => ({ world: `${seed} ${beta}`, cluster: seed, figures }));
  return jctRatio(ran(over), ran(under));
};

const timesOf = (of: readonly Answer[]): readonly number[] => of.flatMap((a) => Object.values(a.figures.jctS));
const meanOf = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0) / Math.max(1, of.length);

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  return [...Map.groupBy(answers, (a) => a.load)].flatMap(([load, ofLoad]) => {
    const betas = [...Map.groupBy(ofLoad, (a) => a.beta)].sort(([a], [b]) => a - b);
    const all = tableOf(ofLoad, presets, `Load ${load}, all tails`);
    return [
      { ...all, isMain: true, plot: plotOf(betas, presets) },
      ...betas.map(([beta, of]) => tableOf(of, presets, `Load ${load}, beta ${beta}`)),
    ];
  });
}

function tableOf(answers: readonly Answer[], presets: readonly string[], title: string): Table {
  const by = byPreset(answers);
  const rows = presets.map((preset) => {
    const mine = by(preset);
    const times = timesOf(mine);
    const sum = (figure: (a: Answer) => number): number => mine.reduce((n, a) => n + figure(a), 0);
    const copies = sum((a) => a.figures.copies);
    return [
      preset,
      meanOf(times).toFixed(1),
      shown(ratio(by, preset, 'srpt-speculation')),
      shown(ratio(by, preset, 'hopper-unfair')),
      percentile(times, 0.5).toFixed(0),
      percentile(times, 0.95).toFixed(0),
      (copies / Math.max(1, sum((a) => a.figures.attempts) - copies)).toFixed(2),
      `${((100 * sum((a) => a.figures.superseded)) / Math.max(1, mine.length)).toFixed(1)} %`,
      String(sum((a) => a.figures.undone)),
    ];
  });
  return { title, note: `${timesOf(by(presets[0] ?? '')).length} jobs`, columns: COLUMNS, rows, isMain: false };
}

const plotOf = (betas: readonly (readonly [number, readonly Answer[]])[], presets: readonly string[]): Plot => ({
  title: 'Mean completion time, seconds',
  xName: 'beta',
  x: betas.map(([beta]) => String(beta)),
  isLog: true,
  series: presets.map((name) => ({
    name,
    values: betas.map(([, of]) => Math.round(10 * meanOf(timesOf(byPreset(of)(name)))) / 10),
  })),
});

/** Targets: at least 20 % less than SRPT with best-effort speculation, and what fairness costs of that. */
export function figuresOf(answers: readonly Answer[]): Figure[] {
  return [...Map.groupBy(answers, (a) => a.load)].flatMap(([load, of]) => {
    const by = byPreset(of);
    const gain = ratio(by, 'hopper', 'srpt-speculation');
    const unfair = ratio(by, 'hopper-unfair', 'srpt-speculation');
    if (gain === null || unfair === null) return [];
    const cost = (gain.value - unfair.value) / Math.max(1e-9, 1 - unfair.value);
    return [
      {
        what: `mean completion time of hopper over that of SRPT with best-effort speculation, load ${load}`,
        reach: '<= 0.8',
        seen: shown(gain),
        met: gain.value <= 0.8,
      },
      {
        what: `part of the gain that fairness with epsilon 0.1 costs, load ${load}`,
        reach: '<= 10 %',
        seen: `${(100 * cost).toFixed(1)} %`,
        met: cost <= 0.1,
      },
    ];
  });
}
