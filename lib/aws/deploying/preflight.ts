/**
 * What would stop a deployment, or its first launch, asked before anything is made: `npm run preflight`. Changes nothing. Each
 * finding names the key, the right or the quota, and what to do. What the region offers is asked by the deployment itself, in its
 * first seconds (offers.ts).
 */
import { DescribeStacksCommand, type CloudFormationClient } from '@aws-sdk/client-cloudformation';
import type { Issue } from '../../kernel/errors.ts';
import { askJson, askQuery, type Caller, type Said } from './asking.ts';

/** The CDK's own name of what `cdk bootstrap` makes, if not told otherwise ("Bootstrapping", AWS CDK developer guide). */
const QUALIFIER = 'hnb659fds';
const BOOTSTRAP_STACK = 'CDKToolkit';
/** What the CDK's default synthesizer asks for ("Bootstrap template version history": deployments of CDK v2). */
const LEAST_BOOTSTRAP = 6;
/** Quota codes of EC2 ("Amazon EC2 service quotas"): vCPUs of the families A, C, D, H, I, M, R, T, Z. */
const QUOTAS = { 'L-34B43A08': 'spot', 'L-1216C47A': 'on-demand' } as const;
const SPOT_ROLE = 'AWSServiceRoleForEC2Spot';
const DENIED = /^(?:AccessDenied|AccessDeniedException|UnauthorizedOperation)$/;

export interface PreflightOptions {
  readonly caller: Caller;
  readonly cloudFormation: CloudFormationClient;
  /** As the configuration has it; absent: any. */
  readonly account?: string | undefined;
  readonly maxVcpus: number;
}

export interface Preflight {
  readonly account: string | null;
  /** Each would fail the deployment, or leave it unable to buy anything. */
  readonly failures: readonly Issue[];
  /** What a person should know, or what could not be asked. */
  readonly notes: readonly Issue[];
}

interface Findings {
  readonly failures: Issue[];
  readonly notes: Issue[];
}

/** Throws what the network throws; what AWS refuses is a finding. */
export async function preflight({ caller, cloudFormation, account, maxVcpus }: PreflightOptions): Promise<Preflight> {
  const found: Findings = { failures: [], notes: [] };
  const actual = await accountOf(caller, found);
  if (actual === null) return { account: null, ...found };
  if (account !== undefined && account !== actual) {
    const message = `is ${account}, and your credentials are of ${actual}: use others (AWS_PROFILE), or correct the key`;
    found.failures.push({ at: 'account', message });
    return { account: actual, ...found };
  }
  if (await isBootstrapped({ caller, cloudFormation, actual }, found)) await mayDeploy(caller, actual, found);
  await spotRole(caller, found);
  await quotas(caller, maxVcpus, found);
  return { account: actual, ...found };
}

async function accountOf(caller: Caller, { failures }: Findings): Promise<string | null> {
  const said = await askQuery(caller, 'sts', { Action: 'GetCallerIdentity', Version: '2011-06-15' });
  const account = /<Account>(\d{12})<\/Account>/.exec(said.text)?.[1] ?? null;
  if (account === null) {
    const message = `AWS does not take them: ${wordsOf(said)}; log in (\`aws sso login\`), or name a profile in AWS_PROFILE`;
    failures.push({ at: 'credentials', message });
  }
  return account;
}

async function isBootstrapped(
  of: { readonly caller: Caller; readonly cloudFormation: CloudFormationClient; readonly actual: string },
  { failures, notes }: Findings,
): Promise<boolean> {
  const { caller, cloudFormation, actual } = of;
  const command = `npx cdk bootstrap aws://${actual}/${caller.region}`;
  try {
    const { Stacks } = await cloudFormation.send(new DescribeStacksCommand({ StackName: BOOTSTRAP_STACK }));
    const version = Stacks?.[0]?.Outputs?.find((o) => o.OutputKey === 'BootstrapVersion')?.OutputValue;
    if (Number(version) >= LEAST_BOOTSTRAP) return true;
    const message = `is of version ${version ?? 'unknown'}, and ${LEAST_BOOTSTRAP} is needed: run \`${command}\` again`;
    failures.push({ at: BOOTSTRAP_STACK, message });
    return false;
  } catch (error) {
    const { name, message } = error as Error;
    if (/does not exist/.test(message)) {
      failures.push({ at: BOOTSTRAP_STACK, message: `the CDK is not set up in ${caller.region}: run \`${command}\`` });
      return false;
    }
    if (!DENIED.test(name)) throw error;
    const text = `could not be looked at, for want of cloudformation:DescribeStacks: \`${command}\` may still be needed`;
    notes.push({ at: BOOTSTRAP_STACK, message: text });
    return true;
  }
}

/** The role that the CDK deploys with. To take it is to be given keys for it, which are thrown away. */
async function mayDeploy(caller: Caller, account: string, { failures }: Findings): Promise<void> {
  const role = `arn:aws:iam::${account}:role/cdk-${QUALIFIER}-deploy-role-${account}-${caller.region}`;
  const asked = { Action: 'AssumeRole', Version: '2011-06-15', RoleArn: role, RoleSessionName: 'ebbtide-preflight' };
  const said = await askQuery(caller, 'sts', { ...asked, DurationSeconds: '900' });
  if (said.error === null) return;
  const message = `you may not take ${role}: ${wordsOf(said)}; have sts:AssumeRole on arn:aws:iam::${account}:role/cdk-${QUALIFIER}-* granted to you`;
  failures.push({ at: 'sts:AssumeRole', message });
}

/**
 * The first spot instance of an account needs it. The function that launches may have EC2 make it, unless an organisation's
 * policy forbids that. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
 */
async function spotRole(caller: Caller, { notes }: Findings): Promise<void> {
  const said = await askQuery(caller, 'iam', { Action: 'GetRole', Version: '2010-05-08', RoleName: SPOT_ROLE });
  if (said.error === null) return;
  const command = '`aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`';
  if (said.error === 'NoSuchEntity') {
    const message = `is not there yet. The first launch has it made; where a policy of your organisation forbids that, no spot instance starts: run ${command} once`;
    notes.push({ at: SPOT_ROLE, message });
  } else notes.push({ at: SPOT_ROLE, message: `could not be looked at (iam:GetRole): ${wordsOf(said)}` });
}

async function quotas(caller: Caller, maxVcpus: number, { failures, notes }: Findings): Promise<void> {
  const values = new Map<string, number>();
  for (const [code, option] of Object.entries(QUOTAS)) {
    const asked = { ServiceCode: 'ec2', QuotaCode: code };
    const said = await askJson(caller, 'servicequotas', 'ServiceQuotasV20190624.GetServiceQuota', asked);
    const at = `EC2 quota ${code} (${option})`;
    if (said.error !== null) {
      notes.push({ at, message: `could not be looked at (servicequotas:GetServiceQuota): ${wordsOf(said)}` });
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

const wordsOf = ({ error, message }: Said): string => `${error ?? 'no answer that is understood'}: ${message}`;
