/**
 * Environment of a Lambda function: loads the handler, then answers one request after another. ebb_lambda.py starts it
 * with the file descriptors of two pipes; it ends when the first pipe does.
 *
 *   node worker.mjs REQUESTS-FD ANSWERS-FD
 */
import { createReadStream, existsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { env } = process;
const [requests, answers] = process.argv.slice(2).map(Number);

// Synchronous write: the answer is out before the function's next action, including its end.
function say(message) {
  let rest = Buffer.from(`${JSON.stringify(message)}\n`);
  while (rest.length > 0) rest = rest.subarray(writeSync(answers, rest));
}

/** Error in Lambda's form: Step Functions matches `errorType` in Retry and Catch. */
const asLambdaSays = (error) => ({
  errorType: error instanceof Error ? error.name : typeof error,
  errorMessage: error instanceof Error ? error.message : String(error),
  trace: error instanceof Error ? String(error.stack).split('\n') : [],
});

/** Handler by `_HANDLER`, which is `file.export` with the file's name without its ending. */
async function load() {
  const named = /^(?<file>.+?)\.(?<path>[^/]+)$/.exec(env._HANDLER ?? '');
  if (named === null) throw new Error(`the handler "${env._HANDLER}" is not of the form file.export`);
  const { file, path } = named.groups;
  const found = ['mjs', 'js', 'cjs']
    .map((end) => join(env.LAMBDA_TASK_ROOT, `${file}.${end}`))
    .find((f) => existsSync(f));
  if (found === undefined) throw new Error(`Cannot find module '${file}'`);
  const module = await import(pathToFileURL(found).href);
  for (const root of [module, module.default]) {
    const handler = path.split('.').reduce((inside, key) => inside?.[key], root);
    if (typeof handler === 'function') return handler;
  }
  throw new Error(`${env._HANDLER} is undefined or not exported`);
}

function contextOf(request) {
  const endsMs = performance.now() + Number(env.AWS_LAMBDA_FUNCTION_TIMEOUT) * 1000;
  return {
    awsRequestId: request['invoke-id'],
    invokedFunctionArn: request['invoked-function-arn'],
    functionName: env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, Math.round(endsMs - performance.now())),
  };
}

/** Call of a handler, which answers by a promise or by a callback. */
function call(handler, event, context) {
  return new Promise((resolve, reject) => {
    const returned = handler(event, context, (error, result) => (error ? reject(error) : resolve(result)));
    if (typeof returned?.then === 'function') returned.then(resolve, reject);
  });
}

async function answer(handler, line) {
  const request = JSON.parse(line);
  env._X_AMZN_TRACE_ID = request['trace-id'];
  try {
    const result = await call(handler, JSON.parse(request.payload || 'null'), contextOf(request));
    say({ result: JSON.stringify(result) ?? 'null' });
  } catch (error) {
    say({ error: asLambdaSays(error) });
  }
}

try {
  const handler = await load();
  const lines = createInterface({ input: createReadStream('', { fd: requests }) });
  lines.on('line', (line) => void answer(handler, line));
  lines.on('close', () => process.exit());
  say({ ready: true });
} catch (error) {
  say({ error: asLambdaSays(error) });
  process.exit(1);
}
