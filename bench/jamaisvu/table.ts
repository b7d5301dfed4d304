/** Runs as tables: one for each slack, and one for all. */
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

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  const slacks = [...Map.groupBy(answers, (a) => a.slack)].sort(([a], [b]) => a - b);
  return [
    { ...tableOf(answers, presets, 'All slacks'), isMain: true, plot: plotOf(slacks, presets) },
    ...slacks.map(([slack, of]) => tableOf(of, presets, `DEADLINE-${slack}`)),
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

const plotOf = (slacks: readonly (readonly [number, readonly Answer[]])[], presets: readonly string[]): Plot => ({
  title: 'SLO misses, per cent',
  xName: 'deadline slack, per cent',
  x: slacks.map(([slack]) => String(slack)),
  isLog: false,
  series: presets.map((name) => ({
    name,
    values: slacks.map(([, of]) => {
      const misses = missesOf(of.filter((a) => a.preset === name));
      return misses === null ? null : Math.round(1000 * misses.value) / 10;
    }),
  })),
});

/** Targets: within a point of the oracle, and at most half of what strict priority misses. */
export function figuresOf(answers: readonly Answer[]): Figure[] {
  const misses = (preset: string): EstimateRecord | null => missesOf(answers.filter((a) => a.preset === preset));
  const [jv, oracle, prio] = [misses('jvusched'), misses('oracle-told'), misses('prio')];
  if (jv === null || oracle === null || prio === null) return [];
  const points = 100 * (jv.value - oracle.value);
  return [
    {
      what: 'SLO misses of jvusched above those of the oracle',
      reach: '<= 1 point',
      seen: `${points.toFixed(1)} points: ${percentText(jv)} against ${percentText(oracle)}`,
      met: points <= 1,
    },
    {
      what: 'SLO misses of jvusched over those of prio',
      reach: '<= 0.5',
      seen: `${(jv.value / Math.max(1e-9, prio.value)).toFixed(2)}: ${percentText(jv)} against ${percentText(prio)}`,
      met: jv.value <= prio.value / 2,
    },
  ];
}
