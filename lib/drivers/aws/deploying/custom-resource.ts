/**
 * What CloudFormation asks of a function behind a custom resource, and the answer it waits for: an object put to an
 * address that it gives. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
 *
 * A deployment hangs until it is answered, so every request is: with a failure as well. What is made here can be made
 * again and has nothing to be undone: `Delete`, of a roll-back too, is only said yes to.
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

/** An answer has 4,096 bytes at most ("Response objects"); the rest is for the ids. */
const MAX_REASON = 2_000;

export interface Answered {
  readonly status: 'SUCCESS' | 'FAILED';
  /** Why it failed; empty when it did not. */
  readonly reason: string;
}

/**
 * Does the work, unless something is deleted, and answers. What `work` throws fails the deployment, in its words.
 * Throws only where the answer does not arrive: the Lambda service then asks again.
 */
export async function answerDeployment(
  event: CustomResourceEvent,
  work: (properties: CustomResourceEvent['ResourceProperties']) => Promise<void>,
): Promise<Answered> {
  const answered = await outcomeOf(event, work);
  const { StackId, RequestId, LogicalResourceId, PhysicalResourceId = `ebbtide-${LogicalResourceId}` } = event;
  const { status: Status, reason: Reason } = answered;
  const body = JSON.stringify({ Status, Reason, StackId, RequestId, LogicalResourceId, PhysicalResourceId });
  // The address is signed for a request without a content type.
  const response = await fetch(event.ResponseURL, { method: 'PUT', body, headers: { 'content-type': '' } });
  if (!response.ok) {
    throw new EbbError('aws.unavailable', {
      what: 'CloudFormation does not take an answer',
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

/** As a person reads it among the events of the stack: each finding with its key, and what to do. */
function reasonOf({ facts, message }: EbbError): string {
  const { issues, next } = facts;
  const said = issues === undefined ? message : issues.map((i) => `${i.at}: ${i.message}`).join('; ');
  return `Ebbtide: ${said}${next === undefined ? '' : ` (${next})`}`.slice(0, MAX_REASON);
}
