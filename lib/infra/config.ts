/**
 * What one deployment is: the file `ebbtide.config.yaml`, CDK context values (`-c ebbtide:families=c6i,m6i`), or the
 * `config` of the `Ebbtide` construct, all checked by this one schema. Everything that is wrong is said at once, with
 * the key and what to do.
 */
import { nearestHint, nearestName } from '../domain/nearest-name.ts';
import { z } from 'zod';
import type { Arch } from '../domain/pool.ts';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import { presetNamed } from '../stages/registry.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';
import { vcpusIn } from '../kernel/units.ts';
import { builtInCatalogue, TODAY } from '../market/catalogue.ts';

/** What CloudWatch Logs takes as retention ("PutRetentionPolicy", RetentionInDays), up to two years. */
const RETENTION_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] as const;
/**
 * EC2 names zones by the region and a letter; local and wavelength zones have longer names and no spot market worth it.
 */
const ZONE = /^[a-z]{2}(?:-[a-z]+)+-\d[a-z]$/;
const REGION = /^[a-z]{2}(?:-[a-z]+)+-\d$/;
const SUBNET_EXAMPLE = '`eu-central-1a: subnet-...`';

/** Bounds: these lists go into the environment of the functions, which is 4 KB in all (Lambda quotas). */
const MAX_RESERVATIONS = 20;
const MAX_ADMINS = 20;
const MAX_ADMIN_LENGTH = 200;
const MAX_ADMINS_LENGTH = 1000;
/** With the account, and for a role with its name: a shorter beginning would let in callers whom nobody had in mind. */
const ADMIN =
  /^(?:arn:aws[\w-]*:iam::\d{12}:(?:user\/[\w+=,.@/-]+|role\/(?:[\w+=,.@-]+\/)*[\w+=,.@-]+)|arn:aws[\w-]*:sts::\d{12}:(?:assumed-role|federated-user)\/[\w+=,.@-]+(?:\/[\w+=,.@-]*)?|cognito(?:-group)?:[^\s*]+)\*?$/;
const ADMIN_RULE =
  'is no caller such as arn:aws:iam::111122223333:role/Ops, arn:aws:iam::111122223333:user/ana, cognito:ana or cognito-group:ops; only the end may be `*`';

const subnets = z
  .record(
    z.string().regex(ZONE, 'is no availability zone such as eu-central-1a'),
    z.string().regex(/^subnet-[\da-f]{8}(?:[\da-f]{9})?$/, 'is no subnet id such as subnet-0a1b2c3d'),
    {
      error: ({ code }) => (code === 'invalid_type' ? `must name a subnet of each zone, ${SUBNET_EXAMPLE}` : undefined),
    },
  )
  .refine((all) => Object.keys(all).length > 0, `names no subnet: give at least one, ${SUBNET_EXAMPLE}`);

const vpc = z
  .union([
    z.literal('new'),
    z.literal('default'),
    z.strictObject({
      id: z.string().regex(/^vpc-[\da-f]{8}(?:[\da-f]{9})?$/, 'is no VPC id such as vpc-0a1b2c3d'),
      subnets: subnets.describe(
        'One subnet per zone to buy in. Instances need a way out to ECS, ECR and CloudWatch Logs.',
      ),
    }),
  ])
  .default('new');

/** Every key, its default and what it means. docs/reference/deployment.md is generated from it. */
export const deploymentConfig = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z][a-z\d-]{1,23}$/, 'must be 2 to 24 of a-z, 0-9 and -, beginning with a letter')
      .default('ebbtide')
      .describe(
        'Names the stacks, what they make, and the tag `ebb:stack` of every instance. One per region and account.',
      ),
    account: z
      .string()
      .regex(/^\d{12}$/, 'must be the 12 digits of an AWS account, in quotes')
      .optional()
      .describe('Refuses to deploy anywhere else. Default: the account of your credentials.'),
    region: z
      .string()
      .regex(REGION, 'is no region such as eu-central-1')
      .optional()
      .describe('Default: the region of your AWS profile.'),
    vpc: vpc.describe(
      '`new`: a VPC with public subnets and no NAT gateway. `default`: the region’s default VPC, looked up with your credentials. Or `id` and `subnets` of one that you have.',
    ),
    zones: z
      .number()
      .int()
      .min(1)
      .max(6)
      .default(3)
      .describe(
        'Zones of a new VPC, or all of them where the region has fewer. Each has spot prices and capacity of its own.',
      ),
    families: z
      .array(z.string())
      .min(1, 'names no family: nothing could be bought')
      .default(['c6i', 'c7i', 'm6i', 'm7i', 'r6i', 'r7i'])
      .describe('Instance families that may be bought, all of one architecture.'),
    reservations: z
      .array(z.string().regex(/^cr-[\da-f]{17}$/, 'is no id of a capacity reservation such as cr-0a1b2c3d4e5f60718'))
      .max(MAX_RESERVATIONS)
      .refine((ids) => new Set(ids).size === ids.length, 'names a reservation twice')
      .default([])
      .describe(
        'On-Demand Capacity Reservations whose instances are used before others are bought, at no cost of their own ([more](../deploy.md#capacity-reservations)).',
      ),
    maxVcpus: z
      .number()
      .int()
      .min(2)
      .max(100_000)
      .default(256)
      .describe(
        'Most vCPUs held at once, within what one ECS cluster and the subnets hold. Your account’s EC2 quotas may be lower.',
      ),
    budgetUsdPerDay: z
      .number()
      .positive()
      .default(50)
      .describe(
        'Raises an alarm when the instances of a day (UTC) cost more. It stops nothing: `maxCost` of a job and the setting `maxUsdPerDay` do.',
      ),
    auth: z
      .enum(['iam', 'jwt'])
      .default('iam')
      .describe(
        '`iam`: requests signed with AWS credentials. `jwt`: tokens of the Cognito user pool in `userPoolArn`.',
      ),
    userPoolArn: z
      .string()
      .regex(/^arn:aws[\w-]*:cognito-idp:[\w-]+:\d{12}:userpool\/[\w-]+$/, 'is no ARN of a Cognito user pool')
      .optional()
      .describe('Whose tokens are taken; with `auth: jwt` only.'),
    ownerIsCaller: z
      .boolean()
      .default(false)
      .describe(
        '`true`: a job belongs to who submits it, its file may name no other `owner`, and only they and `admins` may cancel it.',
      ),
    admins: z
      .array(z.string().max(MAX_ADMIN_LENGTH).regex(ADMIN, ADMIN_RULE))
      .max(MAX_ADMINS)
      .default([])
      .describe(
        'Who may cancel any job, with `ownerIsCaller`: ARNs of users or roles, or `cognito:USER` and `cognito-group:GROUP`; a `*` at the end stands for anything.',
      ),
    requestsPerSecond: z
      .number()
      .int()
      .min(1)
      .max(1000)
      .default(50)
      .describe('Requests that the API takes per second; twice as many for a moment.'),
    retentionDays: z
      .literal(RETENTION_DAYS, `must be one of ${RETENTION_DAYS.join(', ')}: CloudWatch takes no other`)
      .default(30)
      .describe(
        'How long logs are kept: of tasks, functions and requests. Jobs and instances: the setting `historyDays`.',
      ),
    traces: z
      .boolean()
      .default(false)
      .describe('X-Ray traces of requests and cycles. One costs 25 times what the call of a function does.'),
    defaultImage: z
      .string()
      .regex(/^[\w][\w.:/@-]*$/, 'is no container image')
      .default('public.ecr.aws/docker/library/debian:stable-slim')
      .describe('Container image of stages that name none.'),
    lambdaArch: z
      .enum(['arm64', 'x86_64'])
      .default('arm64')
      .describe(
        'Architecture of the functions, not of instances. `x86_64` where a region has no other, for more money.',
      ),
    preset: z.string().default('ebbtide').describe('Which policies decide: `ebb config --presets` lists them.'),
    settings: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Settings of the scheduler: `ebb config` lists them.'),
    alarmEmail: z
      .email('is no e-mail address')
      .optional()
      .describe('Who is told of alarms; AWS asks for a confirmation first. Without, alarms are only shown.'),
    cycleConcurrency: z
      .number()
      .int()
      .min(1)
      .max(40)
      .default(4)
      .describe(
        'Parts of a cycle’s launches and starts that are done at once. A new account runs ten functions at once in all.',
      ),
    draining: z
      .boolean()
      .default(false)
      .describe('`true`: nothing starts any more, running tasks save and stop, instances are given back.'),
    keepData: z
      .boolean()
      .default(true)
      .describe(
        'Table, bucket and the output of tasks outlive their stacks. `false` for a trial that leaves nothing behind.',
      ),
    restoredTable: z
      .string()
      .regex(
        /^arn:aws[\w-]*:dynamodb:[a-z\d-]+:\d{12}:table\/[\w.-]{3,255}\/stream\/[\w:.-]+$/,
        'is no ARN of the stream of a DynamoDB table, such as arn:aws:dynamodb:eu-central-1:123456789012:table/ebbtide-restored/stream/2026-01-05T12:00:00.000',
      )
      .optional()
      .describe(
        'Stream ARN of a table that was restored from a backup: the deployment works on that table (docs/deploy.md, "Restore").',
      ),
  })
  .describe('A deployment of Ebbtide.');

export type DeploymentConfig = z.output<typeof deploymentConfig>;
export type DeploymentConfigInput = z.input<typeof deploymentConfig>;

/** The architecture of the families; they have one, or the configuration was refused. */
export const architectureOf = (config: Pick<DeploymentConfig, 'families'>): Arch =>
  facts(config.families[0] ?? '')?.arch ?? 'x86_64';

/** How long what is over is kept. */
export const historyDaysOf = ({ settings }: Pick<DeploymentConfig, 'settings'>): number =>
  schedulerConfig.parse(settings).historyDays;

/** What holds keys at all: a file's content may be anything, and so may what a construct is given. Throws `usage`. */
export function mappingOf(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new EbbError('usage', {
    what: 'the configuration is not a mapping of keys',
    got: `${where}: ${Array.isArray(value) ? 'a list' : value === null ? 'nothing' : typeof value}`,
    allowed: 'lines such as `budgetUsdPerDay: 20`; in code an object such as { budgetUsdPerDay: 20 }',
    next: 'docs/deploy.md has an example',
  });
}

/** Throws `usage` with every finding. `where` is what messages call the input: a file name, or the construct. */
export function checkedDeployment(input: unknown, where: string): DeploymentConfig {
  const parsed = deploymentConfig.safeParse(mappingOf(input, where));
  const issues = parsed.success ? rules(parsed.data) : parsed.error.issues.flatMap(issuesOf);
  // What single keys mean together is looked at even when others are of the wrong form.
  if (!parsed.success) issues.push(...rules(presentable(input), new Set(issues.map((i) => i.at.split(/[.[]/)[0]))));
  const [first] = issues;
  if (first === undefined && parsed.success) return parsed.data;
  throw new EbbError('usage', {
    what:
      issues.length === 1 && first !== undefined
        ? `${where}: ${first.at}: ${first.message}`
        : `${where} has ${issues.length} keys that cannot be deployed`,
    issues,
    next: 'docs/deploy.md lists every key with its default',
  });
}

function issuesOf(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code === 'unrecognized_keys') {
    const allowed = issue.path[0] === 'vpc' ? ['id', 'subnets'] : Object.keys(deploymentConfig.shape);
    return issue.keys.map((key) => ({
      at: [...issue.path, key].join('.'),
      message: `no such key; ${nearestHint(key, allowed)}`,
    }));
  }
  if (issue.code === 'invalid_union' && issue.path[0] === 'vpc') {
    // The object's own findings say more than "none of the three".
    const inner = issue.errors.find((e) => e.some((i) => i.path.length > 0 || i.code === 'unrecognized_keys'));
    if (inner !== undefined) return inner.flatMap((i) => issuesOf({ ...i, path: ['vpc', ...i.path] }));
    return [{ at: 'vpc', message: 'must be new, default, or an object with `id` and `subnets`' }];
  }
  // What is wrong with a key of a mapping is said within.
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return [{ at: issue.path.join('.'), message }];
}

/** The defaults with those keys of the input that are of the right form, each taken alone. */
function presentable(input: unknown): DeploymentConfig {
  const given = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {};
  const sound = Object.entries(deploymentConfig.shape).flatMap(([key, schema]) => {
    const parsed = schema.safeParse(given[key]);
    return parsed.success && parsed.data !== undefined ? [[key, parsed.data] as const] : [];
  });
  return deploymentConfig.parse(Object.fromEntries(sound));
}

/** What no single key can say. Keys in `skip` are known to be wrong already. */
function rules(config: DeploymentConfig, skip: ReadonlySet<string | undefined> = new Set()): Issue[] {
  const found = [
    ...families(config),
    ...places(config),
    ...size(config),
    ...access(config),
    ...owners(config),
    ...scheduling(config),
  ];
  return found.filter((i) => !skip.has(i.at.split(/[.[]/)[0]));
}

function families({ families: named }: DeploymentConfig): Issue[] {
  const known = knownFamilies();
  const unknown = named.flatMap((family, n) =>
    known.has(family)
      ? []
      : [
          {
            at: `families[${n}]`,
            message: `no such instance family: ${family}${nearFamily(family, [...known.keys()])}`,
          },
        ],
  );
  const without = named.flatMap((family, n) => {
    const at = `families[${n}]`;
    if (named.indexOf(family) < n) return [{ at, message: `${family} is there twice` }];
    if (known.get(family)?.gpu !== true) return [];
    return [{ at, message: `${family} has GPUs, whose drivers the image of the instances lacks; leave it out` }];
  });
  const refused = [...unknown, ...without];
  const archs = Map.groupBy(
    named.filter((f) => known.has(f)),
    (f) => known.get(f)?.arch,
  );
  if (archs.size <= 1) return refused;
  const sides = [...archs].map(([arch, list]) => `${list.join(', ')} are ${arch}`).join('; ');
  return [...refused, { at: 'families', message: `one deployment has one architecture: ${sides}; leave one kind out` }];
}

/**
 * Container instances per cluster: "Amazon ECS service quotas", not adjustable. The sweep compares as many within its
 * time-out.
 */
const CLUSTER_INSTANCES = 5000;
/** Addresses of a /20, but for the five that AWS keeps of each subnet ("Subnet CIDR reservations", VPC user guide). */
const SUBNET_ADDRESSES = 4096 - 5;
const SPLIT =
  'or split the work over several deployments, each with a `name` of its own (docs/deploy.md, "How large one deployment may be")';

/** Whether one deployment can hold `maxVcpus`, should all of it be instances of the smallest size that is bought. */
function size({ vpc: network, zones, maxVcpus, families: named }: DeploymentConfig): Issue[] {
  const least = Math.min(...named.map((family) => facts(family)?.leastVcpus ?? Infinity));
  if (!Number.isFinite(least)) return [];
  const most = (instances: number): number => Math.floor(instances * least);
  const issues: Issue[] = [];
  const tooMany = (instances: number, limit: string, wayOut: string): void => {
    if (maxVcpus <= most(instances)) return;
    const message = `${maxVcpus} is more than ${limit} can hold: ${instances} instances, of ${least} vCPUs where they are smallest, are ${most(instances)}; lower it to ${most(instances)}, ${wayOut}${SPLIT}`;
    issues.push({ at: 'maxVcpus', message });
  };
  tooMany(CLUSTER_INSTANCES, 'one ECS cluster', 'choose families of larger instances, ');
  // A region may have fewer zones than this; what subnets of others hold is not known here.
  if (network === 'new')
    tooMany(
      zones * SUBNET_ADDRESSES,
      `the /20 subnets of ${zones} zone${zones === 1 ? '' : 's'}`,
      'take more `zones`, a VPC of your own, ',
    );
  return issues;
}

function places({ vpc: network, account, region }: DeploymentConfig): Issue[] {
  const issues: Issue[] = [];
  if (network === 'default' && (account === undefined || region === undefined))
    issues.push({
      at: 'vpc',
      message:
        'the default VPC is looked up in one account and region: set account and region, or log in first (`aws sts get-caller-identity`), or set vpc to new',
    });
  if (typeof network === 'object' && region !== undefined)
    for (const zone of Object.keys(network.subnets))
      if (!zone.startsWith(region))
        issues.push({ at: `vpc.subnets.${zone}`, message: `is not in the region ${region}` });
  return issues;
}

function owners({ auth, ownerIsCaller, admins }: DeploymentConfig): Issue[] {
  const issues: Issue[] = [];
  if (admins.length > 0 && !ownerIsCaller)
    issues.push({
      at: 'admins',
      message: 'has no meaning while everybody may cancel every job; set ownerIsCaller to true',
    });
  if (admins.reduce((sum, admin) => sum + admin.length, 0) > MAX_ADMINS_LENGTH)
    issues.push({
      at: 'admins',
      message: `is longer than ${MAX_ADMINS_LENGTH} characters in all; name a role or a group`,
    });
  for (const [n, admin] of admins.entries()) {
    const isToken = admin.startsWith('cognito');
    if (isToken !== (auth === 'jwt'))
      issues.push({
        at: `admins[${n}]`,
        message: `${admin} never calls with auth: ${auth}; name ${isToken ? 'an ARN' : 'cognito:USER or cognito-group:GROUP'}`,
      });
  }
  return issues;
}

function access({ auth, userPoolArn, region }: DeploymentConfig): Issue[] {
  if (auth === 'jwt' && userPoolArn === undefined)
    return [{ at: 'userPoolArn', message: 'is needed with auth: jwt; create a Cognito user pool, or set auth to iam' }];
  if (auth === 'iam' && userPoolArn !== undefined)
    return [{ at: 'userPoolArn', message: 'has no meaning with auth: iam; leave it out, or set auth to jwt' }];
  if (userPoolArn !== undefined && region !== undefined && userPoolArn.split(':')[3] !== region)
    return [
      { at: 'userPoolArn', message: `must be in the region ${region}: API Gateway takes no pool of another one` },
    ];
  return [];
}

function scheduling({ preset, settings }: DeploymentConfig): Issue[] {
  const issues: Issue[] = [];
  if (Object.hasOwn(settings, 'preset')) issues.push({ at: 'settings.preset', message: 'set preset itself instead' });
  const parsed = schedulerConfig.safeParse(settings);
  for (const issue of parsed.error?.issues ?? []) {
    const names = Object.keys(schedulerConfig.shape);
    if (issue.code === 'unrecognized_keys')
      for (const key of issue.keys)
        issues.push({ at: `settings.${key}`, message: `no such setting; ${nearestHint(key, names)}` });
    else issues.push({ at: ['settings', ...issue.path].join('.'), message: issue.message });
  }
  if (Object.hasOwn(settings, 'policyModules')) {
    const message = 'policies of your own run in local mode and in the simulator only; a deployment takes shipped ones';
    issues.push({ at: 'settings.policyModules', message });
  }
  const own = schedulerConfig.shape.presets.safeParse(settings['presets']);
  return [...ofPresets(preset, own.data ?? {}), ...issues];
}

/** Every preset of one's own is looked at, so that a fault is found before it is chosen. */
function ofPresets(preset: string, own: SchedulerConfig['presets']): Issue[] {
  return [preset, ...Object.keys(own)].flatMap((name, i): Issue[] => {
    try {
      presetNamed(name, own);
      return [];
    } catch (error) {
      if (!(error instanceof EbbError)) throw error;
      return [{ at: i === 0 ? 'preset' : `settings.presets.${name}`, message: error.message }];
    }
  });
}

interface FamilyFacts {
  readonly arch: Arch;
  readonly gpu: boolean;
  /** vCPUs of the smallest instance. */
  readonly leastVcpus: number;
}

let byFamily: ReadonlyMap<string, FamilyFacts> | null = null;

/** Families of the built-in catalogue. */
function knownFamilies(): ReadonlyMap<string, FamilyFacts> {
  if (byFamily !== null) return byFamily;
  const catalogue = builtInCatalogue();
  const known = new Map<string, FamilyFacts>();
  for (const name of catalogue.types()) {
    const type = catalogue.entry(name, TODAY)?.type;
    if (type === undefined) continue;
    const { family, arch, capacity } = type;
    const leastVcpus = Math.min(vcpusIn(capacity.cpu), known.get(family)?.leastVcpus ?? Infinity);
    known.set(family, { arch, gpu: capacity.gpus > 0, leastVcpus });
  }
  byFamily = known;
  return byFamily;
}

const facts = (family: string): FamilyFacts | undefined => knownFamilies().get(family);

/** There are hundreds of families: they are not listed. */
function nearFamily(family: string, known: readonly string[]): string {
  const near = nearestName(family, known);
  return near === null ? '' : `; did you mean ${near}?`;
}
