/**
 * Resources of `cdk bootstrap` that a deployment needs: a version, roles, and a bucket for the code.
 * https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
 */
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { askJson, askQuery, isDenied, textOf, wordsOf, type Caller } from './asking.ts';
import type { Findings } from './findings.ts';

/** The CDK's default qualifier. */
export const DEFAULT_QUALIFIER = 'hnb659fds';
/**
 * Version that the CDK's default synthesizer requires ("Bootstrap template version history": deployments of CDK v2).
 */
const LEAST_VERSION = 6;
/** Shortest session that AWS grants, s. */
const KEYS_LAST_S = 900;

export interface Bootstrap {
  readonly qualifier: string;
  readonly account: string;
  /** `aws`, or another partition such as `aws-cn`. */
  readonly partition: string;
  readonly region: string;
}

type RoleName = 'deploy' | 'file-publishing' | 'lookup' | 'cfn-exec';

export const roleNamed = (name: RoleName, { qualifier, account, region }: Bootstrap): string =>
  `cdk-${qualifier}-${name}-role-${account}-${region}`;
const arnOf = (of: Bootstrap, resource: string): string => `arn:${of.partition}:iam::${of.account}:role/${resource}`;
export const roleArn = (name: RoleName, of: Bootstrap): string => arnOf(of, roleNamed(name, of));

const commandOf = ({ account, region }: Bootstrap): string => `npx cdk bootstrap aws://${account}/${region}`;

/**
 * Version of the bootstrap, from the parameter that CDK and templates read; `unknown` if unreadable. A version that is
 * too old is a failure.
 */
export async function bootstrapVersion(
  callers: readonly Caller[],
  of: Bootstrap,
  { failures, notes }: Findings,
): Promise<'good' | 'old' | 'absent' | 'unknown'> {
  const name = `/cdk-bootstrap/${of.qualifier}/version`;
  let denied = '';
  for (const caller of callers) {
    const said = await askJson(caller, 'ssm', 'AmazonSSM.GetParameter', { Name: name });
    if (said.error === 'ParameterNotFound') {
      failures.push({ at: 'bootstrap', message: `the CDK is not set up in ${of.region}: run \`${commandOf(of)}\`` });
      return 'absent';
    }
    if (said.error === null) {
      const version = (JSON.parse(said.text) as { Parameter?: { Value?: string } }).Parameter?.Value;
      if (Number(version) >= LEAST_VERSION) return 'good';
      const message = `is of version ${version ?? 'unknown'}, and ${LEAST_VERSION} is needed: run \`${commandOf(of)}\` again`;
      failures.push({ at: 'bootstrap', message });
      return 'old';
    }
    denied = wordsOf(said);
  }
  const message = `its version could not be asked (ssm:GetParameter on ${name}): ${denied}; \`${commandOf(of)}\` may still be needed`;
  notes.push({ at: 'bootstrap', message });
  return 'unknown';
}

/** Credentials of a role, or the reason why it cannot be assumed. */
export type Taken = Caller | { readonly why: string };
export type TakenRoles = ReadonlyMap<RoleName, Taken>;

/**
 * Roles that the command line assumes. Without those that deploy and publish files it fails. The lookup role is needed
 * only if something is looked up. Assuming a role gives keys, which are dropped after the questions.
 */
export async function takeRoles(caller: Caller, of: Bootstrap, isLookedUp: boolean): Promise<TakenRoles> {
  const wanted: RoleName[] = ['deploy', 'file-publishing', ...(isLookedUp ? (['lookup'] as const) : [])];
  const roles = new Map<RoleName, Taken>();
  for (const role of wanted) roles.set(role, await taken(caller, roleArn(role, of)));
  return roles;
}

/** Assumes a role, with keys for a quarter of an hour. */
export async function taken(caller: Caller, RoleArn: string): Promise<Taken> {
  const form = { RoleArn, RoleSessionName: 'ebbtide-preflight', DurationSeconds: String(KEYS_LAST_S) };
  const said = await askQuery(caller, 'sts', { Action: 'AssumeRole', Version: '2011-06-15', ...form });
  if (said.error !== null) return { why: wordsOf(said) };
  const keys = {
    accessKeyId: textOf('AccessKeyId', said.text) ?? '',
    secretAccessKey: textOf('SecretAccessKey', said.text) ?? '',
    sessionToken: textOf('SessionToken', said.text) ?? '',
  };
  return { region: caller.region, credentials: () => Promise.resolve(keys) };
}

/** Credentials of a role; null if it cannot be assumed. */
export function callerAs(role: RoleName, roles: TakenRoles): Caller | null {
  const got = roles.get(role);
  return got === undefined || 'why' in got ? null : got;
}

/**
 * Findings about roles that cannot be assumed. Without the lookup role, the command line uses the person's own rights.
 */
export function sayUntaken(roles: TakenRoles, of: Bootstrap, { failures, notes }: Findings): void {
  for (const [role, got] of roles) {
    if (!('why' in got)) continue;
    const granted = `have sts:AssumeRole on ${arnOf(of, `cdk-${of.qualifier}-*`)} granted to you`;
    const message = `you may not take ${roleArn(role, of)}: ${got.why}; ${granted}`;
    (role === 'lookup' ? notes : failures).push({ at: 'sts:AssumeRole', message });
  }
}

/** Check of the bucket. After a manual deletion another `cdk bootstrap` does not make it again. */
export async function lookForBucket(publishing: Caller, of: Bootstrap, { failures, notes }: Findings): Promise<void> {
  const bucket = `cdk-${of.qualifier}-assets-${of.account}-${of.region}`;
  const s3 = new S3Client({ region: publishing.region, credentials: publishing.credentials });
  try {
    await s3.send(new HeadBucketCommand({ Bucket: bucket }));
  } catch (error) {
    const { name, $metadata } = error as { name: string; $metadata?: { httpStatusCode?: number } };
    if ($metadata?.httpStatusCode === 404) {
      const stack = 'the stack of the bootstrap (CDKToolkit, if it has no name of its own)';
      const message = `${bucket}, for the code, is not there: delete ${stack} and run \`${commandOf(of)}\``;
      failures.push({ at: 'bootstrap', message });
    } else notes.push({ at: 'bootstrap', message: `whether ${bucket} is there could not be asked: ${name}` });
  } finally {
    s3.destroy();
  }
}

/** Role with which CloudFormation makes everything. Only CloudFormation can assume it. */
export async function executionRole(
  caller: Caller,
  of: Bootstrap,
  { failures, notes }: Findings,
): Promise<'there' | 'absent' | 'unknown'> {
  const RoleName = roleNamed('cfn-exec', of);
  const said = await askQuery(caller, 'iam', { Action: 'GetRole', Version: '2010-05-08', RoleName });
  if (said.error === null) return 'there';
  if (said.error === 'NoSuchEntity') {
    failures.push({ at: RoleName, message: `is not there: run \`${commandOf(of)}\` again` });
    return 'absent';
  }
  if (!isDenied(said)) notes.push({ at: RoleName, message: `could not be read: ${wordsOf(said)}` });
  return 'unknown';
}
