/** bench/results/stratus.json, which `npm run bench:stratus` writes. */
import { z } from 'zod';
import { estimate } from '../cluster/results.ts';

const presetRow = z.strictObject({
  preset: z.string(),
  usdPerDay: z.number(),
  toStratus: estimate.nullable().describe('Cost over that of `stratus`: ratio of sums over windows, paired.'),
  toHotspot: estimate.nullable(),
  utilisation: estimate.describe('Requested part of what was rented, of the resource that constrains the workload.'),
  latencyP50: z.number().describe('Time from submission to completion over the running time of the longest task.'),
  latencyP95: z.number(),
  bought: z.int(),
  unused: z.int().describe('Instances on which no task ever ran.'),
  moves: z.int(),
  interruptions: z.int(),
  undone: z.int().describe('Jobs that were not done six hours after the window.'),
});
export type PresetRow = z.infer<typeof presetRow>;

const sweepRow = z.strictObject({
  preset: z.string(),
  h: z.number(),
  toTrue: estimate.nullable().describe('Cost over that of `stratus` with true running times.'),
  latencyP50: z.number(),
  latencyP95: z.number(),
  bought: z.int(),
  moves: z.int(),
});
export type SweepRow = z.infer<typeof sweepRow>;

const table = z.strictObject({
  workload: z.string(),
  market: z.string(),
  about: z.string(),
  windows: z.int(),
  jobs: z.int(),
  tasks: z.int(),
  constrains: z.enum(['vCPU', 'memory']),
  presets: z.array(presetRow),
  sweep: z.array(sweepRow).optional(),
  when: z.iso.date(),
  commit: z.string(),
});
export type Table = z.infer<typeof table>;

export const stratusRecord = z.strictObject({
  command: z.string(),
  part: z.enum(['tune', 'report']),
  gapS: z.number().describe('Least seconds between two decisions.'),
  tables: z.array(table),
});
export type StratusRecord = z.infer<typeof stratusRecord>;
