/** Runs of one workload on one market as rows of a table, and as text. */
import { recorded, shown, type EstimateRecord } from '../cluster/results.ts';
import { aligned } from '../cluster/text.ts';
import { clusterRatio } from '../intervals.ts';
import { percentile } from '../figures.ts';
import type { Answer } from './order.ts';
import type { PresetRow, SweepRow, Table } from './record.ts';
import type { Figures } from './run.ts';

const total = (of: readonly Answer[], figure: (f: Figures) => number): number =>
  of.reduce((sum, { figures }) => sum + figure(figures), 0);

const unitOf = ({ window, sample }: Answer): string => `${window} ${sample}`;

/** Ratio of sums over the windows that both have; windows are drawn again as a whole. */
function ratio(over: readonly Answer[], under: readonly Answer[]): EstimateRecord | null {
  const base = new Map(under.map((a) => [unitOf(a), a.figures.usd]));
  const pairs = over.flatMap((a, cluster) => {
    const usd = base.get(unitOf(a));
    return usd === undefined ? [] : [{ cluster, over: a.figures.usd, under: usd }];
  });
  return pairs.length === 0 ? null : recorded(clusterRatio(pairs));
}

/** The resource of which tasks request the larger part of what is rented, in all runs together. */
const constrainingOf = (all: readonly Answer[]): Table['constrains'] =>
  total(all, (f) => f.usedCpu) >= total(all, (f) => f.usedMemory) ? 'vCPU' : 'memory';

/** Mean over windows. */
function utilisationOf(of: readonly Answer[], constrains: Table['constrains']): EstimateRecord {
  const pairs = of.map(({ figures: f }, cluster) => ({
    cluster,
    over: constrains === 'vCPU' ? f.usedCpu : f.usedMemory,
    under: 1,
  }));
  return recorded(clusterRatio(pairs)) ?? { value: 0, low: null, high: null };
}

const latencyOf = (of: readonly Answer[], q: number): number =>
  percentile(
    of.flatMap((a) => a.figures.latencies),
    q,
  );

export interface Compared {
  readonly answers: readonly Answer[];
  readonly presets: readonly string[];
  readonly windowS: number;
}

export type Rows = Pick<Table, 'windows' | 'jobs' | 'tasks' | 'constrains' | 'presets'>;

/** O(presets x windows x resamples). */
export function rowsOf({ answers, presets, windowS }: Compared): Rows {
  const by = (preset: string): readonly Answer[] => answers.filter((a) => a.preset === preset);
  const constrains = constrainingOf(answers);
  const rows = presets.map((preset): PresetRow => {
    const of = by(preset);
    return {
      preset,
      usdPerDay: (total(of, (f) => f.usd) / Math.max(1, of.length) / windowS) * 86_400,
      toStratus: ratio(of, by('stratus')),
      toHotspot: ratio(of, by('hotspot')),
      utilisation: utilisationOf(of, constrains),
      latencyP50: latencyOf(of, 0.5),
      latencyP95: latencyOf(of, 0.95),
      bought: total(of, (f) => f.launches),
      unused: total(of, (f) => f.unused),
      moves: total(of, (f) => f.moves),
      interruptions: total(of, (f) => f.interruptions),
      undone: total(of, (f) => f.undone),
    };
  });
  const one = by(presets[0] ?? '');
  return {
    windows: one.length,
    jobs: one.reduce((n, a) => n + a.figures.latencies.length, 0),
    tasks: total(one, (f) => f.tasks),
    constrains,
    presets: rows,
  };
}

/** Rows of the sweep, by preset and h. `base`: the preset whose cost at h = 1 is 1. */
export function sweepOf(answers: readonly Answer[], base: string): readonly SweepRow[] {
  const atTrue = answers.filter((a) => a.preset === base && a.h === 1);
  return [...Map.groupBy(answers, (a) => `${a.preset} ${a.h}`).values()]
    .flatMap((of): SweepRow[] => {
      const [first] = of;
      if (first === undefined) return [];
      return [
        {
          preset: first.preset,
          h: first.h,
          toTrue: ratio(of, atTrue),
          latencyP50: latencyOf(of, 0.5),
          latencyP95: latencyOf(of, 0.95),
          bought: total(of, (f) => f.launches),
          moves: total(of, (f) => f.moves),
        },
      ];
    })
    .sort((a, b) => (a.preset === b.preset ? a.h - b.h : a.preset < b.preset ? -1 : 1));
}

export const COLUMNS = [
  'preset',
  '/ stratus',
  '/ hotspot',
  'USD/day',
  'used',
  'p50',
  'p95',
  'bought',
  'unused',
  'moves',
  'taken',
  'undone',
] as const;

export const cellsOf = (p: PresetRow): readonly string[] => [
  p.preset,
  shown(p.toStratus),
  shown(p.toHotspot),
  p.usdPerDay.toFixed(2),
  `${(100 * p.utilisation.value).toFixed(1)} %`,
  p.latencyP50.toFixed(2),
  p.latencyP95.toFixed(2),
  ...[p.bought, p.unused, p.moves, p.interruptions, p.undone].map(String),
];

export const SWEEP_COLUMNS = ['preset', 'h', '/ true times', 'p50', 'p95', 'bought', 'moves'] as const;

export const sweepCells = (sweep: readonly SweepRow[]): readonly (readonly string[])[] =>
  sweep.map((r) => [
    r.preset,
    r.h.toPrecision(3),
    shown(r.toTrue),
    r.latencyP50.toFixed(2),
    r.latencyP95.toFixed(2),
    String(r.bought),
    String(r.moves),
  ]);

/** For a terminal. */
export function textOf({ workload, market, about, windows, jobs, tasks, constrains, presets, sweep }: Table): string {
  return [
    `\n${workload} on ${market}: ${about}; ${windows} windows, ${jobs} jobs, ${tasks} tasks; ${constrains} constrains`,
    ...aligned([COLUMNS, ...presets.map(cellsOf)]),
    ...(sweep === undefined ? [] : ['', ...aligned([SWEEP_COLUMNS, ...sweepCells(sweep)])]),
  ].join('\n');
}
