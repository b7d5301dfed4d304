import type { Context } from 'aws-lambda';

/** What the Lambda service passes besides the event. */
export const context: Context = {
  callbackWaitsForEmptyEventLoop: true,
  functionName: 'ebbtide-test',
  functionVersion: '$LATEST',
  invokedFunctionArn: 'arn:aws:lambda:eu-central-1:000000000000:function:ebbtide-test',
  memoryLimitInMB: '1024',
  awsRequestId: '7f1bd7a7-5f8b-4b8e-9d3a-2f0a4a1f7c11',
  logGroupName: '/aws/lambda/ebbtide-test',
  logStreamName: '2026/01/05/[$LATEST]0',
  getRemainingTimeInMillis: () => 30_000,
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
};

/** Calls a deployed handler as the service does: JSON in, JSON out. */
export async function invoke<T>(handler: unknown, event: unknown): Promise<T> {
  const call = handler as (event: unknown, context: Context) => Promise<unknown>;
  const answer = await call(JSON.parse(JSON.stringify(event)), context);
  return (answer === undefined ? undefined : JSON.parse(JSON.stringify(answer))) as T;
}
