/** Results of comparisons: estimates, and what is written, read again and drawn. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Estimate } from '../../lib/report/bootstrap.ts';
import { clusterRatio } from '../intervals.ts';
import { comparisonPage } from './page.ts';
import { comparison, type Comparison } from './record.ts';
import type { ClusterFigures } from './run.ts';
import { aligned } from './text.ts';

/** Tuning is done on one part of the seeds or windows, and reported is the other. */
export type Part = 'tune' | 'report';

export function partOf(text: string): Part {
  if (text === 'tune' || text === 'report') return text;
  throw new Error(`--part takes tune or report; got ${text}`);
}

export const estimate = z.strictObject({
  value: z.number(),
  /** Of the 95 % interval; null: fewer than two seeds or windows. */
  low: z.number().nullable(),
  high: z.number().nullable(),
});
export type EstimateRecord = z.infer<typeof estimate>;

export const recorded = ({ value, interval }: Estimate): EstimateRecord | null =>
  value === null ? null : { value, low: interval?.low ?? null, high: interval?.high ?? null };

export const shown = (e: EstimateRecord | null, digits = 3): string => {
  if (e === null) return '-';
  const interval = e.low === null || e.high === null ? '' : ` [${e.low.toFixed(digits)}, ${e.high.toFixed(digits)}]`;
  return `${e.value.toFixed(digits)}${interval}`;
};

/** Runs of one preset, each of a world that other presets ran in too. */
export interface Ran {
  /** The same for runs on the same jobs. */
  readonly world: string;
  /** Runs that are drawn again together. */
  readonly cluster: number;
  readonly figures: Pick<ClusterFigures, 'jctS'>;
}

/** Ratio of sums of completion times, over the jobs that both have done; clusters are drawn again as a whole. */
export function jctRatio(over: readonly Ran[], under: readonly Ran[]): EstimateRecord | null {
  const base = new Map(under.map((a) => [a.world, a.figures.jctS]));
  const pairs = over.flatMap(({ world, cluster, figures }) => {
    const jctS = base.get(world) ?? {};
    const both = Object.entries(figures.jctS).filter(([key]) => key in jctS);
    const sum = (of: (key: string, s: number) => number): number => both.reduce((n, [key, s]) => n + of(key, s), 0);
    return both.length === 0 ? [] : [{ cluster, over: sum((_, s) => s), under: sum((key) => jctS[key] ?? 0) }];
  });
  return pairs.length === 0 ? null : recorded(clusterRatio(pairs));
}

interface Files {
  readonly path: string;
  readonly html: string;
}

/** Where a benchmark writes: the docs have the reported part alone. */
export const pathOf = (name: string, part: Part): string =>
  part === 'report' ? `bench/results/clusters/${name}.json` : `out/${name}-tune.json`;

/** Prints, writes and draws a comparison. */
export async function keep(of: Comparison, { path, html }: Files): Promise<void> {
  for (const { title, note, columns, rows } of of.tables) {
    console.log(`\n${title}: ${note}`);
    console.log(aligned([columns, ...rows]).join('\n'));
  }
  console.log();
  for (const { what, reach, seen, met } of of.figures)
    console.log(`${met ? 'reached' : 'MISSED '}  ${what}: ${seen}, to reach ${reach}`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(comparison.parse(of), null, 2)}\n`);
  await draw(of, html);
  console.log(`\nwritten to ${path} (before a commit: npm run format), drawn in ${html}`);
}

/** Draws what is written. */
export async function drawAgain({ path, html }: Files): Promise<void> {
  if (!existsSync(path)) throw new Error(`there is no ${path}: run the benchmark without --draw first`);
  await draw(comparison.parse(JSON.parse(readFileSync(path, 'utf8'))), html);
}

async function draw(of: Comparison, html: string): Promise<void> {
  mkdirSync(dirname(html), { recursive: true });
  writeFileSync(html, await comparisonPage(of));
}
