/**
 * Input of one cycle: active jobs, instances and attempts as loaded from the store, a market with its history, and
 * learned runs. Drawn from named streams: equal seeds give equal loads.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomStream, type Uniform } from '../lib/kernel/random.ts';
import { attemptId, effectKey, instanceId, jobId, type JobId, type PoolId } from '../lib/kernel/ids.ts';
import { ZERO_S, epochMs, raw, seconds, type EpochMs } from '../lib/kernel/units.ts';
import { mean, quantileS } from '../lib/domain/distribution.ts';
import type { Instance } from '../lib/domain/instance.ts';
import type { Attempt, Job, Task } from '../lib/domain/job.ts';
import type { Pool } from '../lib/domain/pool.ts';
import { countFits, type Resources, milliCpuIn } from '../lib/domain/resources.ts';
import type { Snapshot } from '../lib/domain/snapshot.ts';
import { LoggedHistory } from '../lib/stages/estimate/logged-history.ts';
import { featuresOf, templateOf } from '../lib/domain/job-features.ts';
import { builtInCatalogue, TODAY } from '../lib/market/catalogue.ts';
import { generateMarket, type MarketSpec } from '../lib/market/generate.ts';
import type { MarketTrace } from '../lib/market/trace.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import { replayMarket } from '../lib/drivers/local/market/replay.ts';
import type { Market } from '../lib/ports/market.ts';
import { WorkingState } from '../lib/cycle/state/working-state.ts';
import { takeSnapshot } from '../lib/cycle/state/snapshot.ts';
import { attempt, instance, job, needOf, spec, stage } from './load/values.ts';
import { lognormal } from './load/scenario.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Templates of recurring jobs, which differ by name, and known runs of each. */
const TEMPLATES = 60;
const KNOWN_RUNS = 20;
/** Jobs that occupy the instances. */
const RUNNING_JOBS = 17;

export interface LoadShape {
  readonly groups: number;
  /** Tasks per group: uniform from 1 to twice this, less one. */
  readonly tasksPerGroup: number;
  readonly instances: number;
  /** vCPUs that may be added, as a fraction of the needs of all waiting work. */
  readonly supply: number;
}

export interface BenchMarket {
  readonly name: string;
  readonly market: Market;
  /** Start with enough history before it and market after it. */
  readonly fromMs: EpochMs;
}

/**
 * `count` pools, half of them spot, of 2 to 16 x86 vCPUs. `path`: a market file or folder; null: a generated market.
 */
export async function benchMarket(count: number, path: string | null): Promise<BenchMarket> {
  if (path === null) {
    const trace = generated(Math.ceil(count / 2));
    return marketOf(trace, count, raw(trace.startMs) + 8 * DAY_MS);
  }
  const folder = mkdtempSync(join(tmpdir(), 'ebb-bench-market-'));
  try {
    const { trace } = await openMarket(path, folder);
    return marketOf(trace, count, (raw(trace.startMs) + raw(trace.endMs)) / 2);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function generated(markets: number): MarketTrace {
  const catalogue = builtInCatalogue();
  const types = catalogue.types().flatMap((type) => {
    const entry = catalogue.entry(type, TODAY);
    return entry !== null && ordinary(entry.type) ? [entry] : [];
  });
  const specs = Array.from({ length: markets }, (_, i): MarketSpec => ({
    entry: types[(i * 7) % types.length] as (typeof types)[number],
    zone: `us-east-1${'abcdef'[Math.floor(i / types.length)] ?? 'f'}`,
    regime: i % 2 === 0 ? 'spiky' : 'smooth',
  }));
  return generateMarket({ name: 'generated', seed: 1, startMs: TODAY, days: 10, markets: specs, temper: 'natural' });
}

const ordinary = (type: Pool['type']): boolean =>
  type.arch === 'x86_64' && type.capacity.gpus === 0 && [2, 4, 8, 16].includes(milliCpuIn(type.capacity) / 1000);

function marketOf(trace: MarketTrace, count: number, fromMs: number): BenchMarket {
  const market = replayMarket(trace);
  const at = epochMs(fromMs);
  const spot = trace.pools.filter((p) => p.option === 'spot' && ordinary(p.type) && market.quote(p.id, at) !== null);
  const taken = new Set(spot.slice(0, Math.ceil(count / 2)).map((p) => `${p.type.name}/${p.zone}`));
  const pools = trace.pools.filter((p) => taken.has(`${p.type.name}/${p.zone}`)).slice(0, count);
  return { name: trace.name, market: { ...market, pools: () => pools }, fromMs: at };
}

/** Letters only: templates ignore digits. */
const templateWord = (i: number): string => `job-${String.fromCharCode(97 + (i % 26), 97 + Math.floor(i / 26))}`;

const KNOWN_STAGE = { resources: needOf(1, 512), expectedRuntimeS: seconds(600) };

/** Known earlier runs: most templates have some, a few of them little. */
export function benchHistory(): LoggedHistory {
  const history = new LoggedHistory();
  const draw = randomStream(1, 'bench/cycle/history');
  for (let t = 0; t < TEMPLATES; t++) {
    const runtimes = lognormal(600 * 12 ** draw(), 0.5, draw);
    const of = spec({ name: templateWord(t), owner: `team-${t % 12}`, stages: [stage(KNOWN_STAGE)] });
    for (let run = 0; run < (t % 5 === 0 ? 2 : KNOWN_RUNS); run++) {
      const value = quantileS(runtimes, draw());
      for (const part of of.stages) history.learnUnlogged(featuresOf(of, part, TODAY), seconds(value));
    }
  }
  return history;
}

/** State as from `loadActive`, and the limits of its work. */
export function benchState(shape: LoadShape, world: BenchMarket, seed: number, nowMs: EpochMs) {
  const draw = randomStream(seed, 'bench/cycle/load');
  const jobs = Array.from({ length: shape.groups }, (_, i) => pendingJob(`p${i}`, { shape, draw, nowMs }));
  const held = heldCapacity(shape, world, { draw, nowMs });
  const wanted = jobs.reduce(
    (sum, j) => sum + j.spec.stages.reduce((n, s) => n + s.tasks * milliCpuIn(s.resources), 0),
    0,
  );
  const state = new WorkingState({
    jobs: [...jobs, ...held.jobs],
    tasks: held.tasks,
    attempts: held.attempts,
    instances: held.instances,
    openEffects: [],
    cursors: new Map(),
  });
  return { state, limits: { vcpus: Math.ceil(held.vcpus + (wanted * shape.supply) / 1000) } };
}

export function benchSnapshot(of: ReturnType<typeof benchState>, { market }: BenchMarket, nowMs: EpochMs): Snapshot {
  const pools = market.pools();
  return takeSnapshot({
    state: of.state,
    nowMs,
    pools: pools.map((pool) => ({ pool, quote: market.quote(pool.id, nowMs), open: true, closedReason: null })),
    poolById: new Map<PoolId, Pool>(pools.map((p) => [p.id, p])),
    dependencies: new Map(),
    spentUsd: new Map(),
    limits: of.limits,
  });
}

interface Drawing {
  readonly draw: Uniform;
  readonly nowMs: EpochMs;
}

function pendingJob(id: string, { shape, draw, nowMs }: Drawing & { readonly shape: LoadShape }): Job {
  const pick = <T>(of: readonly T[]): T => of[Math.floor(draw() * of.length)] as T;
  const need = needOf(pick([0.5, 1, 1, 2, 4]), pick([1000, 2000, 4000, 6000]));
  const tasks = 1 + Math.floor(draw() * (2 * shape.tasksPerGroup - 1));
  const template = Math.floor(draw() * TEMPLATES);
  const guessS = raw(mean(lognormal(600 * 12 ** draw(), 0.5, draw)));
  const isDeadline = draw() < 0.5;
  const submittedMs = epochMs(raw(nowMs) - Math.floor(draw() * HOUR_MS));
  const deadlineMs = isDeadline ? epochMs(raw(nowMs) + (guessS + 7200 * draw() + 160) * 1000) : null;
  const of = spec({
    name: templateWord(template),
    owner: `team-${template % 12}`,
    class: isDeadline ? 'deadline' : 'best-effort',
    deadline: deadlineMs === null ? null : { atMs: deadlineMs },
    stages: [
      stage({
        tasks,
        resources: need,
        checkpoint: draw() < 2 / 3 ? { signal: 'SIGUSR1', graceS: seconds(30), everyS: null } : null,
        expectedRuntimeS: draw() < 0.8 ? null : seconds(guessS),
        constraints: draw() < 0.1 ? { zones: ['us-east-1a', 'us-east-1b'] } : {},
      }),
    ],
  });
  return job(id, { spec: of, template: templateOf(of), submittedMs, deadlineMs });
}

/** Spot instances, partly filled with best-effort tasks. */
function heldCapacity(shape: LoadShape, { market }: BenchMarket, { draw, nowMs }: Drawing) {
  const need: Resources = needOf(1, 1500);
  const pools = market.pools().filter((p) => p.option === 'spot');
  const counts = new Map<string, number>();
  const attempts: Attempt[] = [];
  const tasks: Task[] = [];
  const instances: Instance[] = [];
  const allocation = effectKey('p-load/launch/0');
  let vcpus = 0;
  for (let i = 0; i < shape.instances; i++) {
    const pool = pools[Math.floor(draw() * pools.length)] as Pool;
    const id = instanceId(`i-${String(i).padStart(6, '0')}`);
    instances.push(instance(id, pool.id, { allocation, requestedMs: nowMs, launchedMs: nowMs, readyMs: nowMs }));
    vcpus += milliCpuIn(pool.type.capacity) / 1000;
    const name = `r${i % RUNNING_JOBS}`;
    const startedMs = epochMs(raw(nowMs) - Math.floor(draw() * 10) * 300_000);
    for (let n = Math.floor(draw() * (1 + countFits(need, pool.type.capacity))); n > 0; n--) {
      const index = counts.get(name) ?? 0;
      counts.set(name, index + 1);
      const task = { job: jobId(name), stage: 'main', index };
      tasks.push({ ...task, state: 'running', attempts: 1, failures: 0, keptS: ZERO_S, notBeforeMs: null });
      attempts.push(
        attempt({
          ...task,
          id: attemptId(`${name}.main.${index}.1`),
          instance: id,
          resources: need,
          placedMs: epochMs(0),
          startedMs,
        }),
      );
    }
  }
  const jobs = [...counts].map(([name, count]): Job => runningJob(jobId(name), count, { need, nowMs }));
  return { jobs, tasks, attempts, instances, vcpus };
}

function runningJob(id: JobId, count: number, { need, nowMs }: { need: Resources; nowMs: EpochMs }): Job {
  const of = spec({
    name: templateWord(1),
    owner: 'team-1',
    stages: [stage({ ...KNOWN_STAGE, tasks: count, resources: need })],
  });
  return job(id, {
    spec: of,
    state: 'running',
    submittedMs: epochMs(raw(nowMs) - 2 * HOUR_MS),
    stages: [
      {
        name: 'main',
        tasks: count,
        nextFresh: count,
        waiting: 0,
        running: count,
        succeeded: 0,
        failed: 0,
        cancelled: 0,
      },
    ],
  });
}
