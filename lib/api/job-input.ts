import { z } from 'zod';
import type { JobSpec } from '../domain/job.ts';
export const jobFileBody: z.ZodType = z.unknown();
export const jobExample = {};
export const batchExample = {};
export function readJobFile(_json: unknown): JobSpec {
  throw new Error('not yet');
}
