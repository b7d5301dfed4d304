/**
 * Environment of a deployment's Lambdas. One schema reads it here and types what the CDK construct sets
 * (`LambdaEnvironment`), so the two cannot drift.
 */
import { z } from 'zod';
import { EbbError } from '../../../kernel/errors.ts';
import { schedulerConfig } from '../../../domain/config.ts';
import type { Limits } from '../../../domain/snapshot.ts';
import { settingsUnder } from '../../../policy/preset-chain.ts';

const fromJson = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' });
    return z.NEVER;
  }
});

/** The part of the deployment's configuration that the Lambdas need. */
export const lambdaConfig = z.strictObject({
  /** The deployment's name: the tag `ebb:stack` of all that it makes. */
  name: z.string().min(1),
  /** Instance families that may be bought. */
  families: z.array(z.string().min(1)).min(1),
  /** Most vCPUs held at once. */
  vcpus: z.number().int().positive(),
  /** Container image of stages that name none. */
  image: z.string().min(1),
  /** Settings of the scheduler that differ from the defaults, including the preset; read with those that it sets. */
  settings: schedulerConfig.prefault({}).transform((settings) => settingsUnder(settings.preset, settings)),
  /** True: nothing starts, running tasks save and stop, instances are given back. */
  draining: z.boolean().default(false),
  /** True: jobs belong to their submitters. Only these and `admins` may cancel them. */
  ownerIsCaller: z.boolean().default(false),
  /** Patterns of callers (lib/api/access.ts). */
  admins: z.array(z.string()).default([]),
  /** Ids of capacity reservations. */
  reservations: z.array(z.string()).default([]),
});
/** Limits of the deployment, with the name that people know. */
export const limitsOf = ({ vcpus }: Pick<z.output<typeof lambdaConfig>, 'vcpus'>): Limits => ({
  vcpus,
  raisedBy: 'raise `maxVcpus` of the deployment',
});
/** Value that the CDK construct writes as JSON to `EBB_CONFIG`. */
export type LambdaConfigInput = z.input<typeof lambdaConfig>;

/** Clock of a rehearsal on the market of another time, and its speed. */
const clockAnchor = z.strictObject({
  wallMs: z.number(),
  engineMs: z.number(),
  speed: z.number().positive(),
});

const subnets = z.string().transform((text, context): ReadonlyMap<string, string> => {
  const zones = new Map<string, string>();
  for (const pair of text.split(',')) {
    const [, zone, subnet] = /^([^=\s]+)=([^=\s]+)$/.exec(pair.trim()) ?? [];
    if (zone === undefined || subnet === undefined) {
      context.addIssue({ code: 'custom', message: `"${pair}" is not of the form zone=subnet` });
    } else zones.set(zone, subnet);
  }
  return zones;
});

const name = z.string().min(1);

export const lambdaEnvironment = z.strictObject({
  EBB_TABLE: name.describe('Name of the DynamoDB table.'),
  EBB_BUCKET: name.describe('Name of the S3 bucket.'),
  EBB_CLUSTER: name.describe('Name or ARN of the ECS cluster.'),
  EBB_LAUNCH_TEMPLATE: name.describe('Id of the EC2 launch template.'),
  EBB_LAUNCH_TEMPLATE_VERSION: z
    .string()
    .regex(/^[1-9]\d*$/, 'is no version number of a launch template')
    .describe('Version of it that this deployment made: an update leaves the template’s default version as it is.'),
  EBB_SUBNETS: subnets.describe('`zone=subnet`, separated by commas: where instances may be.'),
  EBB_STATE_MACHINE: name.describe('ARN of the state machine that runs the cycle.'),
  EBB_TRIGGER_QUEUE: name.describe('URL of the queue that wakes the cycle.'),
  EBB_REGION: name.describe('Region of the deployment.'),
  EBB_CONFIG: fromJson.pipe(lambdaConfig).describe('JSON of `lambdaConfig`.'),
  EBB_LOG_GROUP: name.describe('CloudWatch log group of the tasks.'),
  EBB_EXECUTION_ROLE: name.describe('ARN of the role with which ECS pulls images and writes logs.'),
  EBB_TASK_ROLE: name.describe('ARN of the role that tasks run with.'),
  EBB_TRIGGER_QUEUE_ARN: name.optional().describe('ARN of that queue, for one-off schedules.'),
  EBB_SCHEDULE_GROUP: name.optional().describe('Group of the one-off schedules; absent: there are none.'),
  EBB_SCHEDULE_ROLE: name.optional().describe('ARN of the role with which they send to the queue.'),
  EBB_FORECAST_FUNCTION: name
    .optional()
    .describe('Name of the function that asks the trained model, where one is chosen.'),
  EBB_LOAD_BALANCER: name.optional().describe('ARN of the load balancer of services; absent: there are none.'),
  EBB_LOAD_BALANCER_DNS: name.optional().describe('DNS name of that load balancer.'),
  EBB_VPC: name.optional().describe('Id of the VPC of instances, for target groups of services.'),
  EBB_CERTIFICATE: name.optional().describe('ARN of the certificate of services; absent: they speak HTTP.'),
  EBB_SERVE_FUNCTION: name.optional().describe('Name of the function that runs services, for those that start it.'),
  EBB_CLOCK: fromJson.pipe(clockAnchor).optional().describe('JSON of a clock anchor; absent: the wall clock.'),
  EBB_VERSION: name.default('0.0.0').describe('The version that was deployed.'),
  EBB_CODE: name
    .default('unknown')
    .describe('Version of the functions’ code: steps of the cycle read no values of other code.'),
  POWERTOOLS_SERVICE_NAME: name.default('ebbtide'),
  POWERTOOLS_METRICS_NAMESPACE: name.default('Ebbtide'),
  POWERTOOLS_LOG_LEVEL: z.enum(['DEBUG', 'INFO', 'WARN', 'ERROR']).default('INFO'),
  POWERTOOLS_TRACE_ENABLED: z.enum(['true', 'false']).default('false'),
});

/** Variables as set: strings. */
export type LambdaEnvironment = z.input<typeof lambdaEnvironment>;
/** Variables as read. */
export type Environment = z.output<typeof lambdaEnvironment>;

/**
 * Environment of this process. Unknown names that begin with `EBB_` are refused, since they may be misspelt. Throws
 * `usage` with all findings.
 */
export function readEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const known = new Set(Object.keys(lambdaEnvironment.shape));
  const ours = Object.entries(env).filter(([key, value]) => {
    return value !== undefined && (known.has(key) || key.startsWith('EBB_'));
  });
  const parsed = lambdaEnvironment.safeParse(Object.fromEntries(ours));
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((i) => ({ at: i.path.join('.') || 'environment', message: i.message }));
  throw new EbbError('usage', {
    what: 'the environment of this Lambda is not that of a deployment',
    got: issues.map((i) => `${i.at}: ${i.message}`).join('; '),
    issues,
    next: 'deploy again: the CDK construct sets every variable',
  });
}
