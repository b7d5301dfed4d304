/** Runs as tables: one for each world. */
import type { Figure, Table } from '../cluster/record.ts';
import { recorded, shown } from '../cluster/results.ts';
import { clusterRatio } from '../intervals.ts';
import { UNAWARE, type Answer } from './order.ts';
import type { World } from './worlds.ts';

const TITLES: Readonly<Record<World, string>> = {
  devices: 'programs bound to vCPUs, disk, network or nothing, on instances with one volume',
  pairs: 'pairs as Eva measured them',
  none: 'the first world with a hundred times of every device: nothing is scarce',
};

const of = (answers: readonly Answer[], preset: string, year?: string): readonly Answer[] =>
  answers.filter((a) => a.preset === preset && (year === undefined || a.year === year));

/** Cost over that of another preset in the same days; days are drawn again. */
function ratio(answers: readonly Answer[], preset: string, under = UNAWARE) {
  const below = new Map(of(answers, under).map((a) => [`${a.year} ${a.seed}`, a.figures.usd]));
  const pairs = of(answers, preset).flatMap((a) => {
    const usd = below.get(`${a.year} ${a.seed}`);
    return usd === undefined ? [] : [{ cluster: 10_000 * Number(a.year) + a.seed, over: a.figures.usd, under: usd }];
  });
  return recorded(clusterRatio(pairs));
}

const sum = (answers: readonly Answer[], f: (a: Answer['figures']) => number): number =>
  answers.reduce((total, a) => total + f(a.figures), 0);

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  return [...Map.groupBy(answers, (a) => a.world)].map(([world, all]) => {
    const years = [...new Set(all.map((a) => a.year))].sort();
    return {
      title: `A day of mixed work: ${TITLES[world]}`,
      note: `${of(all, UNAWARE).length} days of ${years.join(' and ')}, 480 jobs each`,
      columns: [
        'preset',
        ...years.map((y) => `USD ${y}`),
        `/ ${UNAWARE}`,
        'late',
        'undone',
        'mean completion min',
        'launches',
      ],
      rows: presets.map((preset) => {
        const mine = of(all, preset);
        return [
          preset,
          ...years.map((y) => sum(of(all, preset, y), (f) => f.usd).toFixed(0)),
          shown(ratio(all, preset)),
          `${sum(mine, (f) => f.late)} of ${sum(mine, (f) => f.deadlines)}`,
          String(sum(mine, (f) => f.undone)),
          (sum(mine, (f) => f.jctS) / 60 / Math.max(1, mine.length)).toFixed(1),
          String(sum(mine, (f) => f.launches)),
        ];
      }),
      isMain: true,
    };
  });
}

export function figuresOf(answers: readonly Answer[]): Figure[] {
  return [...Map.groupBy(answers, (a) => a.world)].flatMap(([world, all]): Figure[] => {
    const seen = ratio(all, 'ebbtide');
    if (seen === null) return [];
    const what = `cost of a day of mixed work, ebbtide over ${UNAWARE}: ${TITLES[world]}`;
    if (world === 'none')
      return [{ what, reach: '0.99 to 1.01', seen: shown(seen), met: Math.abs(seen.value - 1) <= 0.01 }];
    const late = (preset: string): number => sum(of(all, preset), (f) => f.late);
    const [aware, unaware] = [late('ebbtide'), late(UNAWARE)];
    return [
      {
        what,
        reach: '<= 0.95, with no more late jobs',
        seen: `${shown(seen)}; late ${aware} and ${unaware}`,
        met: seen.value <= 0.95 && aware <= unaware,
      },
    ];
  });
}
