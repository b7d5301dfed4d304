import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { classify } from '../errors.ts';

/** Sends a message to the trigger queue: there is something to do. */
export async function trigger(client: SQSClient, queue: string, why: string): Promise<void> {
  try {
    await client.send(new SendMessageCommand({ QueueUrl: queue, MessageBody: JSON.stringify({ why }) }));
  } catch (error) {
    throw classify(error, 'sqs SendMessage');
  }
}
