/** bench/results/hopper.json, which `npm run bench:hopper` writes. */
import { z } from 'zod';
import { estimate } from '../cluster/results.ts';

const row = z.strictObject({
  preset: z.string(),
  meanS: z.number().describe('Mean time from submission to completion.'),
  toSpeculation: estimate.nullable().describe('Sum of completion times over that of `srpt-speculation`.'),
  toHopper: estimate.nullable().describe('The same over that of `hopper-unfair`.'),
  p50S: z.number(),
  p95S: z.number(),
  copies: z.number().describe('Copies per task.'),
  superseded: z.number().describe('Part of the slot time whose results were thrown away.'),
  undone: z.int(),
});
export type Row = z.infer<typeof row>;

const table = z.strictObject({
  load: z.number(),
  beta: z.number().nullable().describe('null: all of them together.'),
  jobs: z.int(),
  rows: z.array(row),
});
export type Table = z.infer<typeof table>;

export const hopperRecord = z.strictObject({
  command: z.string(),
  part: z.enum(['tune', 'report']),
  when: z.iso.date(),
  commit: z.string(),
  tables: z.array(table),
});
export type HopperRecord = z.infer<typeof hopperRecord>;
