/** Records of benchmarks on clusters: written, read again, and drawn. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Estimate } from '../../lib/report/bootstrap.ts';

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

export function kept<Schema extends z.ZodType>(path: string, schema: Schema): z.output<Schema> {
  if (!existsSync(path)) throw new Error(`there is no ${path}: run the benchmark without --draw first`);
  return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
}

export async function keep<Record extends object>(
  record: Record,
  to: { readonly path: string; readonly html: string; readonly draw: (record: Record) => Promise<string> },
): Promise<void> {
  for (const file of [to.path, to.html]) mkdirSync(dirname(file), { recursive: true });
  writeFileSync(to.path, `${JSON.stringify(record, null, 2)}\n`);
  writeFileSync(to.html, await to.draw(record));
  console.log(`\nwritten to ${to.path}, drawn in ${to.html}`);
}
