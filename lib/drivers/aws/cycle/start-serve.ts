import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from '../errors.ts';

let client: LambdaClient | null = null;

/** Starts an execution of the controller of services, without waiting for it. */
export async function startServe(
  at: { readonly region: string; readonly maxAttempts: number },
  FunctionName: string | undefined,
  execution: string,
): Promise<void> {
  if (FunctionName === undefined) {
    throw new EbbError('internal', { what: 'the deployment does not name the function that runs services' });
  }
  client ??= new LambdaClient(at);
  const Payload = JSON.stringify({ execution });
  try {
    await client.send(new InvokeCommand({ FunctionName, InvocationType: 'Event', Payload }));
  } catch (error) {
    throw classify(error, 'lambda Invoke');
  }
}
