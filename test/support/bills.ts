/**
 * Generated scenarios for the simulator: combinations of constraints, deadlines, sizes, checkpoints and markets, each
 * with the facts that bill and progress invariants are checked against.
 */
import { presetNamed } from '../../lib/stages/registry.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { brokenConstraint } from '../../lib/domain/constraints.ts';
import type { Constraints, JobSpec } from '../../lib/domain/job.ts';
import { fits, type Resources } from '../../lib/domain/resources.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { epochMs, milliCpu, mib, plus, raw, seconds, usd, type EpochMs } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { billingAt } from '../../lib/market/billing.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { EventRecord } from '../../lib/ports/store.ts';
import { simulate } from '../../lib/drivers/sim/simulation.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import { spec, stage } from './builders.ts';

/** One combination; plain data, so that a failure can be printed and run again. */
export interface Scenario {
  readonly seed: number;
  readonly tasks: number;
  readonly cpu: number;
  readonly memoryGiB: number;
  readonly runtimeS: number;
  /** Whether the user tells the running time. */
  readonly told: boolean;
  /** Deadline over running time; null: none. */
  readonly slack: number | null;
  readonly constraints: Constraints;
  readonly checkpoint: boolean;
  readonly gang: boolean;
  readonly mustMeet?: boolean;
  readonly maxCostUsd: number | null;
  /** Hours from the market's usual start to the submission. */
  readonly startH: number;
}

export interface MarketOfScenarios {
  readonly name: string;
  readonly trace: MarketTrace;
  readonly fromMs: EpochMs;
}

const NEEDS: readonly (readonly [number, number])[] = [
  [1, 2],
  [2, 4],
  [4, 4],
  [4, 15],
  [1, 15],
  [2, 15],
];
const RUNTIMES_S = [20, 300, 1800, 7200, 18_000];
const SLACKS = [null, 1.12, 1.47, 1.87, 3.1, 8];

const pick = <T>(random: Uniform, of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;

/** The scenario of a seed, on one of the zones and types of a market. */
export function scenarioOf(seed: number, trace: MarketTrace): Scenario {
  const random = randomStream(seed, 'scenario');
  const pool = pick(random, trace.pools);
  const other = pick(random, trace.pools);
  const constraints = pick<Constraints>(random, [
    {},
    {},
    { purchaseOptions: ['spot'] },
    { purchaseOptions: ['on-demand'] },
    { purchaseOptions: ['spot'], arch: ['x86_64'] },
    { purchaseOptions: ['spot'], zones: [pool.zone], arch: [pool.type.arch] },
    { instanceTypes: [pool.type.name, other.type.name] },
    { purchaseOptions: ['spot'], instanceTypes: [pool.type.name, other.type.name] },
    { zones: [pool.zone] },
  ]);
  const [cpu, memoryGiB] = pick(random, NEEDS);
  const tasks = pick(random, [1, 1, 3, 12]);
  return {
    seed,
    tasks,
    cpu,
    memoryGiB,
    runtimeS: pick(random, RUNTIMES_S),
    told: random() < 0.75,
    slack: pick(random, SLACKS),
    constraints,
    checkpoint: random() < 0.4,
    gang: tasks > 1 && random() < 0.15,
    startH: Math.floor(random() * 72),
    maxCostUsd: random() < 0.2 ? pick(random, [0.02, 0.1, 0.5, 2]) : null,
  };
}

/** What came of a scenario. */
export interface Facts {
  readonly refused: string | null;
  readonly state: string;
  readonly billUsd: number;
  /**
   * One task per instance, on demand, on the cheapest type that the constraints allow; start-up and billing units
   * included.
   */
  readonly listUsd: number;
  readonly launches: number;
  /** Instances on which nothing ever ran, the market's own doing aside. */
  readonly unused: number;
  readonly interruptions: number;
  /** Attempts that our own decisions ended. */
  readonly preempted: number;
  readonly preemptedLostS: number;
  readonly workS: number;
  readonly late: boolean;
  readonly purchasesBroken: readonly string[];
  readonly events: readonly EventRecord[];
}

const sigma = 0.3;

function normal(random: Uniform): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

export async function factsOf(
  s: Scenario,
  market: MarketOfScenarios,
  { preset, solver }: { readonly preset: string; readonly solver: Solver },
): Promise<Facts> {
  const random = randomStream(s.seed, 'truth');
  const runtimes = Array.from({ length: s.tasks }, () => s.runtimeS * Math.exp(sigma * normal(random)));
  const need: Resources = { cpu: milliCpu(s.cpu * 1000), memory: mib(s.memoryGiB * 1024), gpus: 0, disk: mib(0) };
  const job: JobSpec = spec({
    name: 'generated',
    ...(s.mustMeet === undefined ? {} : { mustMeet: s.mustMeet }),
    ...(s.slack === null ? {} : { class: 'deadline', deadline: { afterS: seconds(s.slack * s.runtimeS + 400) } }),
    maxCostUsd: s.maxCostUsd === null ? null : usd(s.maxCostUsd),
    stages: [
      stage({
        tasks: s.tasks,
        gang: s.gang,
        resources: need,
        expectedRuntimeS: s.told ? seconds(s.runtimeS) : null,
        constraints: s.constraints,
        checkpoint: s.checkpoint ? { signal: 'SIGUSR1', graceS: seconds(60), everyS: null } : null,
      }),
    ],
  });
  const events: EventRecord[] = [];
  const fromMs = plus(market.fromMs, seconds(s.startH * 3600));
  const billing = billingAt(market.trace.endMs);
  const config = schedulerConfig.parse({ billing });
  const result = await simulate({
    trace: market.trace,
    market: (now) => replayMarket(market.trace, now),
    fromMs,
    toMs: epochMs(Math.min(raw(market.trace.endMs), raw(fromMs) + 7 * 86_400_000)),
    jobs: [
      {
        key: 'generated',
        submittedS: 0,
        spec: job,
        truth: new Map([['main', { runtimeS: Float64Array.from(runtimes) }]]),
      },
    ],
    namesJobs: true,
    deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
    solver,
    config,
    vcpus: 100_000,
    seed: s.seed,
    minGapS: seconds(5),
    setupS: seconds(0),
    onEvent: (event) => void events.push(event),
  });
  const rows = result.collected.rows.columns();
  const pools = new Map(market.trace.pools.map((p) => [p.id as string, p]));
  const bought = new Map<string, string>();
  const used = new Set<string>();
  const taken = new Set<string>();
  const startedMs = new Map<string, number>();
  let preempted = 0;
  let preemptedLostS = 0;
  for (const e of events) {
    const data = e.data as { instance?: string; pool?: string; attempt?: string; keptS?: number };
    if (e.type === 'instance-requested') bought.set(data.instance ?? '', data.pool ?? '');
    if (e.type === 'attempt-starting') {
      used.add(data.instance ?? '');
      startedMs.set(data.attempt ?? '', raw(e.atMs));
    }
    if (e.type === 'instance-interrupted' || e.type === 'instance-warned' || e.type === 'instance-failed')
      taken.add(data.instance ?? '');
    if (e.type === 'attempt-preempted' || e.type === 'attempt-moved') {
      preempted++;
      preemptedLostS += Math.max(
        0,
        (raw(e.atMs) - (startedMs.get(data.attempt ?? '') ?? raw(e.atMs))) / 1000 - (data.keptS ?? 0),
      );
    }
  }
  const launched = [...bought.keys()];
  const purchasesBroken = [...new Set(bought.values())].filter((id) => {
    const pool = pools.get(id);
    return pool === undefined || brokenConstraint(s.constraints, pool) !== null || !fits(need, pool.type.capacity);
  });
  const { usd: sums } = result.collected;
  const { purchaseOptions: _, ...anyOption } = s.constraints;
  const cheapest = Math.min(
    ...market.trace.pools
      .filter((p) => brokenConstraint(anyOption, p) === null && fits(need, p.type.capacity))
      .map((p) => raw(p.onDemandUsdPerHour)),
  );
  const billedH = (r: number): number =>
    billing === 'per-hour' ? Math.ceil((r + 95) / 3600) : Math.max(60, r + 95) / 3600;
  return {
    refused: result.refused[0]?.code ?? null,
    state: rows.state[0] ?? 'refused',
    billUsd: sums.work + sums.wasted + sums.speculative + sums.moved + sums.idle,
    listUsd: cheapest * runtimes.reduce((sum, r) => sum + billedH(r), 0),
    launches: launched.length,
    unused: launched.filter((i) => !used.has(i) && !taken.has(i)).length,
    interruptions: result.collected.interruptions,
    preempted,
    preemptedLostS,
    workS: runtimes.reduce((a, b) => a + b, 0),
    late: (rows.finishedMs[0] ?? 0) > (rows.deadlineMs[0] ?? Infinity),
    purchasesBroken,
    events,
  };
}
