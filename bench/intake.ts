/**
 * Intake over HTTP: single-job POSTs, each durable (SQLite, WAL, synchronous FULL) before its answer. The server runs in
 * a process of its own on the same machine; the load generator shares its cores.
 *
 *   node bench/intake.ts [--seconds 10] [--connections 64] [--dir FOLDER]
 *
 * Prints the highest throughput, then the latency at half that rate (autocannon sends a second's share of each connection
 * in a burst, which is harder than an even rate), then checks that every acknowledged job is in the
 * database that the stopped server leaves behind.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { SqliteStore } from '../lib/local/store/sqlite-store.ts';

/** What intake is to reach: at least this many jobs a second, and this latency at half the highest rate. */
const TARGET_JOBS_PER_S = 2000;
const TARGET_P99_MS = 50;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    connections: { type: 'string', default: '64' },
    dir: { type: 'string' },
  },
});
const secondsOfLoad = Number(values.seconds);
const connections = Number(values.connections);

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

async function serve(dir: string): Promise<Served> {
  const script = fileURLToPath(new URL('../scripts/serve-api.ts', import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, script, '--dir', dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return { process: child, url: (JSON.parse(line) as { url: string }).url };
  }
  throw new Error('the API server ended before it listened');
}

/** One run of load; the paths of the jobs that were acknowledged are added to `acknowledged`. */
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

const dir = values.dir ?? (await mkdtemp(join(tmpdir(), 'ebb-intake-')));
const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
console.log(
  `intake: ebbtide ${version}, node ${process.version}, sqlite ${process.versions['sqlite'] ?? '?'}, ${cpus().length} x ${cpus()[0]?.model ?? '?'}`,
);
// Above 0 the machine has other work, and latencies are those of waiting for a core.
console.log(`load average before: ${loadavg()[0]?.toFixed(1)}`);
console.log(`body ${Buffer.byteLength(JOB)} bytes, ${connections} connections, ${secondsOfLoad} s per phase`);

const acknowledged = new Set<string>();
const server = await serve(dir);
await load(server.url, 3, null, acknowledged);
const full = await load(server.url, secondsOfLoad, null, acknowledged);
const jobsPerS = full['2xx'] / full.duration;
const half = await load(server.url, secondsOfLoad, Math.round(jobsPerS / 2), acknowledged);
server.process.kill('SIGTERM');
await once(server.process, 'exit');

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
if (lost.length > 0 || refused > 0 || errors > 0) process.exitCode = 1;
