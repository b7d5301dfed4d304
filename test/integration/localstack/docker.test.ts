import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

/** A `docker` that writes down what it is asked, and whose container says that the stores run. */
const DOCKER = `#!${process.execPath}
const { appendFileSync } = require('node:fs');
const { createServer } = require('node:http');
const [verb, ...rest] = process.argv.slice(2);
appendFileSync(process.env.DOCKER_LOG, JSON.stringify([verb, ...rest]) + '\\n');
if (verb === 'run') {
  const [address, port] = rest[rest.indexOf('-p') + 1].split(':');
  const health = JSON.stringify({ services: { dynamodb: 'running', s3: 'running' } });
  createServer((_, answer) => answer.end(health)).listen(Number(port), address);
} else if (verb === 'version') process.exit(process.env.DOCKER_ENGINE === 'none' ? 1 : 0);
`;

/** Run in a process of its own, whose PATH is the test's. */
const PROGRAM = `
const { wayToRun } = await import(${JSON.stringify(import.meta.resolve('../../../scripts/localstack/install.ts'))});
const { running, start, stop } = await import(${JSON.stringify(import.meta.resolve('../../../scripts/localstack/server.ts'))});
const [stores, functions] = [wayToRun('stores'), wayToRun('functions')];
const folder = process.env.STATE;
const told = { stores: stores.mode, functions: functions.mode };
if (stores.mode === 'docker') {
  const localstack = await start(folder, null, 'stores');
  Object.assign(told, { localstack, running: running(folder) });
  await stop(localstack);
}
console.log(JSON.stringify(told));
`;

interface Told {
  readonly stores: string | null;
  readonly functions: string | null;
  readonly localstack?: { readonly endpoint: string; readonly guard: number; readonly mode: string };
  readonly running?: unknown;
}

describe('LocalStack where there is Docker', () => {
  let folder = '';
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-docker-')));
    mkdirSync(join(folder, 'bin'));
    const docker = join(folder, 'bin', 'docker');
    writeFileSync(docker, DOCKER);
    chmodSync(docker, 0o755);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function told(more: Record<string, string> = {}): Promise<Told> {
    const env = {
      ...process.env,
      PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`,
      DOCKER_LOG: join(folder, 'asked'),
      STATE: join(folder, 'state'),
      // Of the person who tests: no business of a container.
      AWS_PROFILE: 'somebody',
      ...more,
    };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', PROGRAM], { env });
    return JSON.parse(stdout) as Told;
  }

  it('is one container of the pinned image, reached from this machine only, and gone at the end', async () => {
    const { stores, localstack, running } = await told();
    expect(stores).toBe('docker');
    const port = new URL(localstack?.endpoint ?? '').port;
    expect(localstack).toMatchObject({ mode: 'docker', endpoint: `http://127.0.0.1:${port}` });
    expect(running).toEqual(localstack);
    expect(existsSync(join(folder, 'state'))).toBe(false);
    const asked = readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n');
    const [pull, run, remove] = asked
      .map((line) => JSON.parse(line) as string[])
      .filter(([verb]) => verb !== 'version');
    const pinned = /^localstack(?:-core)?==([\d.]+)/m.exec(
      readFileSync('scripts/localstack/requirements.txt', 'utf8'),
    )?.[1];
    const image = `localstack/localstack:${pinned}`;
    expect(pull).toEqual(['pull', '--quiet', image]);
    const name = `ebb-localstack-${localstack?.guard}`;
    expect(run).toEqual([
      ...['run', '--rm', '--init', '--name', name, '-p', `127.0.0.1:${port}:4566`],
      ...['-e', 'SERVICES=dynamodb,s3', '-e', 'DISABLE_EVENTS=1', '-e', 'DYNAMODB_IN_MEMORY=1'],
      image,
    ]);
    expect(remove).toEqual(['rm', '--force', name]);
  }, 60_000);

  it('is not asked for functions, which could not reach this machine, nor where no engine answers', async () => {
    const { stores, functions } = await told({ DOCKER_ENGINE: 'none' });
    expect(stores).not.toBe('docker');
    expect(functions).not.toBe('docker');
  }, 60_000);
});
