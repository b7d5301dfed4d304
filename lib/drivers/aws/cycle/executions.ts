import { SFNClient, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { classify } from '../errors.ts';

let client: SFNClient | null = null;

/** Starts an execution of the cycle. Its name is also its input. */
export async function startExecution(
  at: { readonly region: string; readonly maxAttempts: number },
  stateMachineArn: string,
  execution: string,
): Promise<void> {
  client ??= new SFNClient(at);
  const input = JSON.stringify({ execution, round: 0 });
  try {
    await client.send(new StartExecutionCommand({ stateMachineArn, name: execution, input }));
  } catch (error) {
    throw classify(error, 'states StartExecution');
  }
}
