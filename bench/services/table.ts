/** Runs as tables: one for each market and request trace. */
import { recorded, shown } from '../cluster/results.ts';
import type { Figure, Table } from '../cluster/record.ts';
import { clusterRatio } from '../intervals.ts';
import type { Answer, System } from './order.ts';

const COLUMNS = ['system', 'USD', '/ separate', 'slow', 'jobs missed', 'launches', 'lost', 'replica-hours'];
const TARGET = 0.05;

type Quantity = (figures: Answer['figures']) => number;
const usd: Quantity = (f) => f.usd;

const groundsOf = (answers: readonly Answer[]): ReadonlyMap<string, readonly Answer[]> =>
  Map.groupBy(answers, (a) => `${a.year}, ${a.requests}`);

const of = (answers: readonly Answer[], system: System): readonly Answer[] =>
  answers.filter((a) => a.preset === system).sort((a, b) => a.seed - b.seed);
const sum = (answers: readonly Answer[], quantity: Quantity): number =>
  answers.reduce((total, a) => total + quantity(a.figures), 0);

function ratio(answers: readonly Answer[], system: System) {
  const base = new Map(of(answers, 'separate').map((a) => [a.seed, usd(a.figures)]));
  const pairs = of(answers, system).flatMap((a) => {
    const under = base.get(a.seed);
    return under === undefined ? [] : [{ cluster: a.seed, over: usd(a.figures), under }];
  });
  return pairs.length === 0 ? null : recorded(clusterRatio(pairs));
}

const slowShare = (answers: readonly Answer[]): number =>
  sum(answers, (f) => f.slow) /
  Math.max(
    1,
    sum(answers, (f) => f.requests),
  );

export const tablesOf = (answers: readonly Answer[]): Table[] =>
  [...groundsOf(answers)].map(([title, all]) => ({
    title,
    note: `${of(all, 'joint').length} starts`,
    columns: COLUMNS,
    rows: [...new Set(all.map((a) => a.preset))].map((system) => {
      const mine = of(all, system);
      const mean = (quantity: Quantity): number => sum(mine, quantity) / Math.max(1, mine.length);
      return [
        system,
        mean(usd).toFixed(3),
        shown(ratio(all, system)),
        `${(100 * slowShare(mine)).toFixed(2)} %`,
        `${mean((f) => f.missed).toFixed(1)} of ${mean((f) => f.jobs).toFixed(0)}`,
        mean((f) => f.launches).toFixed(0),
        mean((f) => f.interruptions).toFixed(1),
        mean((f) => f.replicaHours).toFixed(0),
      ];
    }),
    isMain: true,
  }));

export const figuresOf = (answers: readonly Answer[]): Figure[] =>
  [...groundsOf(answers)].flatMap(([name, all]) => {
    const joint = ratio(all, 'joint');
    if (joint === null) return [];
    const share = slowShare(of(all, 'joint'));
    return [
      {
        what: `one system over two, cost, ${name}`,
        reach: 'at most 0.85',
        seen: shown(joint),
        met: joint.value <= 0.85,
      },
      {
        what: `slow requests with jobs beside, ${name}`,
        reach: 'at most 5 %',
        seen: `${(100 * share).toFixed(2)} %`,
        met: share <= TARGET,
      },
    ];
  });
