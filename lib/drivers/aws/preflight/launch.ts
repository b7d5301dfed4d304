/**
 * Check of a launch by EC2's dry run, which checks rights and starts nothing. It runs with the caller's rights, because
 * the launching function does not exist yet. What an organisation forbids, such as types, purchase options or regions,
 * it forbids for both. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html (DryRun)
 */
import { RunInstancesCommand, type EC2Client, type RunInstancesCommandInput } from '@aws-sdk/client-ec2';
import { faultOf } from '../errors.ts';
import type { Findings } from './findings.ts';

export interface Launching {
  /** One type per family. */
  readonly types: readonly string[];
  /** Public parameter with the image id of the architecture. */
  readonly imageParameter: string;
  /** Existing subnet; absent: EC2 takes one of the default VPC. */
  readonly subnet?: string | undefined;
}

type Launched = 'allowed' | { readonly is: 'forbidden' | 'not-asked'; readonly said: string };

/**
 * Denials by an organisation: "with an explicit deny in a service control policy", "because no resource control policy
 * allows ...".
 */
const OF_ORGANISATION = /(?:service|resource) control policy/;

/** Dry runs: one on demand, and one per family on spot, which most purchases are. */
export async function tryLaunches(client: EC2Client, of: Launching, found: Findings): Promise<void> {
  const [any] = of.types;
  if (any === undefined) return;
  const tried = [
    { type: any, option: 'on-demand' as const },
    ...of.types.map((type) => ({ type, option: 'spot' as const })),
  ];
  const notAsked = new Map<string, string[]>();
  for (const { type, option } of tried) {
    const answer = await launched(client, requestOf(type, option, of));
    if (answer === 'allowed') continue;
    const { is, said } = answer;
    if (is === 'forbidden') {
      const key = option === 'spot' ? 'families' : 'ec2:RunInstances';
      const message = `${type} (${option}) may not be launched, by a policy of your organisation: ${said}; leave it out, or have it allowed`;
      found.failures.push({ at: key, message });
    } else notAsked.set(said, [...(notAsked.get(said) ?? []), `${type} (${option})`]);
  }
  for (const [said, which] of notAsked) {
    const message = `whether ${which.join(', ')} may be launched could not be asked: ${said}`;
    found.notes.push({ at: 'ec2:RunInstances', message });
  }
}

function requestOf(
  type: string,
  option: 'spot' | 'on-demand',
  { imageParameter, subnet }: Launching,
): RunInstancesCommandInput {
  return {
    DryRun: true,
    MinCount: 1,
    MaxCount: 1,
    ImageId: `resolve:ssm:${imageParameter}`,
    InstanceType: type as NonNullable<RunInstancesCommandInput['InstanceType']>,
    MetadataOptions: { HttpTokens: 'required' },
    ...(option === 'spot' ? { InstanceMarketOptions: { MarketType: 'spot' } } : {}),
    ...(subnet === undefined ? {} : { SubnetId: subnet }),
  };
}

async function launched(client: EC2Client, request: RunInstancesCommandInput): Promise<Launched> {
  try {
    await client.send(new RunInstancesCommand(request));
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'DryRunOperation') return 'allowed';
    // Message without its encoded part, which only some may decode.
    const said = message.replace(/\s*Encoded authorization failure message:.*$/s, '');
    if (faultOf(error) === 'denied' && OF_ORGANISATION.test(said)) return { is: 'forbidden', said };
    return { is: 'not-asked', said: `${name}: ${said}` };
  }
  return { is: 'not-asked', said: 'a dry run was answered with an instance' };
}
