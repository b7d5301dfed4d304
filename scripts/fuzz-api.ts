/**
 * Fuzzer of the HTTP API, on a real engine in a temporary folder. It runs schemathesis with the engine's own OpenAPI
 * document, then sends job files full of wildcards and braces.
 *
 * It fails if an answer is a 5xx, contradicts the document or takes longer than REQUEST_LIMIT_MS. It also fails if the
 * engine schedules nothing afterwards, or survives SIGTERM. Needs Python 3.11; schemathesis is installed once with its
 * dependencies, pinned by hash.
 *
 *   node scripts/fuzz-api.ts [--examples 50] [--seed 1]
 *
 * The last line has the counts: `fuzz-api: N answers, 2xx A, 4xx B, 5xx 0`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { MAX_BATCH_JOBS } from '../lib/api/requests.ts';
import { hostileStage } from './hostile-stage.ts';
import { pythonPrograms } from './installation.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const REQUIREMENTS = join(ROOT, 'scripts', 'schemathesis-requirements.txt');

const { values } = parseArgs({
  options: { examples: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
});

/** Longest time of a request, far above the need of a loaded machine. */
const REQUEST_LIMIT_MS = 20_000;
/** Longest time for a job to run behind all the others. */
const PATIENCE_MS = 600_000;
/** Longest time for SIGTERM to end the engine. */
const END_PATIENCE_MS = 60_000;

/**
 * Checks of every answer. Left out is authentication, because this server has no token. So is acceptance or refusal of
 * generated values: a document cannot say that a job must exist.
 */
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
  'allow_header_conformance',
];

const programs = await pythonPrograms('schemathesis', REQUIREMENTS);
const dir = await mkdtemp(join(tmpdir(), 'ebb-fuzz-'));
const server = spawn(process.execPath, [join(ROOT, 'scripts', 'serve-engine.ts'), '--dir', dir], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const lines = createInterface({ input: server.stdout });
const { url } = (await nextLine(lines)) as { url: string };
const fuzzer = spawn(join(programs, 'schemathesis'), fuzzArguments(url), { stdio: 'inherit', cwd: dir });
const [code] = (await once(fuzzer, 'exit')) as [number | null];
await postHostile(url);
await goesOn(url);
const answers = await stop(server);
await rm(dir, { recursive: true });

const total = (digit: string): number =>
  Object.entries(answers).reduce((sum, [status, n]) => sum + (status.startsWith(digit) ? n : 0), 0);
const all = total('');
process.stdout.write(`fuzz-api: ${all} answers, 2xx ${total('2')}, 4xx ${total('4')}, 5xx ${total('5')}\n`);
// Without answers of both kinds the fuzzer has not reached its target.
if (code !== 0 || total('5') > 0 || total('2') === 0 || total('4') === 0) process.exitCode = 1;

/** Posts job files with patterns on which naive matchers and expanders never end: one by one, then in batches. */
async function postHostile(base: string): Promise<void> {
  const keys = fc.sample(hostileStage, { numRuns: 10 * Number(values.examples), seed: Number(values.seed) });
  const jobs = keys.map((stage, i) => ({
    name: `hostile-${i}`,
    stages: [{ name: 'main', command: 'true', ...stage }],
    workdir: dir,
  }));
  for (const job of jobs) {
    const status = await post(base, '/api/jobs', job);
    if (![201, 400, 422].includes(status)) throw new Error(`answer ${status} to ${JSON.stringify(job).slice(0, 500)}`);
  }
  for (let i = 0; i < jobs.length; i += MAX_BATCH_JOBS) {
    const status = await post(base, '/api/jobs/batch', { jobs: jobs.slice(i, i + MAX_BATCH_JOBS) });
    if (status !== 200 && status !== 413) throw new Error(`answer ${status} to a batch of hostile jobs`);
  }
}

/** Checks that a plain job still runs to its end. */
async function goesOn(base: string): Promise<void> {
  const name = 'after-all-that';
  const status = await post(base, '/api/jobs', { name, command: 'true', workdir: dir });
  if (status !== 201) throw new Error(`the engine no longer accepts a plain job: answer ${status}`);
  const since = performance.now();
  for (let state = ''; state !== 'succeeded';) {
    if (performance.now() - since > PATIENCE_MS) throw new Error(`the engine is stuck: a plain job is still ${state}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const answer = await fetch(`${base}/api/jobs/${name}`, { signal: AbortSignal.timeout(REQUEST_LIMIT_MS) });
    ({ state } = (await answer.json()) as { state: string });
  }
}

async function post(base: string, path: string, body: object): Promise<number> {
  const answer = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
  });
  await answer.text();
  return answer.status;
}

function fuzzArguments(base: string): string[] {
  return [
    'run',
    `${base}/api/openapi.json`,
    ...['--checks', CHECKS.join(',')],
    ...['--max-examples', values.examples],
    ...['--seed', values.seed],
    ...['--phases', 'examples,coverage,fuzzing,stateful'],
    ...['--request-timeout', String(REQUEST_LIMIT_MS / 1000)],
    ...['--suppress-health-check', 'all'],
    ...['--generation-database', 'none'],
    '--continue-on-failure',
    '--no-color',
  ];
}

async function nextLine(from: Interface): Promise<unknown> {
  const [line] = (await once(from, 'line')) as [string];
  return JSON.parse(line);
}

/** Ends the server; resolves to its counts. */
async function stop(process: ChildProcess): Promise<Record<string, number>> {
  const counted = nextLine(lines);
  const late = setTimeout(() => process.kill('SIGKILL'), END_PATIENCE_MS);
  process.once('exit', () => clearTimeout(late));
  process.kill('SIGTERM');
  return ((await counted) as { answers: Record<string, number> }).answers;
}
