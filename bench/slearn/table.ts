/** Runs and errors as tables. */
import { percentile } from '../figures.ts';
import { jctRatio, shown, type EstimateRecord } from '../cluster/results.ts';
import type { Figure, Table } from '../cluster/record.ts';
import type { Errors } from './accuracy.ts';
import type { Answer } from './order.ts';

const percent = (x: number): string => `${(100 * x).toFixed(1)} %`;

export function errorTable(errors: Errors): Table {
  const rows = Object.entries(errors).map(([name, of]) => [
    name,
    ...[0.5, 0.75, 0.9].map((q) => percent(percentile(of, q))),
    percent(of.reduce((a, b) => a + b, 0) / Math.max(1, of.length)),
  ]);
  return {
    title: 'Error of the running time',
    note: `${errors.slearn.length} jobs of at least 3 tasks; 3 % of the tasks sampled, at least one`,
    columns: ['estimate', 'P50', 'P75', 'P90', 'mean'],
    rows,
    isMain: true,
  };
}

const ratio = (answers: readonly Answer[], over: string, under: string): EstimateRecord | null => {
  const ran = (preset: string) =>
    answers
      .filter((a) => a.preset === preset)
      .map(({ seed, figures }) => ({ world: String(seed), cluster: seed, figures }));
  return jctRatio(ran(over), ran(under));
};

const TITLES: Readonly<Record<Answer['kind'], string>> = {
  jobs: 'Jobs',
  dags: 'DAGs',
  alibaba: 'DAGs of Alibaba 2018',
  tpch: 'DAGs of TPC-H on Spark',
};

export function tablesOf(answers: readonly Answer[], presets: readonly string[]): Table[] {
  return [...Map.groupBy(answers, (a) => a.kind)].map(([kind, of]) => {
    const rows = presets.map((preset) => {
      const mine = of.filter((a) => a.preset === preset);
      const times = mine.flatMap((a) => Object.values(a.figures.jctS));
      return [
        preset,
        (times.reduce((a, b) => a + b, 0) / Math.max(1, times.length)).toFixed(0),
        shown(ratio(of, preset, 'slearn')),
        shown(ratio(of, preset, 'oracle')),
        percentile(times, 0.5).toFixed(0),
        percentile(times, 0.95).toFixed(0),
        String(mine.reduce((n, a) => n + a.figures.undone, 0)),
      ];
    });
    const one = of.filter((a) => a.preset === presets[0]);
    const jobs = one.reduce((n, a) => n + Object.keys(a.figures.jctS).length, 0);
    return {
      title: TITLES[kind],
      note: `${one.length} seeds, ${jobs} jobs, ${one.reduce((n, a) => n + a.tasks, 0)} tasks`,
      columns: ['preset', 'mean s', '/ slearn', '/ oracle', 'p50', 'p95', 'undone'],
      rows,
      isMain: true,
    };
  });
}

/** Targets: the figures of the paper (sections 4.3, 5.2.4 and 6). */
export function figuresOf(answers: readonly Answer[], errors: Errors): Figure[] {
  const of = (kind: Answer['kind']): readonly Answer[] => answers.filter((a) => a.kind === kind);
  const atLeast = (what: string, least: number, seen: EstimateRecord | null): Figure[] =>
    seen === null ? [] : [{ what, reach: `>= ${least}`, seen: shown(seen, 2), met: seen.value >= least }];
  const p50 = percentile(errors.slearn, 0.5);
  const p90 = percentile(errors.slearn, 0.9);
  const meanOf = (name: keyof Errors): number => errors[name].reduce((a, b) => a + b, 0) / errors[name].length;
  const [both, others] = [meanOf('fused'), [meanOf('slearn'), meanOf('3sigma')]];
  return [
    {
      what: 'error of running times by sampling, P50 and P90',
      reach: '<= 9.2 % and 50 %',
      seen: `${percent(p50)} and ${percent(p90)}`,
      met: p50 <= 0.092 && p90 <= 0.5,
    },
    {
      what: 'mean error, history and sampling fused, against sampling and 3Sigma',
      reach: 'below both',
      seen: `${(100 * both).toFixed(2)} % against ${others.map((x) => `${(100 * x).toFixed(2)} %`).join(' and ')}`,
      met: others.every((o) => both < o),
    },
    ...atLeast(
      'mean completion time of 3sigma over that of slearn, jobs',
      1.56,
      ratio(of('jobs'), '3sigma', 'slearn'),
    ).map((f) => ({ ...f, seen: `${f.seen}; the oracle gets ${shown(ratio(of('jobs'), '3sigma', 'oracle'), 2)}` })),
    ...atLeast('the same of slearn over that of srpt-fused (ours), jobs', 1, ratio(of('jobs'), 'slearn', 'srpt-fused')),
    ...atLeast('the same of 3sigma over that of slearn, DAGs', 1.26, ratio(of('dags'), '3sigma', 'slearn')),
    ...atLeast('the same of las over that of slearn, DAGs', 2.15, ratio(of('dags'), 'las', 'slearn')),
    ...(['alibaba', 'tpch'] as const).flatMap((kind) => [
      ...atLeast(`the same of 3sigma over that of slearn, ${TITLES[kind]}`, 1.26, ratio(of(kind), '3sigma', 'slearn')),
      ...atLeast(`the same of las over that of slearn, ${TITLES[kind]}`, 2.15, ratio(of(kind), 'las', 'slearn')),
    ]),
    ...(['jobs', 'dags', 'alibaba', 'tpch'] as const).flatMap((kind) =>
      atLeast(`the same of slearn over that of ebbtide, ${TITLES[kind]}`, 1, ratio(of(kind), 'slearn', 'ebbtide')),
    ),
    ...atLeast('the same of slearn over that of srpt-fused (ours), DAGs', 1, ratio(of('dags'), 'slearn', 'srpt-fused')),
    ...atLeast('the same of point-est over that of 3sigma, jobs', 1, ratio(of('jobs'), 'point-est', '3sigma')),
  ];
}
