/** Requests of the HTTP API: paths, queries, headers, envelopes. Answers are in lib/api/schemas.ts. */
import { z } from 'zod';
import type {} from 'zod-openapi';
import { MAX_CALLER_ID } from '../domain/caller.ts';
import { driftRisk, jobState, purchaseOption, taskState } from './schemas.ts';
import { COST_KEYS } from '../domain/costs.ts';

/** Largest request body, bytes. A stage of 10,000 tasks is one line, so a job file of this size is a mistake. */
export const MAX_BODY_BYTES = 1_048_576;
/** Most jobs in one batch: one durable write of them does not delay others. */
export const MAX_BATCH_JOBS = 500;
/** Longest piece of a log in one answer, bytes; Lambda's own answer limit is 6 MiB. */
export const MAX_LOG_BYTES = 1_048_576;

/** Most rows of a cost report in one answer: some 2 MB with long keys. */
export const MAX_COST_ROWS = 5000;

/** Paths whose POST goes to the intake Lambda. */
export const JOBS_PATH = '/api/jobs';
export const BATCH_PATH = '/api/jobs/batch';
export const INTAKE_PATHS: ReadonlySet<string> = new Set([JOBS_PATH, BATCH_PATH, `${JOBS_PATH}/`, `${BATCH_PATH}/`]);

/**
 * Text without control characters, which must not reach a store, a log or a terminal. Not \p{Cc}: not every dialect
 * that reads the OpenAPI document has it.
 */
// oxlint-disable-next-line no-control-regex -- those are the ones that it is about
const PRINTABLE = /^[^\u0000-\u001f\u007f-\u009f]+$/;
const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(PRINTABLE, 'must have no control characters')
    .refine((s) => s.isWellFormed(), 'must be valid Unicode');

/**
 * Whole number in decimal digits, within bounds. JavaScript also reads `''`, `'1e3'`, `'0x10'` and `' 7'` as numbers;
 * in a query they are mistakes.
 */
function wholeNumber(minimum: number, maximum: number) {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, message)
    .meta({ override: documented({ type: 'integer', minimum, maximum }) });
}

/** Whole number with a default. */
const wholeNumberOr = (minimum: number, maximum: number, fallback: number) =>
  wholeNumber(minimum, maximum)
    .default(fallback)
    .meta({ override: documented({ type: 'integer', minimum, maximum, default: fallback }) });

/** Number in the OpenAPI document, although it arrives as text. */
const documented =
  (as: object) =>
  ({ jsonSchema }: { jsonSchema: object }): void => {
    delete (jsonSchema as { pattern?: string }).pattern;
    Object.assign(jsonSchema, as);
  };

const limit = (maximum: number, fallback: number) =>
  wholeNumberOr(1, maximum, fallback).describe('Most items in the answer.');
const cursor = text(400).optional().describe('`next` of the previous page.');

/** Id, or a name: of several jobs with it, the unfinished one; with several unfinished ones, a conflict. */
export const jobPath = z.strictObject({
  job: text(200).describe('Id, or name.').meta({ example: 'nightly-render' }),
});
export const noQuery = z.strictObject({});

export const jobsQuery = z.strictObject({
  limit: limit(1000, 100),
  cursor,
  state: z.array(jobState).optional().describe('May be repeated: any of these states.'),
  owner: text(MAX_CALLER_ID).optional(),
  name: text(200).optional(),
  label: text(600)
    .regex(/^[^=]+=/, 'must be of the form key=value')
    .optional()
    .describe('`key=value`: jobs that carry this label.'),
});
export const tasksQuery = z.strictObject({
  limit: limit(1000, 100),
  cursor,
  stage: text(200).optional(),
  state: z.array(taskState).optional().describe('May be repeated: any of these states.'),
});
export const attemptsQuery = z.strictObject({
  limit: limit(1000, 100),
  cursor,
  stage: text(200).optional(),
  task: wholeNumber(0, 1_000_000).optional().describe('Index of the task.'),
});
export const failuresQuery = z.strictObject({
  limit: limit(20, 3).describe('Most tasks.'),
  stage: text(200).optional(),
  task: wholeNumber(0, 1_000_000).optional().describe('Index of the task.'),
});
export const logsQuery = z.strictObject({
  stage: text(200).optional().describe('Needed when the job has several stages.'),
  task: wholeNumberOr(0, 1_000_000, 0).describe('Index of the task in its stage.'),
  attempt: wholeNumber(1, 1_000_000)
    .optional()
    .describe('Number of the attempt; if absent, the one that tells how the task fares (`latest`).'),
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  offset: wholeNumberOr(0, Number.MAX_SAFE_INTEGER, 0).describe('First byte.'),
  limit: wholeNumberOr(1, MAX_LOG_BYTES, 65_536).describe('Most bytes.'),
});
export const costsQuery = z.strictObject({
  limit: limit(MAX_COST_ROWS, 1000),
  cursor: text(2000).optional().describe('`next` of the previous page.'),
  by: z.enum(COST_KEYS).default('job'),
  idle: z
    .enum(['shared', 'apart'])
    .default('shared')
    .describe('`shared`: idle time is in the rows of the jobs that caused it; `apart`: in a row of its own.'),
});
/** `true` or `false` in a query. */
const flag = () =>
  z
    .enum(['true', 'false'])
    .transform((v) => v === 'true')
    .optional()
    .meta({ override: documented({ type: 'boolean', enum: [true, false] }) });

export const poolsQuery = z.strictObject({
  limit: limit(5000, 1000),
  cursor,
  option: purchaseOption.optional(),
  zone: text(100).optional(),
  type: text(100).optional().describe('Instance type, exactly.'),
});
export const forecastsQuery = z.strictObject({
  limit: limit(1000, 100),
  cursor,
  zone: text(100).optional(),
  type: text(100).optional().describe('Instance type, exactly.'),
});
export const neighboursQuery = z.strictObject({
  rows: flag().describe('true: also all that is stored, for another engine to begin with.'),
});
export const driftQuery = z.strictObject({
  limit: limit(1000, 100).describe('Most pools.'),
  by: text(200)
    .optional()
    .describe('Only instances bought by forecasts of this version of a model, `history` or (of capacity) `observed`.'),
  risk: driftRisk.default('any').describe('Interruptions of any cause, or for want of capacity alone.'),
});
export const instancesQuery = z.strictObject({
  limit: limit(1000, 100),
  cursor,
  live: flag().describe('true: not ended; false: ended; absent: all.'),
});
export const plansQuery = z.strictObject({ limit: limit(200, 20), cursor });
export const eventsQuery = z.strictObject({
  after: wholeNumber(0, Number.MAX_SAFE_INTEGER)
    .default(0)
    .optional()
    .describe('Only events with a higher sequence. The header Last-Event-ID, if given, is stronger.'),
  limit: limit(1000, 200),
  job: text(200).optional().describe('Only events of this job: id or name.'),
});

export const idempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII characters')
  .describe('Chosen by the client: the same key with the same body makes one job however often it is sent.');

export const batchEnvelope = z.strictObject({
  jobs: z
    .array(z.unknown())
    .min(1)
    .max(MAX_BATCH_JOBS)
    .describe('Job files. With an Idempotency-Key, job number i is known as `key/i`.'),
  keys: z
    .array(idempotencyKey.nullable())
    .max(MAX_BATCH_JOBS)
    .optional()
    .describe('In place of an Idempotency-Key: for each job the key that it has, or null.'),
});
