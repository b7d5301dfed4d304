/**
 * Soak test with kills: jobs of short real commands on `ebb up`. Its process is killed with SIGKILL every few seconds
 * and restarted, until all jobs are over.
 *
 * Then jobs, tasks (in the store and in their own records), instances and processes are counted, and the ledger is
 * compared with the bills. Exit code 1 for any fault.
 *
 *   node scripts/soak.ts [--jobs 200] [--tasks 5] [--kill-every 4] [--speed 300] [--minutes 20] [--seed 1] [--keep]
 *
 * The last line has the counts.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { BatchAnswer } from '../lib/api/schemas.ts';
import { httpClient } from '../lib/cli/client.ts';
import type { Job } from '../lib/domain/job.ts';
import { EbbError } from '../lib/kernel/errors.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { raw } from '../lib/kernel/units.ts';
import { createLocalFleet } from '../lib/drivers/local/fleet/local-fleet.ts';
import { killFleet } from '../lib/drivers/local/fleet/kill.ts';
import { tokenIn } from '../lib/api/server/token.ts';
import { openSqliteStore } from '../lib/drivers/local/store/sqlite-store.ts';
import { knownWorld } from '../lib/drivers/local/market/world.ts';
import { capacityOf } from '../lib/market/capacity-truth.ts';
import type { Store } from '../lib/ports/store.ts';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '200' },
    tasks: { type: 'string', default: '5' },
    'kill-every': { type: 'string', default: '4' },
    speed: { type: 'string', default: '300' },
    minutes: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
const JOBS = Number(values.jobs);
const TASKS = Number(values.tasks);
const KILL_EVERY_S = Number(values['kill-every']);
const SPEED = Number(values.speed);
const PATIENCE_MS = Number(values.minutes) * 60_000;

const EBB = fileURLToPath(new URL('../bin/ebb.mjs', import.meta.url));
/** Jobs per request: few, so that kills interrupt many requests, which are sent again. */
const BATCH = 10;
const TOLERANCE_USD = 1e-6;
const root = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-soak-')));
const dir = join(root, 'state');
const witness = join(root, 'witness');
mkdirSync(witness);
const random = randomStream(Number(values.seed), 'soak');
const startedMs = performance.now();
const log = (text: string): void =>
  void process.stdout.write(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${text}\n`);

interface Engine {
  readonly process: ChildProcess;
  readonly url: string;
}

async function startEngine(): Promise<Engine> {
  const args = ['up', '--dir', dir, '--port', '0', '--json', '--speed', values.speed, '--seed', values.seed];
  const child = spawn(process.execPath, [EBB, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  engines.add(child);
  child.once('exit', () => engines.delete(child));
  const lines = createInterface({ input: child.stdout });
  const [first] = (await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`the engine ended with ${String(code)} before it listened`);
    }),
  ])) as [string];
  const { url, pid } = JSON.parse(first) as { url: string; pid: number };
  if (pid !== child.pid)
    throw new Error(`the engine runs as process ${pid}, not as ${child.pid}: killing would miss it`);
  return { process: child, url };
}
const engines = new Set<ChildProcess>();

const jobName = (n: number): string => `soak-${String(n).padStart(4, '0')}`;

/** Job file. Half of the jobs have a deadline; a task works a little and then records its visit. */
const jobFile = (n: number): object => ({
  name: jobName(n),
  owner: `owner-${n % 3}`,
  ...(n % 2 === 0 ? { class: 'deadline', deadline: '48h' } : { class: 'best-effort' }),
  stages: [
    {
      name: 'main',
      workdir: root,
      tasks: TASKS,
      command: `sleep 0.${1 + (n % 4)}; echo done >> ${witness}/${jobName(n)}.$EBB_TASK_INDEX`,
      resources: { cpu: 0.5, memory: '64MiB' },
      expectedRuntime: '3m',
      retries: 0,
    },
  ],
});

/** Sends every job until it is answered, to the engine that is up. */
async function submitAll(current: () => Engine | null): Promise<void> {
  for (let from = 0; from < JOBS; from += BATCH) {
    const jobs = Array.from({ length: Math.min(BATCH, JOBS - from) }, (_, i) => jobFile(from + i));
    for (;;) {
      const engine = current();
      const answer = engine === null ? null : await sent(engine.url, jobs, `batch-${from}`);
      if (answer !== null) {
        const refused = answer.results.filter((r) => r.outcome === 'refused');
        if (refused.length > 0) throw new Error(`a job was refused: ${JSON.stringify(refused[0])}`);
        break;
      }
      await delay(100);
    }
    // Spread over several lives of the engine.
    await delay(200);
  }
}

/** Answer to a batch; null if the engine died meanwhile. */
async function sent(url: string, jobs: readonly object[], key: string): Promise<BatchAnswer | null> {
  try {
    return await httpClient(url, tokenIn(join(dir, 'token'))).post<BatchAnswer>('/api/jobs/batch', {
      body: { jobs },
      headers: { 'idempotency-key': key },
    });
  } catch (error) {
    // The engine was down, or its answer was cut off.
    if ((error instanceof EbbError && error.retryable) || error instanceof TypeError) return null;
    throw error;
  }
}

async function every<T>(
  page: (after: string | null) => Promise<{ items: readonly T[]; next: string | null }>,
): Promise<T[]> {
  const all: T[] = [];
  let after: string | null = null;
  do {
    const { items, next } = await page(after);
    all.push(...items);
    after = next;
  } while (after !== null);
  return all;
}

const isOver = (job: Job): boolean => job.finishedMs !== null;

/** Kills and restarts until all jobs are over, then waits until the engine has released its instances. */
async function soak(): Promise<{ kills: number; timedOut: boolean }> {
  let engine: Engine | null = await startEngine();
  log(`an engine listens on ${engine.url}, state in ${dir}`);
  const store = openSqliteStore({ path: join(dir, 'ebb.db') });
  let kills = 0;
  const submitting = submitAll(() => engine);
  const intake = { done: false };
  const submitted = submitting.then(() => {
    intake.done = true;
  });
  try {
    for (;;) {
      const lifeMs = KILL_EVERY_S * 1000 * (0.25 + 1.5 * random());
      await Promise.race([delay(lifeMs), submitted.then(() => delay(lifeMs)), once(engine.process, 'exit')]);
      const jobs = await every((after) => store.jobs({}, 500, after));
      const over = jobs.filter(isOver).length;
      log(`${over} of ${jobs.length} jobs over, ${kills} kills`);
      if (intake.done && over === JOBS) break;
      if (performance.now() - startedMs > PATIENCE_MS) return { kills, timedOut: true };
      if (engine.process.exitCode !== null) throw new Error(`the engine gave up with ${engine.process.exitCode}`);
      const dead = engine.process;
      engine = null;
      const gone = once(dead, 'exit');
      dead.kill('SIGKILL');
      await gone;
      kills += 1;
      engine = await startEngine();
    }
    await submitted;
    await until('instances given back', async () => (await store.loadActive()).instances.length === 0);
    const last = engine.process;
    const gone = once(last, 'exit');
    last.kill('SIGINT');
    await gone;
    return { kills, timedOut: false };
  } finally {
    await store.close();
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 120_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`waited in vain for: ${what}`);
    await delay(200);
  }
}

async function jobsWrong(store: Store): Promise<string[]> {
  const wrong: string[] = [];
  const jobs = await every((after) => store.jobs({}, 500, after));
  if (jobs.length !== JOBS || new Set(jobs.map((j) => j.spec.name)).size !== JOBS)
    wrong.push(`${jobs.length} jobs of ${new Set(jobs.map((j) => j.spec.name)).size} names, not ${JOBS}`);
  for (const job of jobs) {
    if (job.state !== 'succeeded') wrong.push(`job ${job.spec.name} is ${job.state}: ${job.stateReason}`);
    const attempts = await store.attempts(job.id);
    for (let index = 0; index < TASKS; index++) {
      const of = attempts.filter((a) => a.index === index);
      const succeeded = of.filter((a) => a.outcome === 'succeeded').length;
      if (succeeded !== 1) wrong.push(`${job.spec.name}[${index}] completed ${succeeded} times`);
      const written = linesOf(join(witness, `${job.spec.name}.${index}`));
      // A task killed between its record and its end records again.
      if (written < 1 || written > of.length) wrong.push(`${job.spec.name}[${index}] ran to its end ${written} times`);
      const open = of.filter((a) => a.state !== 'ended');
      if (open.length > 0) wrong.push(`${job.spec.name}[${index}] has ${open.length} attempts that never ended`);
    }
  }
  return wrong;
}

function linesOf(path: string): number {
  try {
    return readFileSync(path, 'utf8').split('\n').length - 1;
  } catch {
    return 0;
  }
}

async function moneyWrong(store: Store): Promise<{ wrong: string[]; instances: number; billedUsd: number }> {
  const wrong: string[] = [];
  const world = await knownWorld(dir);
  const truth = capacityOf(world.trace, world.config);
  const fleet = createLocalFleet({ dir, truth, clock: world.clock, speed: SPEED });
  const known = new Map((await every((after) => store.instances(null, 500, after))).map((i) => [i.id, i]));
  // Instances of long ago have no folder; the store has their bills.
  const bills = new Map([...known].map(([id, i]) => [id, i.costUsd === null ? null : raw(i.costUsd)]));
  for (const { instance, live } of await fleet.list()) {
    if (live) wrong.push(`instance ${instance} still lives`);
    if (!known.has(instance)) wrong.push(`instance ${instance} is not in the store`);
    bills.set(instance, raw((await fleet.bill(instance, world.clock.now())).totalUsd));
  }
  await fleet.close();
  let billedUsd = 0;
  for (const [id, bill] of bills) {
    const state = known.get(id)?.state;
    if (state !== 'ended') wrong.push(`instance ${id} is ${state}`);
    if (bill === null) wrong.push(`instance ${id} has no bill`);
    const rows = (await store.ledger({ instance: id })).reduce((sum, row) => sum + row.usd, 0);
    if (Math.abs(rows - (bill ?? 0)) > TOLERANCE_USD)
      wrong.push(`instance ${id} cost ${bill}, its ledger says ${rows}`);
    billedUsd += bill ?? 0;
  }
  const ledgerUsd = (await store.ledger('all')).reduce((sum, row) => sum + row.usd, 0);
  if (Math.abs(ledgerUsd - billedUsd) > TOLERANCE_USD)
    wrong.push(`bills of ${billedUsd} USD, a ledger of ${ledgerUsd} USD`);
  return { wrong, instances: known.size, billedUsd };
}

/** Live processes with the soak's folder in their command line, on systems with /proc. */
function leftBehind(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return command.includes(root) ? [`process ${name} is left: ${command}`] : [];
      } catch {
        return [];
      }
    });
}

/** Ends every process that the soak started. */
function endAll(): void {
  for (const child of engines) child.kill('SIGKILL');
  try {
    killFleet(dir);
  } catch {
    // No instances were made.
  }
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    endAll();
    process.exit(130);
  });

let violations: string[] = [];
let summary = '';
try {
  const { kills, timedOut } = await soak();
  if (timedOut) violations.push(`not done after ${values.minutes} minutes`);
  const store = openSqliteStore({ path: join(dir, 'ebb.db') });
  const money = await moneyWrong(store);
  violations.push(...(await jobsWrong(store)), ...money.wrong, ...leftBehind());
  const attempts = await store.costs('pool');
  summary = `soak: ${JOBS} jobs x ${TASKS} tasks, ${kills} kills, ${money.instances} instances in ${attempts.length} pools, ${money.billedUsd.toFixed(4)} USD, ${violations.length} violations`;
  await store.close();
} catch (error) {
  violations = [...violations, error instanceof Error ? (error.stack ?? error.message) : String(error)];
} finally {
  endAll();
}
for (const violation of violations.slice(0, 50)) process.stdout.write(`VIOLATION ${violation}\n`);
if (values.keep || violations.length > 0) log(`state kept in ${root}`);
else rmSync(root, { recursive: true, force: true });
process.stdout.write(`${summary === '' ? `soak: failed, ${violations.length} violations` : summary}\n`);
process.exitCode = violations.length > 0 ? 1 : 0;
