/**
 * Intake over HTTP, each job durable (SQLite, WAL, synchronous FULL) before its answer. The server runs in its own
 * process on the same machine, so senders share its cores.
 *
 *   node bench/intake.ts [--seconds 10] [--connections 64] [--jobs 20000] [--dir FOLDER]
 *
 * 1. Single submissions from many connections: the highest throughput, then the latency at half that rate. autocannon
 *    sends a second's share of each connection in a burst, which is harder than an even rate. Then every acknowledged
 *    job is looked up in the database of the stopped server.
 * 2. One client, single submissions one after another, then batches (POST /api/jobs/batch), to the same server.
 * 3. End to end: `ebb submit` of --jobs jobs, as documents of one YAML file, as JSON lines and as 5,000 files. The
 *    engine is real (scripts/serve-engine.ts: admission, engine thread and instances as in `ebb up`) and runs the jobs
 *    meanwhile. Timed are the whole command with process start and reading, and its requests alone, from the first to
 *    the last answer. An answered job is in the database, and the engine's next cycle takes it. Then the same command
 *    again under its key. The longest wait of a health check (one every 20 ms) shows the effect on others.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { MAX_BATCH_JOBS } from '../lib/api/requests.ts';
import type { BatchAnswer } from '../lib/api/schemas.ts';
import { SqliteStore } from '../lib/drivers/local/store/sqlite-store.ts';

/** Targets of intake: jobs per second (single ones, and end to end), and latency at half the highest rate. */
const TARGET_JOBS_PER_S = 2000;
const TARGET_P99_MS = 50;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '64' },
    jobs: { type: 'string', default: '20000' },
    dir: { type: 'string' },
  },
});
const secondsOfLoad = Number(values.seconds);
const connections = Number(values.connections);
const jobCount = Number(values.jobs);

const JOB = JSON.stringify({
  name: 'nightly-render-2026-03-01',
  owner: 'bench',
  class: 'deadline',
  deadline: '2h',
  stages: [
    {
      name: 'render',
      tasks: 100,
      command: ['./render', '--frame', '{index}'],
      workdir: '/srv/render',
      resources: { cpu: 2, memory: '4GiB' },
      checkpoint: { signal: 'SIGUSR1', grace: '30s' },
    },
  ],
});

interface Served {
  readonly process: ChildProcess;
  readonly url: string;
}

async function serve(dir: string, program: 'serve-api' | 'serve-engine'): Promise<Served> {
  const script = fileURLToPath(new URL(`../scripts/${program}.ts`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, script, '--dir', dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return { process: child, url: (JSON.parse(line) as { url: string }).url };
  }
  throw new Error('the API server ended before it listened');
}

/** One run of load; paths of acknowledged jobs are added to `acknowledged`. */
async function load(url: string, seconds: number, rate: number | null, acknowledged: Set<string>) {
  return autocannon({
    url: `${url}/api/jobs`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JOB,
    connections,
    duration: seconds,
    ...(rate === null ? {} : { overallRate: rate }),
    setupClient: (client) => {
      client.on('headers', (answer: unknown) => {
        const { statusCode, headers } = answer as { statusCode: number; headers: string[] };
        if (statusCode !== 201) return;
        const at = headers.findIndex((h, i) => i % 2 === 0 && h.toLowerCase() === 'location');
        const path = headers[at + 1];
        if (at >= 0 && path !== undefined) acknowledged.add(path.slice('/api/jobs/'.length));
      });
    },
  });
}

async function stored(dir: string): Promise<Set<string>> {
  const store = new SqliteStore({ path: join(dir, 'ebb.db') });
  const ids = new Set<string>();
  let after: string | null = null;
  do {
    const page = await store.jobs({}, 1000, after);
    for (const job of page.items) ids.add(job.id);
    after = page.next;
  } while (after !== null);
  await store.close();
  return ids;
}

/** Sequential submissions: few enough for a minute. */
const ONE_BY_ONE = 1000;
const FILES = 5000;
const HEALTH_EVERY_MS = 20;

async function post(url: string, path: string, body: string, key: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': key };
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function oneClient(url: string): Promise<{ readonly singlePerS: number; readonly batchPerS: number }> {
  let began = performance.now();
  for (let i = 0; i < ONE_BY_ONE; i++) await post(url, '/api/jobs', JOB, `single-${i}`);
  const singlePerS = ONE_BY_ONE / ((performance.now() - began) / 1000);
  began = performance.now();
  for (let i = 0; i < jobCount; i += MAX_BATCH_JOBS) {
    const jobs = Array<string>(Math.min(MAX_BATCH_JOBS, jobCount - i)).fill(JOB);
    const { created } = (await post(
      url,
      '/api/jobs/batch',
      `{"jobs":[${jobs.join(',')}]}`,
      `batch-${i}`,
    )) as BatchAnswer;
    if (created !== jobs.length) throw new Error(`${created} of ${jobs.length} jobs of a batch were created`);
  }
  return { singlePerS, batchPerS: jobCount / ((performance.now() - began) / 1000) };
}

async function ended(served: Served): Promise<void> {
  served.process.kill('SIGTERM');
  await once(served.process, 'exit');
}

const yaml = (i: number): string => `name: job-${i}\ncommand: ["true"]\nresources:\n  cpu: 1\n  memory: 256MiB\n`;
const line = (i: number): string =>
  JSON.stringify({ name: `job-${i}`, command: ['true'], resources: { cpu: 1, memory: '256MiB' } });
const each = (count: number, text: (i: number) => string): string[] => Array.from({ length: count }, (_, i) => text(i));

/** Inputs of `ebb submit`: files by name. */
const FORMS: readonly (readonly [string, () => ReadonlyMap<string, string>])[] = [
  ['one YAML file', () => new Map([['jobs.yaml', each(jobCount, yaml).join('---\n')]])],
  ['JSON lines', () => new Map([['jobs.ndjson', each(jobCount, line).join('\n')]])],
  [`${FILES} YAML files`, () => new Map(each(FILES, yaml).map((text, i) => [`job-${i}.yaml`, text]))],
];

/** Longest wait for a health check, until stopped. */
function healthOf(url: string): () => Promise<number> {
  let isOver = false;
  let longestMs = 0;
  const asking = (async () => {
    while (!isOver) {
      const began = performance.now();
      await (await fetch(`${url}/api/health`)).text();
      longestMs = Math.max(longestMs, performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, HEALTH_EVERY_MS));
    }
  })();
  return async () => {
    isOver = true;
    await asking;
    return longestMs;
  };
}

/** Proxy between client and engine that measures from the first request to the last answer. */
async function relay(target: string): Promise<{ readonly url: string; readonly spanMs: () => number; close(): void }> {
  let firstMs: number | null = null;
  let lastMs = 0;
  const server = createServer((request, response) => {
    firstMs ??= performance.now();
    const { method, url: path, headers } = request;
    const passed = httpRequest(`${target}${path ?? ''}`, { method, headers, agent: AGENT }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on('end', () => (lastMs = performance.now()));
    });
    request.pipe(passed);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spanMs: () => lastMs - (firstMs ?? lastMs),
    close: () => void server.close(),
  };
}
const AGENT = new Agent({ keepAlive: true });

async function submit(
  url: string,
  cwd: string,
  names: readonly string[],
): Promise<{ readonly tookS: number; readonly outcomes: readonly string[] }> {
  const began = performance.now();
  const child = spawn(process.execPath, [EBB, 'submit', '--key', 'bench', '--json', ...names], {
    cwd,
    env: { ...process.env, EBB_URL: url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (piece) => (text += String(piece)));
  const [code] = (await once(child, 'close')) as [number | null];
  const tookS = (performance.now() - began) / 1000;
  if (code !== 0) throw new Error(`ebb submit ended with ${code}`);
  return { tookS, outcomes: (JSON.parse(text) as { outcome: string }[]).map((a) => a.outcome) };
}
const EBB = fileURLToPath(new URL('../bin/ebb.mjs', import.meta.url));

async function endToEnd(form: string, filesOf: () => ReadonlyMap<string, string>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'ebb-submit-'));
  const [jobs, engineDir] = [join(home, 'jobs'), join(home, 'engine')];
  await mkdir(jobs);
  await mkdir(engineDir);
  const files = filesOf();
  for (const [name, text] of files) await writeFile(join(jobs, name), text);
  const engine = await serve(engineDir, 'serve-engine');
  const between = await relay(engine.url);
  try {
    const health = healthOf(engine.url);
    const first = await submit(between.url, jobs, [...files.keys()]);
    const requestsS = between.spanMs() / 1000;
    const longestMs = await health();
    const again = await submit(engine.url, jobs, [...files.keys()]);
    const count = first.outcomes.length;
    const isWhole = first.outcomes.every((o) => o === 'created') && again.outcomes.every((o) => o === 'repeated');
    if (!isWhole) process.exitCode = 1;
    const perS = count / requestsS;
    console.log(
      `ebb submit    ${form}, ${count} jobs: ${perS.toFixed(0)} jobs/s from first request to last answer (target ${TARGET_JOBS_PER_S}: ${(perS / TARGET_JOBS_PER_S).toFixed(2)}x), ` +
        `${(count / first.tookS).toFixed(0)} jobs/s with start and reading (${first.tookS.toFixed(1)} s); again ${again.tookS.toFixed(1)} s; ` +
        `health check at most ${longestMs.toFixed(0)} ms; ${isWhole ? 'each job made once' : 'NOT each job made once'}`,
    );
  } finally {
    between.close();
    await ended(engine);
    await rm(home, { recursive: true, force: true });
  }
}

const dir = values.dir ?? (await mkdtemp(join(tmpdir(), 'ebb-intake-')));
const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
console.log(
  `intake: ebbtide ${version}, node ${process.version}, sqlite ${process.versions['sqlite'] ?? '?'}, ${cpus().length} x ${cpus()[0]?.model ?? '?'}`,
);
// A load above 0 means other work on the machine: latencies include waiting for a core.
console.log(`load average before: ${loadavg()[0]?.toFixed(1)}`);
console.log(`body ${Buffer.byteLength(JOB)} bytes, ${connections} connections, ${secondsOfLoad} s per phase`);

const acknowledged = new Set<string>();
const server = await serve(dir, 'serve-api');
await load(server.url, 3, null, acknowledged);
const full = await load(server.url, secondsOfLoad, null, acknowledged);
const jobsPerS = full['2xx'] / full.duration;
const half = await load(server.url, secondsOfLoad, Math.round(jobsPerS / 2), acknowledged);
const { singlePerS, batchPerS } = await oneClient(server.url);
await ended(server);

const refused = full.non2xx + half.non2xx;
const errors = full.errors + half.errors;
const inDatabase = await stored(dir);
const lost = [...acknowledged].filter((id) => !inDatabase.has(id));
if (values.dir === undefined) await rm(dir, { recursive: true });

console.log(
  `throughput    ${jobsPerS.toFixed(0)} jobs/s (target ${TARGET_JOBS_PER_S}: ${(jobsPerS / TARGET_JOBS_PER_S).toFixed(2)}x)`,
);
console.log(
  `latency       p50 ${half.latency.p50} ms, p99 ${half.latency.p99} ms at ${(half['2xx'] / half.duration).toFixed(0)} jobs/s ` +
    `(target p99 ${TARGET_P99_MS} ms: ${(half.latency.p99 / TARGET_P99_MS).toFixed(2)}x)`,
);
console.log(
  `durability    ${acknowledged.size} acknowledged, ${inDatabase.size} in the database, ${lost.length} lost; ${refused} refused, ${errors} errors`,
);
console.log(
  `one client    ${singlePerS.toFixed(0)} jobs/s one by one (${ONE_BY_ONE} jobs), ${batchPerS.toFixed(0)} jobs/s in batches of ${MAX_BATCH_JOBS} (${jobCount} jobs): ${(batchPerS / singlePerS).toFixed(0)}x`,
);
for (const [form, files] of FORMS) await endToEnd(form, files);
if (lost.length > 0 || refused > 0 || errors > 0) process.exitCode = 1;
