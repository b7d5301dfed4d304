/**
 * Rate at which the local engine starts and finishes tasks of `true`, from `ebb up` to the exit of real processes.
 *
 *   node bench/task-starts.ts [--case all|tasks|jobs] [--tasks 10000] [--jobs 5000] [--speed 10] [--vcpus N]
 *     [--form package|checkout] [--profile FOLDER]
 *
 * tasks: one job of many tasks. jobs: many single-task jobs, submitted in batches while the engine runs.
 *
 * Times are those of attempts in the database of the stopped engine, divided by `--speed`, which only makes instances
 * start sooner. A start counts when the program was spawned. Bounds of the same run: `sh -c true` spawned by one Node
 * process with the same concurrency, and by `xargs -P2`. Processor time is that of the engine with all threads, and of
 * the supervisors with their tasks. Linux only. Prints figures; judges nothing.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Instance } from '../lib/domain/instance.ts';
import type { Attempt, Job } from '../lib/domain/job.ts';
import { DATABASE } from '../lib/drivers/local/engine/database-name.ts';
import { tokenIn } from '../lib/api/server/token.ts';
import { vcpuLimit } from '../lib/drivers/local/market/world.ts';
import { defaultMarket } from '../lib/market/default-market.ts';
import { machine, percentile } from './figures.ts';
import { productAs, temporaryFolder, usageOf, type Form } from './product.ts';

const { values: args } = parseArgs({
  options: {
    case: { type: 'string', default: 'all' },
    tasks: { type: 'string', default: '10000' },
    jobs: { type: 'string', default: '5000' },
    speed: { type: 'string', default: '10' },
    vcpus: { type: 'string', default: String(vcpuLimit(defaultMarket())) },
    form: { type: 'string', default: 'package' },
    profile: { type: 'string' },
  },
});
const speed = Number(args.speed);

/** Target: task starts per second. */
const TARGET_PER_S = 100;
const WINDOW_S = 10;
const BATCH_JOBS = 500;
const BOUND_SPAWNS = 2000;
/** Longest wall time of one case. */
const PATIENCE_S = 900;
/** Longest wait for the release of idle instances. */
const RELEASE_PATIENCE_S = 60;

interface Served {
  readonly pid: number;
  readonly url: string;
  readonly dir: string;
  stop(): Promise<void>;
}

async function engineUp(form: Form, name: string): Promise<Served> {
  const product = productAs(form);
  const folder = temporaryFolder(`task-starts-${name}`);
  const dir = join(folder, 'ebb');
  const flags = args.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(args.profile, name)}`];
  const up = ['up', '--json', '--dir', dir, '--port', '0', '--speed', args.speed, '--vcpus', args.vcpus];
  const child = spawn(process.execPath, [...flags, product.launcher, ...up], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, EBB_RELAUNCHED: '1' },
  });
  let text = '';
  let url = '';
  for await (const line of createInterface({ input: child.stdout })) {
    text += line;
    url = /"url":\s*"([^"]+)"/.exec(text)?.[1] ?? '';
    if (url !== '') break;
  }
  const { pid } = child;
  if (url === '' || pid === undefined) throw new Error('the engine ended before it listened');
  child.stdout.resume();
  return {
    pid,
    url,
    dir,
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
      product.remove();
      rmSync(folder, { recursive: true });
    },
  };
}

const jobOf = (name: string, tasks: number, workdir: string) => ({
  name,
  owner: 'bench',
  class: 'best-effort',
  stages: [{ name: 'main', tasks, command: ['sh', '-c', 'true'], workdir, resources: { cpu: 1, memory: '64MiB' } }],
});

async function post(to: Served, path: string, body: unknown): Promise<void> {
  const authorization = `Bearer ${tokenIn(join(to.dir, 'token'))}`;
  const headers = { 'content-type': 'application/json', authorization };
  const answer = await fetch(`${to.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${await answer.text()}`);
  const { results = [] } = (await answer.json()) as { results?: { problem: unknown }[] };
  const refused = results.find((r) => r.problem !== null);
  if (refused !== undefined) throw new Error(`a job was refused: ${JSON.stringify(refused)}`);
}

/** Processor time of a fleet's supervisors and of their ended tasks, seconds: the largest value seen of each. */
class Supervisors {
  readonly #seen = new Map<string, number>();
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  look(): void {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      try {
        // Supervisors work in the fleet's folder, tasks in folders below it.
        if (readlinkSync(`/proc/${name}/cwd`) !== this.#dir) continue;
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        this.#seen.set(name, [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0) / 100);
      } catch {
        // The process has ended.
      }
    }
  }

  get cpuS(): number {
    return [...this.#seen.values()].reduce((a, b) => a + b, 0);
  }
}

interface Times {
  readonly submittedS: number;
  readonly placedS: number;
  readonly startedS: number;
  readonly endedS: number;
}

interface Measures {
  readonly times: readonly Times[];
  /** Time at which the last instance of the first purchases was up. */
  readonly upS: number;
  /** Instances taken by the market. */
  readonly taken: number;
}

function measuresIn(database: string): Measures {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    const bodies = <T>(sql: string): T[] =>
      db
        .prepare(sql)
        .all()
        .map((row) => JSON.parse(String(row['body'])) as T);
    const jobs = new Map(bodies<Job>('SELECT body FROM jobs').map((j) => [j.id, Number(j.submittedMs)]));
    const wallS = (ms: unknown): number => Number(ms) / 1000 / speed;
    const instances = bodies<Instance>('SELECT body FROM instances');
    const times = bodies<Attempt>('SELECT body FROM attempts').flatMap((a) =>
      a.startedMs === null || a.endedMs === null
        ? []
        : [
            {
              submittedS: wallS(jobs.get(a.job)),
              placedS: wallS(a.placedMs),
              startedS: wallS(a.startedMs),
              endedS: wallS(a.endedMs),
            },
          ],
    );
    const firstS = Math.min(...times.map((t) => t.startedS));
    const first = instances.filter((i) => i.readyMs !== null && wallS(i.requestedMs) < firstS);
    const taken = instances.filter((i) => i.endCause === 'interrupted').length;
    return { times, upS: Math.max(...first.map((i) => wallS(i.readyMs))), taken };
  } finally {
    db.close();
  }
}

/** Unfinished jobs and live instances. */
function leftIn(database: string): { readonly jobs: number; readonly instances: number } {
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    const count = (sql: string): number => Number(db.prepare(sql).get()?.['n']);
    return {
      jobs: count(`SELECT count(*) n FROM jobs WHERE state NOT IN ('succeeded', 'failed', 'cancelled')`),
      instances: count('SELECT count(*) n FROM instances WHERE open = 1'),
    };
  } finally {
    db.close();
  }
}

async function measure(name: 'tasks' | 'jobs', bound: number): Promise<void> {
  const served = await engineUp(args.form as Form, name);
  try {
    const database = join(served.dir, DATABASE);
    const supervisors = new Supervisors(served.dir);
    const before = usageOf(served.pid);
    const load = loadavg();
    const submitting = performance.now();
    if (name === 'tasks') await post(served, '/api/jobs', jobOf('many', Number(args.tasks), served.dir));
    else {
      for (let i = 0; i < Number(args.jobs); i += BATCH_JOBS) {
        const count = Math.min(BATCH_JOBS, Number(args.jobs) - i);
        const jobs = Array.from({ length: count }, (_, n) => jobOf(`single-${i + n}`, 1, served.dir));
        await post(served, '/api/jobs/batch', { jobs });
      }
    }
    const submittedS = (performance.now() - submitting) / 1000;
    const until = performance.now() + PATIENCE_S * 1000;
    while (leftIn(database).jobs > 0) {
      if (performance.now() > until) throw new Error(`${JSON.stringify(leftIn(database))} left after ${PATIENCE_S} s`);
      supervisors.look();
      await sleep(500);
    }
    supervisors.look();
    const after = usageOf(served.pid);
    const released = performance.now() + RELEASE_PATIENCE_S * 1000;
    while (leftIn(database).instances > 0 && performance.now() < released) await sleep(500);
    report(name, measuresIn(database), {
      submittedS,
      bound,
      engineS: after.cpuS - before.cpuS,
      tasksS: supervisors.cpuS,
      load,
      rssMiB: after.rssMiB,
    });
  } finally {
    await served.stop();
  }
}

interface Measured {
  readonly submittedS: number;
  readonly bound: number;
  readonly engineS: number;
  readonly tasksS: number;
  readonly load: readonly number[];
  readonly rssMiB: number;
}

function report(name: string, { times: all, upS, taken }: Measures, of: Measured): void {
  const starts = all.map((t) => t.startedS).sort((a, b) => a - b);
  const first = starts[0] ?? NaN;
  const tookS = Math.max(...all.map((t) => t.endedS)) - first;
  const rate = all.length / tookS;
  const windows: number[] = [];
  for (let from = 0; from < tookS; from += WINDOW_S) {
    const lengthS = Math.min(WINDOW_S, tookS - from);
    const there = starts.filter((s) => s - first >= from && s - first < from + WINDOW_S).length;
    windows.push(there / lengthS);
  }
  const atFirst = starts.filter((s) => s >= upS && s < upS + WINDOW_S).length / WINDOW_S;
  const waits = all.map((t) => t.startedS - t.submittedS);
  const begins = all.map((t) => 1000 * (t.startedS - t.placedS));
  const [w50, w95] = [0.5, 0.95].map((q) => percentile(waits, q).toFixed(1));
  const [b50, b95] = [0.5, 0.95].map((q) => percentile(begins, q).toFixed(0));
  const perTask = (s: number): string => `${((1000 * s) / all.length).toFixed(2)} ms`;
  const what = name === 'tasks' ? `one job of ${all.length} tasks` : `${all.length} jobs of one task`;
  console.log(
    `  ${what}: ${rate.toFixed(1)} starts/s over ${tookS.toFixed(1)} s, ${atFirst.toFixed(1)}/s in the first ${WINDOW_S} s with all instances up (to reach: ${TARGET_PER_S}/s)`,
  );
  console.log(
    `    starts/s by ${WINDOW_S} s: ${windows.map((w) => w.toFixed(0)).join(' ')}; the instances were up after ${(upS - first).toFixed(1)} s, the market took ${taken}`,
  );
  console.log(`    ratio to spawning from one process: ${(rate / of.bound).toFixed(3)}`);
  console.log(
    `    from submission to start: p50 ${w50} s, p95 ${w95} s; from decision to start: p50 ${b50} ms, p95 ${b95} ms`,
  );
  console.log(
    `    processor time per task: engine ${perTask(of.engineS)}, supervisors and tasks ${perTask(of.tasksS)}; engine ${of.rssMiB.toFixed(0)} MiB`,
  );
  console.log(
    `    submitted in ${of.submittedS.toFixed(1)} s; load average before ${of.load.map((x) => x.toFixed(1)).join(' ')}, after ${loadavg()[0]?.toFixed(1)}`,
  );
}

/** Bound of `sh -c true`, `atOnce` at a time, from this process: spawns per second, and processor time of one. */
async function spawnBound(atOnce: number): Promise<{ readonly perS: number; readonly cpuMs: number }> {
  let left = BOUND_SPAWNS;
  const began = performance.now();
  const cpu = process.cpuUsage();
  const children = childrenCpuS();
  const one = async (): Promise<void> => {
    while (left-- > 0) await once(spawn('/bin/sh', ['-c', 'true'], { stdio: 'ignore' }), 'exit');
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const own = process.cpuUsage(cpu);
  const cpuMs = (own.user + own.system) / 1000 + 1000 * (childrenCpuS() - children);
  return { perS: (1000 * BOUND_SPAWNS) / (performance.now() - began), cpuMs: cpuMs / BOUND_SPAWNS };
}

/** Processor time of this process's ended children. */
function childrenCpuS(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

function xargsPerS(): number | null {
  const input = Array.from({ length: BOUND_SPAWNS }, (_, i) => i).join('\n');
  const began = performance.now();
  try {
    execFileSync('xargs', ['-P2', '-n1', 'sh', '-c', 'true'], { input });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return (1000 * BOUND_SPAWNS) / (performance.now() - began);
}

const vcpus = Number(args.vcpus);
console.log(`task starts: ${machine()}`);
console.log(
  `  \`sh -c true\`, 1 vCPU and 64 MiB each; ${vcpus} vCPUs at most, market at ${speed} times the clock, seed 39, as a ${args.form}`,
);
const bound = await spawnBound(vcpus);
const xargs = xargsPerS();
console.log(
  `  bounds: ${bound.perS.toFixed(0)}/s spawned from one process, ${vcpus} at once, ${bound.cpuMs.toFixed(2)} ms of processor time each;` +
    ` ${xargs === null ? 'no xargs' : `${xargs.toFixed(0)}/s by xargs -P2`}`,
);
for (const name of ['tasks', 'jobs'] as const)
  if (args.case === 'all' || args.case === name) await measure(name, bound.perS);
