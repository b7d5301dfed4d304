/**
 * What `cdk bootstrap` makes, and a deployment goes through: a version, roles to be taken, and a bucket for the code.
 * https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
 */
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { askJson, askQuery, isDenied, textOf, wordsOf, type Caller } from './asking.ts';
import type { Findings } from './findings.ts';

/** The CDK's own, if not told otherwise. */
export const DEFAULT_QUALIFIER = 'hnb659fds';
/** What the CDK's default synthesizer asks for ("Bootstrap template version history": deployments of CDK v2). */
const LEAST_VERSION = 6;
/** The least that AWS gives. */
const KEYS_LAST_S = 900;

export interface Bootstrap {
  readonly qualifier: string;
  readonly account: string;
  /** `aws`, or one of its siblings such as `aws-cn`. */
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
 * The version that it has: the parameter by which the CDK and the templates know it. `unknown` where it may not be
 * read. A version that is too old is found to be a failure.
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

/** Who has a role, or why it may not be taken. */
export type Taken = Caller | { readonly why: string };
export type TakenRoles = ReadonlyMap<RoleName, Taken>;

/**
 * The roles that the command line takes: without those that deploy and put the code into the bucket it fails. The one
 * that looks up is wanted where something is looked up. To take a role is to be given keys, which are thrown away when
 * all has been asked.
 */
export async function takeRoles(caller: Caller, of: Bootstrap, isLookedUp: boolean): Promise<TakenRoles> {
  const wanted: RoleName[] = ['deploy', 'file-publishing', ...(isLookedUp ? (['lookup'] as const) : [])];
  const roles = new Map<RoleName, Taken>();
  for (const role of wanted) roles.set(role, await taken(caller, roleArn(role, of)));
  return roles;
}

/** Takes a role: keys that last for a quarter of an hour. */
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

/** Null where it may not be taken. */
export function callerAs(role: RoleName, roles: TakenRoles): Caller | null {
  const got = roles.get(role);
  return got === undefined || 'why' in got ? null : got;
}

/** What cannot be taken. Where nobody may look up, the command line does so with your own rights. */
export function sayUntaken(roles: TakenRoles, of: Bootstrap, { failures, notes }: Findings): void {
  for (const [role, got] of roles) {
    if (!('why' in got)) continue;
    const granted = `have sts:AssumeRole on ${arnOf(of, `cdk-${of.qualifier}-*`)} granted to you`;
    const message = `you may not take ${roleArn(role, of)}: ${got.why}; ${granted}`;
    (role === 'lookup' ? notes : failures).push({ at: 'sts:AssumeRole', message });
  }
}

/** Deleted by hand, it is not made again by another `cdk bootstrap`. */
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

/** With whose rights CloudFormation makes everything. Nobody but CloudFormation can take this role. */
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
  if (!isDenied(said)) notes.push({ at: RoleName, message: `could not be looked at: ${wordsOf(said)}` });
  return 'unknown';
}
