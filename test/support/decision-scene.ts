import { noSolver } from '../../bench/load/no-solver.ts';
import { decide } from '../../lib/cycle/decide/decide.ts';
import type { Deliberation } from '../../lib/cycle/decide/deliberation.ts';
import { takeSnapshot } from '../../lib/cycle/state/snapshot.ts';
import { WorkingState } from '../../lib/cycle/state/working-state.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import { NEVER_INTERRUPTED } from '../../lib/domain/forecast.ts';
import type { MarketForecast } from '../../lib/domain/forecasts.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { Attempt, Job, StageProgress, StageSpec, Task } from '../../lib/domain/job.ts';
import type { Allotment, MoveTarget, Plan } from '../../lib/domain/plan.ts';
import type { Pool } from '../../lib/domain/pool.ts';
import type { Snapshot } from '../../lib/domain/snapshot.ts';
import { attemptId, instanceId, planId } from '../../lib/kernel/ids.ts';
import { epochMs, plus, seconds, usdPerHour, type EpochMs } from '../../lib/kernel/units.ts';
import type { PlanPolicy, QueuePolicy, ScalePolicy, SpeculatePolicy } from '../../lib/policy/contracts.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import { withoutExchanges } from '../../lib/stages/plan/without-exchanges.ts';
import { presetNamed } from '../../lib/stages/registry.ts';
import { knowing } from './beliefs.ts';
import { attempt, instance, job, pool, resources, spec, stage } from './builders.ts';
import { NO_BELIEFS } from '../../bench/load/no-beliefs.ts';

/**
 * One decision on a hand-made state. Every stage is the default preset's but for the plan: that is given, so that what
 * is looked at is what becomes of it.
 */

export const START_MS = epochMs(1_700_000_000_000);
export const at = (s: number): EpochMs => plus(START_MS, seconds(s));
export const NOW_S = 1000;
export const spot = pool({ zone: 'a' });
export const onDemand = pool({ zone: 'a', option: 'on-demand' });
export const POOLS: readonly Pool[] = [spot, onDemand, pool({ zone: 'b' })];
export const SAVES = { signal: 'SIGUSR2' as const, graceS: seconds(30), everyS: seconds(60) };

export const host = (id: string, of: Pool, over: Partial<Instance> = {}): Instance =>
  instance({ id: instanceId(id), pool: of.id, launchedMs: at(0), readyMs: at(0), ...over });
export const runs = (id: string, of: Job, over: Partial<Attempt> = {}): Attempt =>
  attempt({ id: attemptId(id), job: of.id, startedMs: at(NOW_S - 300), placedMs: at(NOW_S - 400), ...over });
/** A job of one stage, so many of whose tasks run and wait again. */
export const jobOf = (id: string, tasks: Partial<StageProgress>, over: Partial<StageSpec> = {}): Job => {
  const progress = { running: 0, waiting: 0, ...tasks };
  const all = progress.running + progress.waiting;
  const main = stage({ resources: resources(2), checkpoint: SAVES, ...over, tasks: all });
  const made = job({ name: id, state: 'running', submittedMs: at(0), spec: spec({ name: id, stages: [main] }) });
  return { ...made, stages: made.stages.map((s) => ({ ...s, ...progress, nextFresh: all })) };
};

export interface Scene {
  readonly speculate?: SpeculatePolicy;
  readonly scale?: ScalePolicy;
  readonly budgets?: Snapshot['budgets'] & {};
  readonly jobs: readonly Job[];
  readonly attempts?: readonly Attempt[];
  readonly tasks?: readonly Task[];
  readonly instances?: readonly Instance[];
  readonly vcpus?: number;
  readonly allotment?: Partial<Allotment>;
  /** Attempts that the plan moves. */
  readonly moves?: readonly { readonly attempt: string; readonly reason: string; readonly to?: MoveTarget }[];
  readonly nowS?: number;
  readonly before?: Deliberation;
  readonly billing?: 'per-second' | 'per-hour';
  readonly explains?: boolean;
  /** The preset's own where absent. */
  readonly queue?: QueuePolicy;
}

export async function decided(scene: Scene): Promise<{ plan: Plan; deliberation: Deliberation }> {
  const { jobs, attempts = [], tasks = [], instances = [], nowS = NOW_S } = scene;
  const config = schedulerConfig.parse({ billing: scene.billing ?? 'per-second' });
  const state = new WorkingState({ jobs, attempts, tasks, instances, openEffects: [], cursors: new Map() });
  const snapshot = takeSnapshot({
    state,
    nowMs: at(nowS),
    pools: POOLS.map((p) => ({ pool: p, quote: priceOf(p), open: true, closedReason: null })),
    poolById: new Map(POOLS.map((p) => [p.id, p])),
    dependencies: new Map(),
    spentUsd: new Map(),
    ...(scene.budgets === undefined ? {} : { budgets: scene.budgets }),
    limits: { vcpus: scene.vcpus ?? 64 },
  });
  const solve = { used: 'greedy', status: 'not-needed', objective: 0, greedyObjective: 0, bound: null } as const;
  const plan: PlanPolicy<Solver> = async () => ({
    starts: [],
    deferred: [],
    preemptions: [],
    moves: (scene.moves ?? []).map(({ attempt, ...move }) => {
      const running = snapshot.running.find((r) => r.attempt.id === attempt);
      if (running === undefined) throw new Error(`${attempt} does not run`);
      return { running, ...move };
    }),
    waits: [],
    solve: { ...solve, boundKind: null, gap: null, gapOfCost: null, variables: 0, constraints: 0, elapsedMs: 0 },
    ...scene.allotment,
  });
  const preset = presetNamed('greedy').stages;
  const stages = {
    ...preset,
    plan: withoutExchanges(plan),
    queue: scene.queue ?? preset.queue,
    speculate: scene.speculate ?? preset.speculate,
    scale: scene.scale ?? preset.scale,
  };
  const market: MarketForecast = {
    interruption: () => NEVER_INTERRUPTED,
    expectedPrice: priceOf,
    correlation: () => 0,
  };
  return decide<Solver>({
    snapshot,
    forecasts: { runtime: stages.estimate(knowing(snapshot, { predict: () => null })), market },
    stages,
    memory: new DecisionMemory(),
    beliefs: NO_BELIEFS,
    preset: 'greedy',
    solver: noSolver,
    config,
    plan: planId('p-test'),
    token: 1,
    ...(scene.before === undefined ? {} : { knownOffers: scene.before.runningOffers }),
    ...(scene.explains === undefined ? {} : { explains: scene.explains }),
  });
}
export const priceOf = (p: Pool) => usdPerHour(p.option === 'spot' ? 0.05 : 0.17);
export const keysOf = (plan: Plan, kind: 'stop' | 'release' | 'launch'): string[] =>
  plan.effects.flatMap((e) => (e.kind !== kind ? [] : [e.kind === 'stop' ? e.attempt : e.instance])).sort();
