/**
 * LocalStack for manual use: the AWS services of Ebbtide's tests, on this machine, without an account.
 *
 *   npm run localstack -- start    starts it and says how to reach it; runs until stopped
 *   npm run localstack -- deploy   starts another one, deploys Ebbtide to it and says how to use it; runs until stopped
 *   npm run localstack -- status   where it runs; exit code 1 if it does not
 *   npm run localstack -- stop
 */
import { rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { wayToRun } from './install.ts';
import { running, SERVICES, start, stop, STORES, type LocalStack } from './server.ts';

/** Folder of the user's only one, for all checkouts. */
const FOLDER = join(tmpdir(), `ebb-localstack-${userInfo().username}`);

const [verb = ''] = process.argv.slice(2);
const found = running(FOLDER);
switch (verb) {
  case 'start':
    say(found ?? (await begin()));
    break;
  case 'deploy':
    process.exitCode = await (await import('./deploy.ts')).deployed();
    break;
  case 'stop':
    if (found !== null) await stop(found);
    process.stdout.write(found === null ? 'LocalStack does not run\n' : 'LocalStack is stopped\n');
    break;
  case 'status':
    if (found === null) process.stdout.write('LocalStack does not run\n');
    else say(found);
    process.exitCode = found === null ? 1 : 0;
    break;
  default:
    process.stderr.write('usage: npm run localstack -- start|deploy|stop|status\n');
    process.exitCode = 2;
}

async function begin(): Promise<LocalStack> {
  const need = wayToRun('functions').mode === null ? 'stores' : 'functions';
  const way = wayToRun(need);
  if (way.mode === null) {
    process.stderr.write(`LocalStack cannot run here: ${way.missing}\n`);
    process.exit(1);
  }
  rmSync(FOLDER, { recursive: true, force: true });
  return start(FOLDER, null, need);
}

function say({ endpoint, mode, guard }: LocalStack): void {
  process.stdout.write(
    [
      `LocalStack runs (${mode}, process ${guard}) with ${(mode === 'host' ? SERVICES : STORES).join(', ')}`,
      `export AWS_ENDPOINT_URL=${endpoint} AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test`,
      '',
    ].join('\n'),
  );
}
