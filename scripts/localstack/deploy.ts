/**
 * Deployment that stays: this repository's app on its own LocalStack, with EC2, ECS and task logs in the double. Market
 * and region are the rehearsal's (docs/localstack.md).
 *
 * Lifecycle: LocalStack -> deployment -> variables for `ebb` on standard output -> SIGINT, SIGTERM or SIGHUP at any
 * time -> everything is removed. LocalStack also ends when this process is killed. Nothing is kept for the next time:
 * earlier functions would call a double that no longer exists.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onStopRequest, SIGNAL_EXIT, type StopSignal } from '../../lib/cli/signals.ts';
import { awsEnvironment } from '../rehearsal/deploy.ts';
import { FAMILIES, marketOpenedByLaunch, REGION, rehearsalStart } from '../rehearsal/rehearsal-market.ts';
import { Rehearsal, STACK } from '../rehearsal/rehearsal.ts';
import { wayToRun } from './install.ts';
import { start, stop } from './server.ts';

/** Market seconds per wall second. */
const SPEED = 10;

/** Runs until stopped. Resolves to the exit code when everything is removed. */
export async function deployed(): Promise<number> {
  if (wayToRun('functions').mode !== 'host') {
    note(
      'a deployment takes LocalStack without Docker, on Linux: Python 3.11 with venv, a JDK of 17 or later, and Maven',
    );
    return 1;
  }
  const abort = new AbortController();
  const stopped = new Promise<StopSignal>((resolve) => {
    onStopRequest((_, signal) => {
      abort.abort();
      resolve(signal);
    });
  });
  note('starting LocalStack and deploying to it, which takes one to two minutes ...');
  const folder = mkdtempSync(join(tmpdir(), 'ebb-localstack-deploy-'));
  try {
    const localstack = await start(folder, process.pid, 'functions', abort.signal);
    try {
      await stay(localstack.endpoint, { stopped, signal: abort.signal });
    } finally {
      await stop(localstack);
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  }
  note('the deployment and its LocalStack are gone');
  return SIGNAL_EXIT[await stopped];
}

async function stay(
  endpoint: string,
  { stopped, signal }: { readonly stopped: Promise<StopSignal>; readonly signal: AbortSignal },
): Promise<void> {
  const market = { ...marketOpenedByLaunch(), from: rehearsalStart, speed: SPEED, families: FAMILIES };
  const rehearsal = await Rehearsal.begin(endpoint, { ...market, region: REGION, signal });
  try {
    process.stdout.write(`${said(endpoint, rehearsal.apiUrl)}\n`);
    await stopped;
    note('taking the deployment down ...');
  } finally {
    await rehearsal.end();
  }
}

function said(endpoint: string, apiUrl: string): string {
  const variables = { ...awsEnvironment({ endpoint, region: REGION }), EBB_STACK: STACK };
  return [
    `Ebbtide is deployed in ${REGION}, ${SPEED} times as fast as the clock: ${apiUrl}`,
    'With these variables, in another terminal, `ebb submit`, `ebb jobs` and `ebb status` need no options:',
    '',
    ...Object.entries(variables).map(([name, value]) => `export ${name}=${value}`),
    '',
    'Ctrl-C takes it down, LocalStack and all jobs with it.',
  ].join('\n');
}

const note = (text: string): void => void process.stderr.write(`${text}\n`);
