/** Stored rows of what is learned about neighbours, by kind. */
import { z } from 'zod';

/** Version of the rows. */
export const VERSION = 2;

const bandit = z.object({ h: z.record(z.string(), z.number()), mean: z.number(), count: z.number() });
const normal = z.object({ mean: z.number(), variance: z.number().positive() });
const version = z.literal(VERSION);
const profile = z.array(z.number()).length(5);
const usual = z.object({
  mean: z.number(),
  noise: z.number(),
  count: z.number(),
  exposures: z.record(z.string(), z.number()),
});
export const templateRow = z.object({
  version,
  profile,
  count: z.number(),
  moved: z.object({ disk: z.number(), net: z.number() }),
  usual: usual.nullable(),
  pace: usual.nullable(),
});
export const groupingRow = z.object({
  version,
  grouping: z.object({ groups: z.array(z.object({ id: z.string(), centre: profile })), next: z.int() }),
});
export const groupRow = z.object({ version, bandit: bandit.nullable(), pairs: z.record(z.string(), normal) });
export const singleRow = z.object({ version, bandit });
const rate = z.number().min(0);
export const machineRow = z.object({ version, diskRead: rate, diskWritten: rate, netReceived: rate, netSent: rate });
export const endingsRow = z.object({
  version,
  ended: z.array(z.object({ template: z.string(), part: z.number(), startedMs: z.number(), endedMs: z.number() })),
});

/** A stored row; null: it is empty, damaged, or of another version. */
export function parsed<T extends z.ZodType>(schema: T, text: string): z.output<T> | null {
  if (text === '') return null;
  try {
    const found = schema.safeParse(JSON.parse(text));
    return found.success ? found.data : null;
  } catch {
    return null;
  }
}
