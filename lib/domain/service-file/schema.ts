import { z } from 'zod';
import { once } from '../../kernel/once.ts';
import { isPositive, raw, type Seconds } from '../../kernel/units.ts';
import { ALLOWED_DURATION, DURATION_PATTERN, parseDuration } from '../job-file/amounts.ts';
import { jobFileSchema } from '../job-file/schema.ts';

/*
 * The service file, key by key. Keys of a replica (command, resources, constraints and so on) are those of a job file.
 * The input form is what people write, what editors check and what the API takes; its output has units resolved.
 */

export const SERVICE_LIMITS = {
  replicas: 1000,
  /** Requests per second of one replica. */
  capacityRps: 1e6,
  concurrency: 100_000,
  latencyS: 3600,
  intervalS: 300,
  graceS: 3600,
  drainS: 3600,
  failures: 100,
  utilityPoints: 100,
} as const;

const durationAtMost = (mostS: number, most: string) => {
  const error = `must be ${ALLOWED_DURATION}, more than 0 and at most ${most}`;
  return z
    .union([z.number({ error }), z.string({ error }).regex(DURATION_PATTERN, { error })], { error })
    .transform((value, context): Seconds => {
      const parsed = parseDuration(value);
      if (parsed !== null && isPositive(parsed) && raw(parsed) <= mostS) return parsed;
      context.issues.push({ code: 'custom', message: error, input: value });
      return z.NEVER;
    });
};

const RATE = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*(rps|\/s|rpm|\/min)?\s*$/;
const RATE_ERROR = `must be a rate such as 20 rps or 300 rpm, more than 0 and at most ${SERVICE_LIMITS.capacityRps} rps`;
const rate = z
  .union([z.number({ error: RATE_ERROR }), z.string({ error: RATE_ERROR }).regex(RATE, { error: RATE_ERROR })], {
    error: RATE_ERROR,
  })
  .transform((value, context): number => {
    const [, amount, unit] = RATE.exec(String(value)) ?? [];
    const perMinute = unit === 'rpm' || unit === '/min';
    const rps = Number(amount) / (perMinute ? 60 : 1);
    if (rps > 0 && rps <= SERVICE_LIMITS.capacityRps) return rps;
    context.issues.push({ code: 'custom', message: RATE_ERROR, input: value });
    return z.NEVER;
  });

const AMOUNT_ERROR = 'must be a number of replicas such as 1, or a share such as 25%';
const replicaAmount = z
  .union(
    [
      z.int({ error: AMOUNT_ERROR }).min(0).max(SERVICE_LIMITS.replicas),
      z.string({ error: AMOUNT_ERROR }).regex(/^(?:100|\d{1,2})%$/, { error: AMOUNT_ERROR }),
    ],
    { error: AMOUNT_ERROR },
  )
  .transform((v) => (typeof v === 'number' ? { count: v } : { share: Number(v.slice(0, -1)) / 100 }));

const share = (what: string) =>
  z
    .number({ error: `must be ${what}, from 0 to 1` })
    .min(0)
    .max(1);

const {
  name,
  owner,
  labels,
  command,
  env,
  secrets,
  image,
  workdir,
  inputs,
  resources,
  constraints,
  preferences,
  placement,
} = jobFileSchema.shape;

/** Keys that a replica's job takes as they are. */
export const REPLICA_KEYS = [
  'name',
  'owner',
  'labels',
  'command',
  'env',
  'secrets',
  'image',
  'workdir',
  'inputs',
  'resources',
  'constraints',
  'preferences',
  'placement',
] as const;

const target = z.strictObject({
  latency: durationAtMost(SERVICE_LIMITS.latencyS, '1h').describe('Longest time for an answer that is in time.'),
  percent: z
    .number()
    .gt(0)
    .lt(100)
    .optional()
    .meta({ description: 'Share of requests that are to be answered in time, per cent.', default: 95 }),
});

const health = z.strictObject({
  path: z
    .string()
    .regex(/^\/[^\s#]{0,1023}$/, { error: 'must be a path such as /healthz' })
    .optional()
    .meta({ description: 'Path of the check, an HTTP GET. A status below 400 is healthy.', default: '/' }),
  interval: durationAtMost(SERVICE_LIMITS.intervalS, '5m')
    .optional()
    .meta({ description: 'Time between two checks of a replica.', default: '5s' }),
  timeout: durationAtMost(SERVICE_LIMITS.intervalS, '5m')
    .optional()
    .meta({ description: 'Longest time for the answer of a check.', default: '2s' }),
  grace: durationAtMost(SERVICE_LIMITS.graceS, '1h')
    .optional()
    .meta({ description: 'Time that a new replica has to become healthy.', default: '1m' }),
  failures: z
    .int()
    .min(1)
    .max(SERVICE_LIMITS.failures)
    .optional()
    .meta({ description: 'Failed checks in a row that take a replica out.', default: 3 }),
});

const update = z.strictObject({
  maxSurge: replicaAmount
    .optional()
    .meta({ description: 'Replicas beyond the wanted number during an update, rounded up.', default: '25%' }),
  maxUnavailable: replicaAmount
    .optional()
    .meta({ description: 'Replicas that may be missing during an update, rounded down.', default: 0 }),
});

export const serviceFileSchema = z
  .strictObject({
    name: name.describe('Name of the service, unique within the deployment.'),
    owner,
    labels,
    class: z.literal('service').optional().describe('Tells a service from a job, for `ebb run` and `ebb up`.'),
    command: command
      .unwrap()
      .describe(
        'What one replica runs: an HTTP server that listens on `$HOST` and `$PORT`. A text for `sh -c`, or a list.',
      ),
    env,
    secrets,
    image,
    workdir,
    inputs,
    resources: resources.describe('What one replica needs.'),
    constraints,
    preferences,
    placement: placement.describe('Hard constraints on where replicas are relative to other tasks of the owner.'),
    target: target.describe('What counts as a good answer, and how many of them there are to be.'),
    capacity: z
      .strictObject({
        perReplica: rate.describe('Requests per second that one replica answers in time: `20 rps`, `300 rpm`.'),
      })
      .optional()
      .describe('Left out: learned from measurements.'),
    concurrency: z
      .int()
      .min(1)
      .max(SERVICE_LIMITS.concurrency)
      .optional()
      .describe('Most requests at once in one replica; further ones wait for a free one. Left out: no limit.'),
    scaling: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: 'Scaling policy: how much load to be ready for.', default: 'reactive' }),
    min: z.int().min(0).max(SERVICE_LIMITS.replicas).optional().meta({ description: 'Fewest replicas.', default: 1 }),
    max: z.int().min(1).max(SERVICE_LIMITS.replicas).optional().meta({ description: 'Most replicas.', default: 10 }),
    health: health.optional().describe('Whether a replica can serve.'),
    drain: durationAtMost(SERVICE_LIMITS.drainS, '1h')
      .optional()
      .meta({ description: 'Longest time for requests in flight when a replica is taken out.', default: '30s' }),
    update: update.optional().describe('How a changed file takes the place of the earlier one.'),
    utility: z
      .union([
        z.literal('linear'),
        z
          .array(z.tuple([share('a share of requests in time'), share('a utility')]))
          .min(2)
          .max(SERVICE_LIMITS.utilityPoints),
      ])
      .optional()
      .meta({
        description: 'Worth of a share of requests in time: `linear`, or points `[share, utility]`, both ascending.',
        default: 'linear',
      }),
    port: z
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe('Port of the service in local mode. Left out: any free one, which `ebb service status` shows.'),
  })
  .meta({ title: 'Ebbtide service file', description: 'An HTTP service: what a replica runs, and what it promises.' });

export type ServiceFile = z.output<typeof serviceFileSchema>;

/** JSON Schema (draft 2020-12) of the input form, for editors. */
export const serviceFileJsonSchema: () => Readonly<Record<string, unknown>> = once(() =>
  z.toJSONSchema(serviceFileSchema, {
    io: 'input',
    override: ({ zodSchema, jsonSchema: written }) => {
      const documented = z.globalRegistry.get(zodSchema)?.['default'];
      if (documented !== undefined) written.default = documented;
    },
  }),
);
