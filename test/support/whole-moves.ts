import { attemptId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, raw, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { certain } from '../../lib/domain/distribution.ts';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { StageSpec } from '../../lib/domain/job.ts';
import { minusResources } from '../../lib/domain/resources.ts';
import type { Pool, PoolView } from '../../lib/domain/pool.ts';
import type { InstanceView, RunningTask } from '../../lib/domain/snapshot.ts';
import type { DecisionContext, Move } from '../../lib/policy/contracts.ts';
import { DecisionMemory } from '../../lib/policy/memory.ts';
import { attempt } from './builders.ts';
import { config, instance, NOW, resources, stage, world } from './decision-world.ts';

export interface RunningFacts {
  readonly name: string;
  readonly vcpus?: number;
  readonly gib?: number;
  /** Remaining running time. */
  readonly leftS: number;
  readonly stage?: Partial<StageSpec>;
  readonly state?: 'running' | 'stopping';
}

export interface HeldFacts {
  readonly id: string;
  readonly pool: Pool;
  readonly tasks: readonly RunningFacts[];
  readonly state?: 'starting' | 'ready';
}

const SAVES = { signal: 'SIGTERM', graceS: seconds(20), everyS: null } as const;

/** Instances with running tasks that save when they are told to stop, so long after the first decision. */
export function scene(
  pools: readonly PoolView[],
  held: readonly HeldFacts[],
  of: { readonly afterS?: number; readonly memory?: DecisionMemory; readonly config?: Partial<SchedulerConfig> } = {},
): DecisionContext {
  const nowMs = epochMs(raw(NOW) + (of.afterS ?? 0) * 1000);
  const views = held.map((h): InstanceView => {
    const view = instance(h.id, h.pool, { state: h.state ?? 'ready' });
    const attempts = h.tasks.map((t): RunningTask => runningOf(t, h.id));
    const free = attempts.reduce((left, r) => minusResources(left, r.attempt.resources), view.free);
    return { ...view, attempts, free };
  });
  const base = world({ pools, instances: views });
  const running = views.flatMap((v) => v.attempts);
  const times = new Map(
    held.flatMap((h) =>
      h.tasks.map((t) => [
        `${t.name}/main`,
        { runtime: certain(seconds(t.leftS)), basis: 'hint' as const, reason: 'given' },
      ]),
    ),
  );
  return {
    ...base,
    snapshot: { ...base.snapshot, nowMs, running },
    forecasts: { ...base.forecasts, runtime: times },
    memory: of.memory ?? new DecisionMemory(),
    config: config(of.config),
    offers: new Map(),
  };
}

function runningOf(
  { name, vcpus = 1, gib = 1, stage: over, state = 'running' }: RunningFacts,
  on: string,
): RunningTask {
  const spec = stage({ resources: resources(vcpus, gib), checkpoint: SAVES, ...over });
  return {
    // Not yet begun, so that all of its running time is left.
    attempt: attempt({
      id: attemptId(`${name}.main.0.1`),
      job: jobId(name),
      instance: instanceId(on),
      resources: spec.resources,
      startedMs: null,
      state,
    }),
    class: 'best-effort',
    stage: spec,
    deadlineMs: null,
    readS: ZERO_S,
    savedS: ZERO_S,
  };
}

/** `task -> target`, in order. */
export const told = (moves: readonly Move[]): string[] =>
  moves.map(({ running, to }) => {
    const target = to === undefined || to === 'spot' ? String(to) : (to.instance ?? to.pool);
    return `${running.attempt.job} -> ${target}`;
  });
