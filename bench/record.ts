/**
 * Records of measured figures: bench/results/*.json, from which docs/results.md is generated. A record has the newest
 * measurement of one figure; git has older ones.
 */
import { execFileSync } from 'node:child_process';
import { z } from 'zod';

const figureRecord = z.strictObject({
  what: z.string().min(1).max(120).describe('The figure and its inputs.'),
  reach: z.string().max(60).nullable().describe('The target; null: none.'),
  seen: z.string().min(1).max(80).describe('The measurement. An interval follows its mean: 0.5 [0.4, 0.6].'),
  met: z.boolean().optional().describe('Whether the target is reached; absent without one.'),
  unit: z.string().max(20).optional().describe('Unit of `reach` and `seen`, where they do not name it.'),
  when: z.iso.date().describe('The day of the measurement.'),
  commit: z
    .string()
    .regex(/^[\da-f]{7,40}$/, 'an abbreviated commit')
    .describe('The commit that recorded it.'),
  command: z.string().min(1).describe('The command that measures it again.'),
  note: z.string().max(120).optional().describe('One short remark: conditions, or why a target is missed.'),
});
export type FigureRecord = z.infer<typeof figureRecord>;

export const figureGroup = z.strictObject({
  title: z.string().min(1).max(40),
  about: z.string().min(1).max(900).describe('One paragraph in Markdown: setting, method, what the figures say.'),
  figures: z.array(
    figureRecord.refine((r) => r.met === undefined || r.reach !== null, 'a figure without a target cannot meet it'),
  ),
});
export type FigureGroup = z.infer<typeof figureGroup>;

export type Measured = Omit<FigureRecord, 'when' | 'commit'>;

/** Prints records with this day and commit as JSON, for bench/results: the output of a benchmark with `--json`. */
export function printRecords(measured: readonly Measured[]): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const when = new Date().toISOString().slice(0, 10);
  console.log(JSON.stringify(z.array(figureRecord).parse(measured.map((m) => ({ ...m, when, commit }))), null, 2));
}
