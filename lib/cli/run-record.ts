import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { costTotal } from '../api/schemas.ts';
import { replaceFile } from '../drivers/local/fleet/files.ts';

/**
 * Costs of the directory before a run, in `run.json`. A run that is killed and resumed is one run, and its summary
 * covers all of it. Costs at the time of resuming would be a wrong base: a bill may fall in between, by a refund of the
 * first hour.
 */
const runSchema = z.object({
  version: z.literal(1),
  /** Ids of the jobs of the run. */
  jobs: z.array(z.string()),
  /** Records of earlier versions have no speculative cost, and none of moves. */
  before: costTotal.extend({ speculativeUsd: z.number().default(0), movedUsd: z.number().default(0) }),
});
export type RunRecord = Omit<z.infer<typeof runSchema>, 'version'>;

const fileOf = (dir: string): string => join(dir, 'run.json');

/** Record of a run with exactly these jobs. Null if there is none, as for jobs submitted to `ebb up`. */
export function readRun(dir: string, jobs: readonly string[]): RunRecord | null {
  if (!existsSync(fileOf(dir))) return null;
  const parsed = runSchema.safeParse(parsedOrNull(readFileSync(fileOf(dir), 'utf8')));
  if (!parsed.success) return null;
  const known = new Set(parsed.data.jobs);
  return jobs.every((id) => known.has(id)) ? parsed.data : null;
}

export function writeRun(dir: string, record: RunRecord): void {
  replaceFile(fileOf(dir), JSON.stringify({ version: 1, ...record }));
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
