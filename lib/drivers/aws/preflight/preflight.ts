/**
 * Preflight (`npm run preflight`): faults that would stop a deployment or its first launch, found before anything is
 * made. Changes nothing. Each finding names the key, right or quota, and the remedy. An unanswered question is a note
 * and does not count as passed.
 *
 * Offers of the region are checked by the code that the deployment runs in its first seconds
 * (lib/drivers/aws/deploying/offers.ts).
 */
import type { EC2Client } from '@aws-sdk/client-ec2';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { classify, faultOf } from '../errors.ts';
import { askJson, askPath, askQuery, textOf, wordsOf, type Caller } from './asking.ts';
import {
  bootstrapVersion,
  callerAs,
  DEFAULT_QUALIFIER,
  executionRole,
  lookForBucket,
  roleArn,
  roleNamed,
  sayUntaken,
  takeRoles,
  type Bootstrap,
} from './bootstrap.ts';
import type { Findings } from './findings.ts';
import { functionMayLaunch } from './function-role.ts';
import { tryLaunches } from './launch.ts';
import { neededBy, TO_BOOTSTRAP, type Made } from './needed.ts';
import { askedOf, checkRegion } from '../deploying/offers.ts';
import { placesOf, type VpcChoice } from './places.ts';
import { askRights } from './asked-rights.ts';

/** Quota codes of EC2 ("Amazon EC2 service quotas"): vCPUs of the families A, C, D, H, I, M, R, T, Z. */
const QUOTAS = { 'L-34B43A08': 'spot', 'L-1216C47A': 'on-demand' } as const;
const SPOT_ROLE = 'AWSServiceRoleForEC2Spot';

/** Part of the configuration (lib/infra/config.ts). */
export interface Configured extends Made {
  /** Absent: any account. */
  readonly account?: string | undefined;
  readonly vpc: VpcChoice;
  readonly zones: number;
  readonly families: readonly string[];
  readonly reservations: readonly string[];
  readonly maxVcpus: number;
  readonly name: string;
  readonly cycleConcurrency: number;
}

export interface PreflightOptions {
  readonly caller: Caller;
  readonly ec2: EC2Client;
  readonly config: Configured;
  /** Public parameter with the image id of instances. */
  readonly imageParameter: string;
  /** Qualifier of a custom bootstrap. */
  readonly qualifier?: string | undefined;
  /** Endpoint of EC2 under another role, for a test server. */
  readonly ec2Endpoint?: string | undefined;
}

export interface Preflight {
  readonly account: string | null;
  readonly failures: readonly Issue[];
  readonly notes: readonly Issue[];
}

/** Throws `aws.unavailable` if AWS cannot be reached. Refusals are findings. */
export async function preflight(options: PreflightOptions): Promise<Preflight> {
  const { caller, config } = options;
  const found: Findings = { failures: [], notes: [] };
  const identity = await identityOf(caller, found);
  if (identity === null) return { account: null, ...found };
  const { account } = identity;
  if (config.account !== undefined && config.account !== account) {
    const message = `is ${config.account}, and your credentials are of ${account}: use others (AWS_PROFILE), or correct the key`;
    found.failures.push({ at: 'account', message });
    return { account, ...found };
  }
  const type = await capacity(options, found);
  await rights(options, identity, found);
  const [, partition = 'aws'] = identity.arn.split(':');
  const subnet = firstSubnet(config);
  const deployed = { name: config.name, account, partition, type, subnet, endpoint: options.ec2Endpoint };
  await functionMayLaunch(caller, deployed, found);
  await spotRole(caller, found);
  await quotas(caller, config.maxVcpus, found);
  await functionsAtOnce(caller, config.cycleConcurrency, found);
  return { account, ...found };
}

interface Identity {
  readonly account: string;
  readonly arn: string;
}

async function identityOf(caller: Caller, { failures }: Findings): Promise<Identity | null> {
  const said = await askQuery(caller, 'sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' });
  const account = textOf('Account', said.text);
  if (said.error === null && account !== null) return { account, arn: textOf('Arn', said.text) ?? '' };
  const message = `AWS does not take them: ${wordsOf(said)}; log in (\`aws sso login\`), name a profile in AWS_PROFILE, or switch the region on for the account`;
  failures.push({ at: 'credentials', message });
  return null;
}

/** First subnet of an existing VPC. */
const firstSubnet = ({ vpc }: Configured): string | undefined =>
  typeof vpc === 'object' ? Object.values(vpc.subnets)[0] : undefined;

/** Offers, places and dry runs of launches. Answers with an offered type. */
async function capacity(
  { ec2, config, imageParameter }: PreflightOptions,
  found: Findings,
): Promise<string | undefined> {
  try {
    const places = await placesOf(ec2, config);
    const asked = { Families: config.families, Reservations: config.reservations, ...places };
    const { lacking, types, notes } = await checkRegion(ec2, askedOf.parse(asked));
    found.notes.push(...notes);
    for (const [zone, families] of lacking) {
      found.notes.push({ at: 'families', message: `${zone} has no ${families.join(', ')}: other zones have` });
    }
    await tryLaunches(ec2, { types: [...types.values()], imageParameter, subnet: firstSubnet(config) }, found);
    return [...types.values()][0];
  } catch (error) {
    const fault = error instanceof EbbError ? faultOf(error.cause) : faultOf(error);
    if (fault === null && !(error instanceof EbbError)) throw error;
    const { facts, message, code } = classify(error, 'asking what the region offers');
    if (code === 'usage' && fault !== 'denied') found.failures.push(...(facts.issues ?? []));
    // A person who deploys need not have these rights: the deployment asks again itself.
    else found.notes.push({ at: 'families, vpc', message: `could not be asked, the deployment will: ${message}` });
    return undefined;
  }
}

/** Rights of the CDK's roles, or of the person if there are no roles yet. */
async function rights(options: PreflightOptions, { account, arn }: Identity, found: Findings): Promise<void> {
  const { caller, config, qualifier = DEFAULT_QUALIFIER } = options;
  const [, partition = 'aws'] = arn.split(':');
  const of: Bootstrap = { qualifier, account, partition, region: caller.region };
  const roles = await takeRoles(caller, of, config.vpc === 'default');
  const deploying = callerAs('deploy', roles);
  const version = await bootstrapVersion(deploying === null ? [caller] : [caller, deploying], of, found);
  if (version === 'absent') {
    await rightsToBootstrap(caller, arn, found);
    return;
  }
  sayUntaken(roles, of, found);
  const publishing = callerAs('file-publishing', roles);
  if (publishing !== null) await lookForBucket(publishing, of, found);
  if ((await executionRole(caller, of, found)) === 'absent') return;
  await askRights(
    caller,
    {
      principal: roleArn('cfn-exec', of),
      who: roleNamed('cfn-exec', of),
      actions: [...new Set(Object.values(neededBy(config)).flat())].sort(),
      fix: 'CloudFormation makes everything with this role: have it allowed, or give the role other policies (`npx cdk bootstrap --cloudformation-execution-policies ...`)',
    },
    found,
  );
}

async function rightsToBootstrap(caller: Caller, arn: string, found: Findings): Promise<void> {
  const principal = await principalOf(caller, arn);
  if (principal === null) {
    const message = `whether you may run \`npx cdk bootstrap\` could not be asked of ${arn}`;
    found.notes.push({ at: 'your rights', message });
    return;
  }
  const fix = '`npx cdk bootstrap` needs them: have it run by somebody who may create IAM roles';
  await askRights(caller, { principal, who: 'your rights', actions: TO_BOOTSTRAP, fix }, found);
}

/** IAM principal: the user, or the role behind a session. A session's ARN lacks the role's path. Null: neither. */
async function principalOf(caller: Caller, arn: string): Promise<string | null> {
  if (/:user\//.test(arn)) return arn;
  const RoleName = /:assumed-role\/([^/]+)\//.exec(arn)?.[1];
  if (RoleName === undefined) return null;
  const said = await askQuery(caller, 'iam', { Action: 'GetRole', Version: '2010-05-08', RoleName });
  return said.error === null ? textOf('Arn', said.text) : null;
}

/**
 * Service-linked role for an account's first spot instance. EC2 makes it for the launching function, unless an
 * organisation's policy forbids that.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
 */
async function spotRole(caller: Caller, { notes }: Findings): Promise<void> {
  const said = await askQuery(caller, 'iam', { Action: 'GetRole', Version: '2010-05-08', RoleName: SPOT_ROLE });
  if (said.error === null) return;
  const command = '`aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`';
  if (said.error === 'NoSuchEntity') {
    const message = `is not there yet. The first launch has it made; where a policy of your organisation forbids that, no spot instance starts: run ${command} once`;
    notes.push({ at: SPOT_ROLE, message });
  } else notes.push({ at: SPOT_ROLE, message: `could not be read (iam:GetRole): ${wordsOf(said)}` });
}

async function quotas(caller: Caller, maxVcpus: number, { failures, notes }: Findings): Promise<void> {
  const values = new Map<string, number>();
  for (const [code, option] of Object.entries(QUOTAS)) {
    const asked = { ServiceCode: 'ec2', QuotaCode: code };
    const said = await askJson(caller, 'servicequotas', 'ServiceQuotasV20190624.GetServiceQuota', asked);
    const at = `EC2 quota ${code} (${option})`;
    if (said.error !== null) {
      notes.push({ at, message: `could not be read (servicequotas:GetServiceQuota): ${wordsOf(said)}` });
      continue;
    }
    const value = Number((JSON.parse(said.text) as { Quota?: { Value?: number } }).Quota?.Value);
    values.set(option, value);
    if (value >= maxVcpus) continue;
    const request = `aws service-quotas request-service-quota-increase --service-code ec2 --quota-code ${code} --desired-value ${maxVcpus}`;
    const message = `is ${value} vCPUs, and maxVcpus is ${maxVcpus}: lower maxVcpus, or ask for more: \`${request}\``;
    notes.push({ at, message });
  }
  if (values.size === 2 && [...values.values()].every((v) => v === 0)) {
    const message = 'are 0 for spot and for on-demand: no instance can start before they are raised';
    failures.push({ at: 'EC2 quotas', message });
  }
}

/**
 * Concurrent executions besides the cycle's batches: two readers of the queue, four by clocks and streams, two of the
 * API.
 */
const BESIDE_THE_CYCLE = 8;

/**
 * Limit of concurrent executions. New accounts have ten per region for all functions. Beyond it Lambda throttles: the
 * API answers 502, and cycles are late.
 */
async function functionsAtOnce(caller: Caller, cycle: number, { failures, notes }: Findings): Promise<void> {
  const at = 'Lambda concurrency';
  const said = await askPath(caller, 'lambda', '/2016-08-19/account-settings/');
  if (said.error !== null) {
    notes.push({ at, message: `could not be read (lambda:GetAccountSettings): ${wordsOf(said)}` });
    return;
  }
  const { AccountLimit } = JSON.parse(said.text) as { AccountLimit?: { ConcurrentExecutions?: number } };
  const limit = AccountLimit?.ConcurrentExecutions ?? 0;
  const wanted = cycle + BESIDE_THE_CYCLE;
  if (limit >= wanted) return;
  const request =
    'aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000';
  if (limit <= cycle) {
    const message = `is ${limit} for the account in this region, and a cycle takes ${cycle} (cycleConcurrency): lower cycleConcurrency, or ask for more: \`${request}\``;
    failures.push({ at, message });
    return;
  }
  const message = `is ${limit} for the account in this region; a busy cycle and the API may want ${wanted} together, and some requests wait then. It works; to be sure ask for more: \`${request}\``;
  notes.push({ at, message });
}
