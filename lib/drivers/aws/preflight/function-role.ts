/**
 * Check that the launching function may launch, once it exists. Best by a dry run as its own role, else by IAM's
 * simulation of the role's policies, else advice what to check by hand. The role trusts only the Lambda service, so the
 * dry run needs an added trust. Nothing is launched.
 */
import { EC2Client, RunInstancesCommand, type RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { faultOf } from '../errors.ts';
import { CONSTRUCT_ID, mainStackName } from '../compose/stack-outputs.ts';
import { askQuery, isDenied, textOf, wordsOf, type Caller } from './asking.ts';
import { taken } from './bootstrap.ts';
import type { Findings } from './findings.ts';

export interface Deployed {
  /** Name of the deployment. */
  readonly name: string;
  readonly account: string;
  readonly partition: string;
  /** Type that the region offers; absent: no dry run. */
  readonly type: string | undefined;
  /** Subnet in the configuration; absent: the VPC is the deployment's or the default one. */
  readonly subnet: string | undefined;
  /** Endpoint of EC2, for a test server. */
  readonly endpoint?: string | undefined;
}

/** Resources with which the act function launches. */
interface Parts {
  readonly role: string;
  readonly template: string;
  readonly securityGroup: string;
  /**
   * Null: the subnet belongs to a default VPC, not to the stack. The role may launch only into the deployment's
   * subnets.
   */
  readonly subnet: string | null;
}

/** Does nothing before the first deployment. */
export async function functionMayLaunch(caller: Caller, of: Deployed, found: Findings): Promise<void> {
  const parts = await partsOf(caller, of, found);
  if (parts === null) return;
  const arn = `arn:${of.partition}:iam::${of.account}:role/${parts.role}`;
  const role = await taken(caller, arn);
  if ('why' in role) await bySimulation(caller, { of, parts, arn, untaken: role.why }, found);
  else if (parts.subnet === null)
    await bySimulation(caller, { of, parts, arn, untaken: 'its subnets are not known' }, found);
  else await byDryRun(role, { of, parts, subnet: parts.subnet }, found);
}

const AT = 'launches by the act function';

/** Null: there is no deployment, or it cannot be read, which is noted. */
async function partsOf(caller: Caller, { name, subnet }: Deployed, { notes }: Findings): Promise<Parts | null> {
  const StackName = mainStackName(name);
  const form = { Action: 'DescribeStackResources', Version: '2010-05-15', StackName };
  const said = await askQuery(caller, 'cloudformation', form);
  if (said.error !== null) {
    // Error "Stack with id Ebbtide does not exist".
    if (said.error === 'ValidationError' && said.message.includes('does not exist')) return null;
    const what = isDenied(said) ? ' (cloudformation:DescribeStackResources)' : '';
    notes.push({ at: AT, message: `whether ${StackName} is deployed could not be asked${what}: ${wordsOf(said)}` });
    return null;
  }
  const made = (said.text.match(/<member>.*?<\/member>/gs) ?? []).map((member) => ({
    logical: textOf('LogicalResourceId', member) ?? '',
    id: textOf('PhysicalResourceId', member) ?? '',
    type: textOf('ResourceType', member) ?? '',
  }));
  const idOf = (type: string, start: string): string | undefined =>
    made.find((r) => r.type === type && r.logical.startsWith(`${CONSTRUCT_ID}${start}`))?.id;
  const role = idOf('AWS::IAM::Role', 'FunctionsActRole');
  const template = idOf('AWS::EC2::LaunchTemplate', 'CapacityTemplate');
  const securityGroup = idOf('AWS::EC2::SecurityGroup', 'NetworkInstances');
  if (role !== undefined && template !== undefined && securityGroup !== undefined) {
    return { role, template, securityGroup, subnet: subnet ?? idOf('AWS::EC2::Subnet', 'NetworkVpc') ?? null };
  }
  notes.push({ at: AT, message: `the stack ${StackName} has no function that launches: nothing was asked` });
  return null;
}

/** Dry run of a launch as in a fleet: from the template, with the deployment's tag. */
async function byDryRun(
  role: Caller,
  { of, parts, subnet }: { readonly of: Deployed; readonly parts: Parts; readonly subnet: string },
  { failures, notes }: Findings,
): Promise<void> {
  if (of.type === undefined) return;
  const { endpoint } = of;
  const client = new EC2Client({ ...role, ...(endpoint === undefined ? {} : { endpoint }), maxAttempts: 3 });
  const request: RunInstancesCommandInput = {
    DryRun: true,
    MinCount: 1,
    MaxCount: 1,
    InstanceType: of.type as NonNullable<RunInstancesCommandInput['InstanceType']>,
    LaunchTemplate: { LaunchTemplateId: parts.template, Version: '$Latest' },
    SubnetId: subnet,
    TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'ebb:stack', Value: of.name }] }],
  };
  try {
    await client.send(new RunInstancesCommand(request));
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'DryRunOperation') return;
    const said = message.replace(/\s*Encoded authorization failure message:.*$/s, '');
    const issue = { at: AT, message: `a dry run as ${parts.role} was answered with ${name}: ${said}` };
    (faultOf(error) === 'denied' ? failures : notes).push(issue);
  } finally {
    client.destroy();
  }
}

async function bySimulation(
  caller: Caller,
  asked: { readonly of: Deployed; readonly parts: Parts; readonly arn: string; readonly untaken: string },
  { failures, notes }: Findings,
): Promise<void> {
  const { of, parts, arn, untaken } = asked;
  const ec2 = (kind: string, id: string, owner = of.account): string =>
    `arn:${of.partition}:ec2:${caller.region}:${owner}:${kind}/${id}`;
  const resources = [
    ec2('launch-template', parts.template),
    ec2('image', 'ami-00000000000000000', ''),
    ec2('instance', '*'),
    ec2('volume', '*'),
    ec2('network-interface', '*'),
    ec2('security-group', parts.securityGroup),
    ...(parts.subnet === null ? [] : [ec2('subnet', parts.subnet)]),
    ec2('spot-instances-request', '*'),
  ];
  const context = { 'aws:RequestTag/ebb:stack': of.name, 'aws:RequestedRegion': caller.region };
  const form: Record<string, string> = {
    Action: 'SimulatePrincipalPolicy',
    Version: '2010-05-08',
    PolicySourceArn: arn,
    'ActionNames.member.1': 'ec2:RunInstances',
    MaxItems: '1000',
  };
  for (const [n, resource] of resources.entries()) form[`ResourceArns.member.${n + 1}`] = resource;
  for (const [n, [key, value]] of Object.entries(context).entries()) {
    const at = `ContextEntries.member.${n + 1}`;
    form[`${at}.ContextKeyName`] = key;
    form[`${at}.ContextKeyType`] = 'string';
    form[`${at}.ContextKeyValues.member.1`] = value;
  }
  const said = await askQuery(caller, 'iam', form);
  const byHand = 'after the first job look at the alarm `denied` and the log of the act function';
  if (said.error !== null) {
    const message = `could not be asked: the role may not be taken (${untaken}), nor simulated (iam:SimulatePrincipalPolicy: ${wordsOf(said)}); ${byHand}`;
    notes.push({ at: AT, message });
    return;
  }
  // Results per resource, within the result of the action.
  const refused = (said.text.match(/<EvalResourceName>[^<]*<\/EvalResourceName>\s*<EvalResourceDecision>[^<]*</g) ?? [])
    .filter((result) => !result.includes('<EvalResourceDecision>allowed<'))
    .map((result) => textOf('EvalResourceName', result) ?? '');
  const decision = textOf('EvalDecision', said.text);
  if (decision === 'allowed' && refused.length === 0) return;
  const which = refused.length === 0 ? '' : ` on ${refused.join(', ')}`;
  const message = `${parts.role} lacks ec2:RunInstances${which} by IAM's word (${decision ?? 'none'}): deploy again, and ask who keeps policies of your organisation`;
  failures.push({ at: AT, message });
}
