/** Runs as tables: one for each queue. */
import type { Figure, Plot, Table } from '../cluster/record.ts';
import { recorded, shown } from '../cluster/results.ts';
import { clusterRatio } from '../intervals.ts';
import { percentile } from '../figures.ts';
import { nodesOf } from './jobs.ts';
import { LIMIT_S, type Answer } from './order.ts';

const BASELINE = 'fifo-random';

const labelOf = ({ queue, arrivals, after }: Answer): string =>
  `${queue}${after.length === 0 ? '' : ', after learning'}${arrivals === 'at-once' ? '' : `, ${arrivals} arrivals`}, ${nodesOf(queue)} nodes`;

const ofPreset = (answers: readonly Answer[], preset: string): readonly Answer[] =>
  answers.filter((a) => a.preset === preset);

/** Makespan over that of the baseline with the same seeds; null: one of them has no runs. */
function ratio(answers: readonly Answer[], preset: string) {
  const below = new Map(ofPreset(answers, BASELINE).map((a) => [a.seed, a.figures.makespanS]));
  const pairs = ofPreset(answers, preset).flatMap((a) => {
    const under = below.get(a.seed);
    return under === undefined ? [] : [{ cluster: a.seed, over: a.figures.makespanS, under }];
  });
  return recorded(clusterRatio(pairs));
}

const waitsOf = (answers: readonly Answer[]): readonly number[] => answers.flatMap((a) => a.figures.waitedS);
const overLimit = (answers: readonly Answer[]): number => waitsOf(answers).filter((s) => s > LIMIT_S).length;

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  return [...Map.groupBy(answers, labelOf)].map(([title, of]) => ({
    title,
    note: `${ofPreset(of, BASELINE).length} seeds`,
    columns: [
      'preset',
      'minutes',
      '/ order of submission',
      'wait p50 min',
      'wait p95 min',
      'waits over the limit',
      'undone',
    ],
    rows: presets.flatMap((preset) => {
      const mine = ofPreset(of, preset);
      if (mine.length === 0) return [];
      const minutes = mine.reduce((sum, a) => sum + a.figures.makespanS, 0) / 60 / Math.max(1, mine.length);
      const waits = waitsOf(mine);
      const row = [
        preset,
        minutes.toFixed(1),
        shown(ratio(of, preset)),
        (percentile(waits, 0.5) / 60).toFixed(0),
        (percentile(waits, 0.95) / 60).toFixed(0),
        String(overLimit(mine)),
        String(mine.reduce((n, a) => n + a.figures.undone, 0)),
      ];
      return [row];
    }),
    isMain: title.startsWith('queue 1'),
    plot: waitsPlot(of, presets),
  }));
}

const TENTHS = Array.from({ length: 10 }, (_, i) => (i + 1) / 10);

/** How waits are spread, as in figure 2 of the paper. */
const waitsPlot = (of: readonly Answer[], presets: readonly string[]): Plot => ({
  title: 'minutes that jobs waited',
  x: TENTHS.map((part) => `${Math.round(100 * part)}`),
  xName: 'percent of jobs that waited no longer',
  isLog: false,
  series: presets.flatMap((name) => {
    const waits = waitsOf(ofPreset(of, name));
    return waits.length === 0 ? [] : [{ name, values: TENTHS.map((part) => percentile(waits, part) / 60) }];
  }),
});

/** What the papers report, in the same setting. */
const REPORTED: readonly (readonly [preset: string, label: string, least: number])[] = [
  ['mary', 'queue 1, 17 nodes', 0.07],
  ['hugo', 'learning, 34 nodes', 0.063],
  ['hugo', 'unseen, after learning, 34 nodes', 0.105],
  ['hugo', 'queue 3, after learning, 34 nodes', 0.11],
  ['hugo', 'queue 4, after learning, 34 nodes', 0.11],
  ['hugo-star', 'queue 3, after learning, constant arrivals, 34 nodes', 0.1],
  ['hugo-star', 'queue 3, after learning, arbitrary arrivals, 34 nodes', 0.05],
];

export function figuresOf(answers: readonly Answer[]): Figure[] {
  const byLabel = Map.groupBy(answers, labelOf);
  const makespans = REPORTED.flatMap(([preset, label, least]): Figure[] => {
    const of = ratio(byLabel.get(label) ?? [], preset);
    if (of === null) return [];
    return [
      {
        what: `makespan of ${preset} over that of the order of submission, ${label}`,
        reach: `<= ${(1 - least).toFixed(3)}`,
        seen: shown(of),
        met: of.value <= 1 - least,
      },
    ];
  });
  const arriving = answers.filter((a) => a.arrivals !== 'at-once');
  const [star, plain] = [overLimit(ofPreset(arriving, 'hugo-star')), overLimit(ofPreset(arriving, 'hugo'))];
  const waits: Figure = {
    what: 'jobs of hugo-star that wait longer than the limit, over those of hugo',
    reach: '<= 0.1',
    seen: `${star} and ${plain}`,
    met: star <= 0.1 * plain,
  };
  return arriving.length === 0 ? makespans : [...makespans, waits];
}
