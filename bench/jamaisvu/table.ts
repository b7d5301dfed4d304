/** Runs as tables: one for each part of the report. */
import { clusterRatio } from '../intervals.ts';
import { recorded, shown, type EstimateRecord } from '../cluster/results.ts';
import type { Figure, Plot, Table } from '../cluster/record.ts';
import type { Answer } from './order.ts';

const COLUMNS = ['preset', 'SLO misses', 'BE goodput, h', 'BE latency, s', 'preempted', 'undone'];

/** Misses over jobs with a deadline; seeds are drawn again as a whole. */
const missesOf = (of: readonly Answer[]): EstimateRecord | null =>
  recorded(clusterRatio(of.map((a) => ({ cluster: a.seed, over: a.figures.late.length, under: a.deadlineJobs }))));

const percentText = (e: EstimateRecord | null): string =>
  e === null
    ? '-'
    : `${shown({ value: 100 * e.value, low: e.low === null ? null : 100 * e.low, high: e.high === null ? null : 100 * e.high }, 1)} %`;

const meanOf = (of: readonly Answer[], figure: (a: Answer) => number): number =>
  of.reduce((sum, a) => sum + figure(a), 0) / Math.max(1, of.length);

/** A part of the report: the same presets under conditions that differ in one thing. */
export interface Part {
  readonly title: string;
  readonly presets: readonly string[];
  /** What the conditions differ in, and each one's text. */
  readonly xName: string;
  readonly xOf: (answer: Answer) => string;
  readonly answers: readonly Answer[];
  readonly isMain: boolean;
}

export function tablesOf({ title, presets, xName, xOf, answers, isMain }: Part): Table[] {
  const by = [...Map.groupBy(answers, xOf)];
  if (by.length === 0) return [];
  return [
    { ...tableOf(answers, presets, title), isMain, plot: plotOf(by, { title, presets, xName }) },
    ...by.map(([x, of]) => tableOf(of, presets, `${title}: ${xName} ${x}`)),
  ];
}

function tableOf(answers: readonly Answer[], presets: readonly string[], title: string): Table {
  const rows = presets.map((preset) => {
    const mine = answers.filter((a) => a.preset === preset);
    return [
      preset,
      percentText(missesOf(mine)),
      meanOf(mine, (a) => a.goodputHours).toFixed(1),
      meanOf(mine, (a) => a.latencyS).toFixed(0),
      meanOf(mine, (a) => a.figures.preempted).toFixed(0),
      meanOf(mine, (a) => a.figures.undone).toFixed(1),
    ];
  });
  const one = answers.filter((a) => a.preset === presets[0]);
  return {
    title,
    note: `${one.length} runs, ${one.reduce((n, a) => n + a.jobs, 0)} jobs; means over runs`,
    columns: COLUMNS,
    rows,
    isMain: false,
  };
}

const plotOf = (
  by: readonly (readonly [string, readonly Answer[]])[],
  { title, presets, xName }: Pick<Part, 'title' | 'presets' | 'xName'>,
): Plot => ({
  title: `${title}: SLO misses, per cent`,
  xName,
  x: by.map(([x]) => x),
  isLog: false,
  series: presets.map((name) => ({
    name,
    values: by.map(([, of]) => {
      const misses = missesOf(of.filter((a) => a.preset === name));
      return misses === null ? null : Math.round(1000 * misses.value) / 10;
    }),
  })),
});

/** Targets: within a point of the oracle, and at most half of what strict priority misses. */
export function figuresOf({ title, answers }: Pick<Part, 'title' | 'answers'>): Figure[] {
  const misses = (preset: string): EstimateRecord | null => missesOf(answers.filter((a) => a.preset === preset));
  const [jv, oracle, prio] = [misses('jvusched'), misses('oracle-told'), misses('prio')];
  if (jv === null || oracle === null || prio === null) return [];
  const points = 100 * (jv.value - oracle.value);
  return [
    {
      what: `${title}: SLO misses of jvusched above those of the oracle`,
      reach: '<= 1 point',
      seen: `${points.toFixed(1)} points: ${percentText(jv)} against ${percentText(oracle)}`,
      met: points <= 1,
    },
    {
      what: `${title}: SLO misses of jvusched over those of prio`,
      reach: '<= 0.5',
      seen: `${(jv.value / Math.max(1e-9, prio.value)).toFixed(2)}: ${percentText(jv)} against ${percentText(prio)}`,
      met: jv.value <= prio.value / 2,
    },
  ];
}
