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
  const { when, commit } = stamp();
  console.log(JSON.stringify(z.array(figureRecord).parse(measured.map((m) => ({ ...m, when, commit }))), null, 2));
}

const estimate = z.strictObject({
  value: z.number(),
  /** Of the 95 % interval; null: fewer than two units. */
  low: z.number().nullable(),
  high: z.number().nullable(),
});

/** The presets on one ground. Costs are ratios of sums over its cases. */
const groundRecord = z.strictObject({
  ground: z.string(),
  when: z.iso.date(),
  commit: z.string().regex(/^[\da-f]{7,40}$/),
  about: z.string(),
  cases: z.int(),
  units: z.int().describe('What intervals draw again: windows, or cases that share no prices.'),
  presets: z.array(
    z.strictObject({
      preset: z.string(),
      usd: z.number(),
      toOnDemand: estimate.nullable().describe('Of the on-demand reference.'),
      toBound: estimate.nullable().describe('Charges before refunds, of the lower bound.'),
      deadlines: z.int(),
      missed: z.int(),
      undone: z.int().describe('Jobs that were not done at all.'),
    }),
  ),
  winner: z.string().nullable().describe('Cheapest preset that misses at most 1 %; null: there is none.'),
  toRival: z
    .strictObject({ rival: z.string(), ratio: estimate })
    .nullable()
    .describe('`ebbtide` over the cheapest other preset that misses at most 1 %, paired.'),
  groups: z
    .array(z.strictObject({ group: z.string(), cases: z.int(), toOnDemand: z.number(), most: z.number() }))
    .describe('`ebbtide` by part of the ground: its ratio to the reference, and the largest of a case.'),
});
export type GroundRecord = z.infer<typeof groundRecord>;

/** bench/results/default.json, which `npm run bench:default` writes. */
export const defaultRecord = z.strictObject({
  command: z.string(),
  part: z.enum(['tune', 'report']),
  grounds: z.array(groundRecord),
});
export type DefaultRecord = z.infer<typeof defaultRecord>;

/** Today and this commit, for a record. */
export const stamp = (): { readonly when: string; readonly commit: string } => ({
  when: new Date().toISOString().slice(0, 10),
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(),
});
