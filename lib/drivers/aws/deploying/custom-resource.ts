/**
 * Custom resources of CloudFormation: its request, and the answer, which is an object put to the given address.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
 *
 * A deployment hangs until the answer arrives, so failures are answered too. Our resources can be made again and leave
 * nothing to undo, so `Delete`, also in a roll-back, always succeeds.
 */
import { z } from 'zod';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from '../errors.ts';

export const customResourceEvent = z.object({
  RequestType: z.enum(['Create', 'Update', 'Delete']),
  ResponseURL: z.url(),
  StackId: z.string(),
  RequestId: z.string(),
  LogicalResourceId: z.string(),
  PhysicalResourceId: z.string().optional(),
  ResourceProperties: z.record(z.string(), z.unknown()),
});
export type CustomResourceEvent = z.output<typeof customResourceEvent>;

/** Length of the reason. An answer has at most 4,096 bytes ("Response objects"), which also hold ids. */
const MAX_REASON = 2_000;

export interface Answered {
  readonly status: 'SUCCESS' | 'FAILED';
  /** Reason of a failure; else empty. */
  readonly reason: string;
}

/**
 * Does the work, except for deletions, and answers. An error of `work` fails the deployment with its message. Throws
 * only if the answer does not arrive: the Lambda service then asks again.
 */
export async function answerDeployment(
  event: CustomResourceEvent,
  work: (properties: CustomResourceEvent['ResourceProperties']) => Promise<void>,
): Promise<Answered> {
  const answered = await outcomeOf(event, work);
  const { StackId, RequestId, LogicalResourceId, PhysicalResourceId = `ebbtide-${LogicalResourceId}` } = event;
  const { status: Status, reason: Reason } = answered;
  const body = JSON.stringify({ Status, Reason, StackId, RequestId, LogicalResourceId, PhysicalResourceId });
  // Empty content type: the address is signed without one.
  const response = await fetch(event.ResponseURL, { method: 'PUT', body, headers: { 'content-type': '' } });
  if (!response.ok) {
    throw new EbbError('aws.unavailable', {
      what: 'CloudFormation refuses an answer',
      got: `${response.status} ${response.statusText}`,
    });
  }
  return answered;
}

async function outcomeOf(
  { RequestType, ResourceProperties }: CustomResourceEvent,
  work: (properties: CustomResourceEvent['ResourceProperties']) => Promise<void>,
): Promise<Answered> {
  if (RequestType === 'Delete') return { status: 'SUCCESS', reason: '' };
  try {
    await work(ResourceProperties);
    return { status: 'SUCCESS', reason: '' };
  } catch (error) {
    return { status: 'FAILED', reason: reasonOf(classify(error, 'deploying')) };
  }
}

/** Text for people in the stack's events: each finding with its key and remedy. */
function reasonOf({ facts, message }: EbbError): string {
  const { issues, next } = facts;
  const said = issues === undefined ? message : issues.map((i) => `${i.at}: ${i.message}`).join('; ');
  return `Ebbtide: ${said}${next === undefined ? '' : ` (${next})`}`.slice(0, MAX_REASON);
}
