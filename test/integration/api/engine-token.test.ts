import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, expect, it } from '@jest/globals';
import type { JobView } from '../../../lib/api/schemas.ts';
import { announce, announcedEngine } from '../../../lib/api/server/announcement.ts';
import { stopAtOnce } from '../../support/stop-at-once.ts';
import { until } from '../../support/until.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-token-'));
const env = { PATH: process.env['PATH'] ?? '', HOME: scratch };
const dir = join(scratch, 'engine');
const JOB = { name: 'one', workdir: scratch, command: 'true', resources: { cpu: 1, memory: '64MiB' } };
let engine: ChildProcess | null = null;

afterEach(async () => {
  if (engine !== null) await stopAtOnce(engine);
  engine = null;
});
afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));

interface Up {
  readonly url: string;
  readonly tokenFile: string | null;
  /** Remarks until then. */
  readonly notes: () => string;
}

async function up(...args: string[]): Promise<Up> {
  const child = spawn(process.execPath, [EBB, 'up', '--json', '--port', '0', '--dir', dir, ...args], {
    cwd: scratch,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  engine = child;
  let notes = '';
  child.stderr.on('data', (chunk: Buffer) => (notes += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ebb up ended with ${code}: ${notes}`)));
    createInterface({ input: child.stdout }).once('line', (line) =>
      resolve({ ...(JSON.parse(line) as { url: string; tokenFile: string | null }), notes: () => notes }),
    );
  });
}

const ebb = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
  spawnSync(process.execPath, [EBB, ...args], { cwd: scratch, env, encoding: 'utf8' });

const submit = async (url: string, token: string | null): Promise<Response> =>
  fetch(`${url}/api/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(JOB),
  });

it('an engine takes requests only with the token of its folder, which the command line finds by itself', async () => {
  const { url, tokenFile } = await up();
  expect(tokenFile).toBe(join(dir, 'token'));
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, 'token')).mode & 0o777).toBe(0o600);
  const token = readFileSync(join(dir, 'token'), 'utf8').trim();
  expect(token).toMatch(/^[\da-f]{64}$/);

  for (const path of ['/api/jobs', '/api/health', '/api/openapi.json', '/']) {
    const answer = await fetch(url + path);
    expect([path, answer.status]).toEqual([path, 401]);
    expect(await answer.text()).not.toContain(token);
  }
  expect((await submit(url, null)).status).toBe(401);
  expect((await submit(url, 'f'.repeat(64))).status).toBe(401);
  const taken = await submit(url, token);
  expect(taken.status).toBe(201);
  expect(((await taken.json()) as { job: JobView }).job.owner).toBe(userInfo().username);
  // A job without a working directory gets a folder of its own; one that is refused leaves none.
  const own = async (more: object): Promise<number> => {
    const body = JSON.stringify({ name: 'own', command: 'true', resources: { cpu: 1, memory: '64MiB' }, ...more });
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    return (await fetch(`${url}/api/jobs`, { method: 'POST', headers, body })).status;
  };
  expect([await own({}), await own({ resources: { gpu: 64 } }), await own({ inputs: 'absent' })]).toEqual([
    201, 422, 422,
  ]);
  expect(readdirSync(join(dir, 'work'))).toHaveLength(1);

  const listed = ebb('jobs', '--json', '--url', url);
  expect(listed.stderr).toBe('');
  expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ name: 'own' }, { name: 'one' }] });
  // By a copy of the token, as another user would.
  writeFileSync(join(scratch, 'copy'), `${token}\n`);
  const elsewhere = { ...env, HOME: join(scratch, 'nobody') };
  const denied = spawnSync(process.execPath, [EBB, 'jobs', '--url', url], { env: elsewhere, encoding: 'utf8' });
  expect(denied.status).toBe(7);
  expect(denied.stderr).toContain('--token-file');
  for (const [args, more] of [
    [['--token-file', join(scratch, 'copy')], {}],
    [[], { EBB_TOKEN: token }],
  ] as const) {
    const ran = spawnSync(process.execPath, [EBB, 'jobs', '--url', url, ...args], { env: { ...elsewhere, ...more } });
    expect(ran.status).toBe(0);
  }

  // The token stays; an engine that was killed is not taken for a living one.
  const killed = engine!;
  const gone = new Promise((resolve) => killed.once('exit', resolve));
  expect(announcedEngine(url, env)?.token).toBe(token);
  killed.kill('SIGKILL');
  await gone;
  engine = null;
  expect(announcedEngine(url, env)).toBeNull();
  const again = await up();
  expect(announcedEngine(again.url, env)?.token).toBe(token);
}, 120_000);

it('without a token it says what that means, and refuses it where others reach it', async () => {
  const open = await up('--no-token');
  expect(open.tokenFile).toBeNull();
  expect(open.notes()).toMatch(/warning: --no-token: every user of this machine/);
  expect((await submit(open.url, null)).status).toBe(201);
  await stopAtOnce(engine!);
  engine = null;

  const exposed = ebb('up', '--dir', dir, '--port', '0', '--bind', '0.0.0.0', '--no-token');
  expect(exposed.status).toBe(2);
  expect(exposed.stderr).toContain('anybody who reaches this address could run programs here');

  const unused = join(scratch, 'unused');
  const guessable = spawnSync(process.execPath, [EBB, 'up', '--dir', unused, '--port', '0'], {
    env: { ...env, EBB_TOKEN: 'short' },
    encoding: 'utf8',
  });
  expect([guessable.status, guessable.stderr]).toEqual([2, expect.stringContaining('too short to be a secret')]);
  expect(existsSync(unused)).toBe(false);
}, 120_000);

it('a folder that others can look into is said at start', async () => {
  rmSync(dir, { recursive: true, force: true });
  const own = await up();
  expect(own.notes()).not.toContain('other users');
  await stopAtOnce(engine!);
  for (const [mode, right] of [
    [0o755, 'read'],
    [0o770, 'change'],
  ] as const) {
    chmodSync(dir, mode);
    const { notes } = await up();
    expect(notes()).toContain(`warning: other users of this machine can ${right} what is in ${dir}`);
    expect(notes()).toContain(`chmod 700 ${dir}`);
    await stopAtOnce(engine!);
  }
  engine = null;
}, 120_000);

it('files that cannot be removed are said, and the engine is none the worse', async () => {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { mode: 0o700 });
  symlinkSync('logs', join(dir, 'logs'));
  const { url, notes, tokenFile } = await up();
  await until(() => notes().includes('ELOOP'));
  expect(notes()).toContain('ebb: old logs and checkpoints cannot be removed');
  expect(notes()).not.toContain('scheduling cycle');
  const authorization = `Bearer ${readFileSync(tokenFile ?? '', 'utf8').trim()}`;
  const health = await fetch(`${url}/api/health`, { headers: { authorization } });
  expect(await health.json()).toMatchObject({ status: 'ok', detail: null });
  await stopAtOnce(engine!);
  engine = null;
}, 120_000);

it('a token that others can read is refused', async () => {
  rmSync(dir, { recursive: true, force: true });
  await up();
  await stopAtOnce(engine!);
  engine = null;
  chmodSync(join(dir, 'token'), 0o644);
  const refused = ebb('up', '--dir', dir, '--port', '0');
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain('0644');
  expect(refused.stderr).toContain('rm ');
}, 120_000);

it('the token goes to addresses that the engine itself listens at, and to no other of this machine', () => {
  const home = mkdtempSync(join(scratch, 'home-'));
  const tokenFile = join(home, 'token');
  writeFileSync(tokenFile, 'f'.repeat(64));
  const asked = (listens: string, address: string): string | null => {
    const takeBack = announce({ url: `http://${listens}:7788`, dir: home, tokenFile }, { HOME: home });
    const found = announcedEngine(`http://${address}:7788`, { HOME: home });
    takeBack();
    expect(found?.token ?? null).toBe(found === null ? null : 'f'.repeat(64));
    return found?.url ?? null;
  };
  // Another user may listen at ::1 and at 127.0.0.2, on the same port.
  expect(asked('127.0.0.1', '127.0.0.1')).toBe('http://127.0.0.1:7788/');
  expect(asked('127.0.0.1', '[::1]')).toBeNull();
  expect(asked('127.0.0.1', '127.0.0.2')).toBeNull();
  expect(asked('[::1]', '127.0.0.1')).toBeNull();
  expect(asked('127.0.0.1', 'localhost')).toBe('http://127.0.0.1:7788/');
  expect(asked('[::1]', 'localhost')).toBe('http://[::1]:7788/');
  expect(asked('0.0.0.0', 'localhost')).toBe('http://127.0.0.1:7788/');
  expect(asked('0.0.0.0', '127.0.0.2')).toBe('http://127.0.0.2:7788/');
  expect(asked('0.0.0.0', '[::1]')).toBeNull();
  expect(asked('[::]', '127.0.0.1')).toBe('http://127.0.0.1:7788/');
});

const openssl = spawnSync('openssl', ['version']).status === 0;
if (!openssl)
  process.stderr.write('skipped: HTTPS of the engine; openssl makes its certificate and is not installed\n');
(openssl ? it : it.skip)(
  'beyond loopback it serves HTTPS, or says that it is plain HTTP',
  async () => {
    rmSync(dir, { recursive: true, force: true });
    const [cert, key] = [join(scratch, 'cert.pem'), join(scratch, 'key.pem')];
    spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=localhost'],
      ...['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-out', cert, '-keyout', key],
    ]);
    expect(existsSync(cert)).toBe(true);
    const half = ebb('up', '--dir', dir, '--port', '0', '--tls-cert', cert);
    expect([half.status, half.stderr]).toEqual([2, expect.stringContaining('--tls-key')]);
    const wrong = ebb('up', '--dir', dir, '--port', '0', '--tls-cert', cert, '--tls-key', cert);
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining('cannot be used together')]);

    const secure = await up('--tls-cert', cert, '--tls-key', key);
    expect(secure.url).toMatch(/^https:/);
    expect(secure.notes()).not.toContain('warning');
    const strange = ebb('jobs', '--url', secure.url);
    expect([strange.status, strange.stderr]).toEqual([10, expect.stringMatching(/not trusted[^]*NODE_EXTRA_CA_CERTS/)]);
    const trusting = { ...env, NODE_EXTRA_CA_CERTS: cert };
    const asked = spawnSync(process.execPath, [EBB, 'jobs', '--url', secure.url], { env: trusting, encoding: 'utf8' });
    expect([asked.status, asked.stderr]).toEqual([0, '']);
    await stopAtOnce(engine!);
    const plain = await up('--bind', '0.0.0.0');
    const mistaken = ebb('jobs', '--url', `https://127.0.0.1:${new URL(plain.url).port}`);
    expect([mistaken.status, mistaken.stderr]).toEqual([10, expect.stringContaining('name it with http://')]);
    expect(plain.notes()).toMatch(/warning: plain HTTP on 0\.0\.0\.0/);
  },
  180_000,
);
