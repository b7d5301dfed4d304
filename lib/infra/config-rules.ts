/** Check of a configuration: its schema, and rules that concern several keys. All findings come at once. */
import type { z } from 'zod';
import { nearestHint, nearestName } from '../domain/nearest-name.ts';
import type { Arch } from '../domain/pool.ts';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import { expectInstances } from '../market/fargate.ts';
import { presetNamed } from '../stages/registry.ts';
import { EbbError, type Issue } from '../kernel/errors.ts';
import { vcpusIn } from '../kernel/units.ts';
import { builtInCatalogue, TODAY } from '../market/catalogue.ts';
import { deploymentConfig, type DeploymentConfig } from './config.ts';

/** Bound: the list goes into the environment of the functions, which is 4 KB in all (Lambda quotas). */
const MAX_ADMINS_LENGTH = 1000;

/** Architecture of the families. A valid configuration has one. */
export const architectureOf = (config: Pick<DeploymentConfig, 'families'>): Arch =>
  familyFacts(config.families[0] ?? '')?.arch ?? 'x86_64';

/**
 * Mapping of keys, for input of any kind: a file's content or a construct's argument. Throws `usage` for other input.
 */
export function mappingOf(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new EbbError('usage', {
    what: 'the configuration is not a mapping of keys',
    got: `${where}: ${Array.isArray(value) ? 'a list' : value === null ? 'nothing' : typeof value}`,
    allowed: 'lines such as `budgetUsdPerDay: 20`; in code an object such as { budgetUsdPerDay: 20 }',
    next: 'docs/deploy.md has an example',
  });
}

/**
 * Valid configuration. Throws `usage` with all findings. `where`: name of the input in messages, a file or the
 * construct.
 */
export function checkedDeployment(input: unknown, where: string): DeploymentConfig {
  const parsed = deploymentConfig.safeParse(mappingOf(input, where));
  const issues = parsed.success ? configIssues(parsed.data) : parsed.error.issues.flatMap(issuesOf);
  // Rules over several keys are checked even if other keys are invalid.
  if (!parsed.success)
    issues.push(...configIssues(presentable(input), new Set(issues.map((i) => i.at.split(/[.[]/)[0]))));
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
    // Findings of the object, which say more than "none of the three".
    const inner = issue.errors.find((e) => e.some((i) => i.path.length > 0 || i.code === 'unrecognized_keys'));
    if (inner !== undefined) return inner.flatMap((i) => issuesOf({ ...i, path: ['vpc', ...i.path] }));
    return [{ at: 'vpc', message: 'must be new, default, or an object with `id` and `subnets`' }];
  }
  // The fault of a mapping's key is in the inner issue.
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return [{ at: issue.path.join('.'), message }];
}

/** Defaults, with those keys of the input that are valid alone. */
function presentable(input: unknown): DeploymentConfig {
  const given = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {};
  const sound = Object.entries(deploymentConfig.shape).flatMap(([key, schema]) => {
    const parsed = schema.safeParse(given[key]);
    return parsed.success && parsed.data !== undefined ? [[key, parsed.data] as const] : [];
  });
  return deploymentConfig.parse(Object.fromEntries(sound));
}

/** Findings that concern several keys together. `skip`: keys that are known to be wrong. */
function configIssues(config: DeploymentConfig, skip: ReadonlySet<string | undefined> = new Set()): Issue[] {
  const found = [
    ...families(config),
    ...places(config),
    ...size(config),
    ...access(config),
    ...services(config),
    ...owners(config),
    ...scheduling(config),
  ];
  return found.filter((i) => !skip.has(i.at.split(/[.[]/)[0]));
}

/** Least zones of an Application Load Balancer ("Subnets for your load balancer"). */
const BALANCER_ZONES = 2;

function services({ services: from, servicesCertificateArn, vpc: network, zones }: DeploymentConfig): Issue[] {
  if (from === 'off') {
    if (servicesCertificateArn === undefined) return [];
    return [{ at: 'servicesCertificateArn', message: 'has no effect while `services` is off; set `services`' }];
  }
  const named = typeof network === 'object' ? Object.keys(network.subnets).length : null;
  const message = `a load balancer of services needs ${BALANCER_ZONES} zones or more`;
  if (named !== null && named < BALANCER_ZONES) {
    return [{ at: 'vpc.subnets', message: `${message}; name a subnet in each, or set \`services\` to off` }];
  }
  if (network === 'new' && zones < BALANCER_ZONES) {
    return [{ at: 'zones', message: `${message}; raise \`zones\`, or set \`services\` to off` }];
  }
  return [];
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
 * Container instances per cluster ("Amazon ECS service quotas", not adjustable). The sweep compares as many within its
 * time-out.
 */
const CLUSTER_INSTANCES = 5000;
/** Addresses of a /20 without the five that AWS keeps in each subnet ("Subnet CIDR reservations", VPC user guide). */
const SUBNET_ADDRESSES = 4096 - 5;
const SPLIT =
  'or split the work over several deployments, each with a `name` of its own (docs/deploy.md, "How large one deployment may be")';

/** Check that one deployment can hold `maxVcpus` if all instances are of the smallest size. */
function size({ vpc: network, zones, maxVcpus, families: named }: DeploymentConfig): Issue[] {
  const least = Math.min(...named.map((family) => familyFacts(family)?.leastVcpus ?? Infinity));
  if (!Number.isFinite(least)) return [];
  const most = (instances: number): number => Math.floor(instances * least);
  const issues: Issue[] = [];
  const tooMany = (instances: number, limit: string, wayOut: string): void => {
    if (maxVcpus <= most(instances)) return;
    const message = `${maxVcpus} is more than ${limit} can hold: ${instances} instances, of ${least} vCPUs where they are smallest, are ${most(instances)}; lower it to ${most(instances)}, ${wayOut}${SPLIT}`;
    issues.push({ at: 'maxVcpus', message });
  };
  tooMany(CLUSTER_INSTANCES, 'one ECS cluster', 'choose families of larger instances, ');
  // Upper bound: a region may have fewer zones. Sizes of subnets that a VPC already has are not known here.
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

/** Check of every preset in the settings, so that a fault shows before the preset is chosen. */
function ofPresets(preset: string, own: SchedulerConfig['presets']): Issue[] {
  return [preset, ...Object.keys(own)].flatMap((name, i): Issue[] => {
    try {
      expectInstances(name, presetNamed(name, own).stages);
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

const familyFacts = (family: string): FamilyFacts | undefined => knownFamilies().get(family);

/** Hint at one family only: listing all would take hundreds of names. */
function nearFamily(family: string, known: readonly string[]): string {
  const near = nearestName(family, known);
  return near === null ? '' : `; did you mean ${near}?`;
}
