import { EbbError, invariant } from '../../kernel/errors.ts';
import type { JobId, PoolId } from '../../kernel/ids.ts';
import { add, isPositive, megabytes, most, raw, seconds, sub, ZERO_S, type Seconds } from '../../kernel/units.ts';
import { MIGRATION_MB_PER_S } from '../../domain/config.ts';
import type { JobSpec, Preference } from '../../domain/job.ts';
import type { InstanceType, Pool } from '../../domain/pool.ts';
import { slowdownOn, slowsAnywhere } from '../../domain/slowdown.ts';
import type { CapacityTruth } from '../../market/capacity-truth.ts';
import type { MarketTrace } from '../../market/trace.ts';
import type { StartRequest } from '../../ports/fleet.ts';
import type { Interference } from './interference/interference.ts';
import type { TaskScript } from './memory-fleet.ts';
import type { StageTruth } from '../../workload/workload.ts';

/** Time from a signal to the exit of a program that saves at once. */
const STOPS_IN_S = seconds(2);
/** Shortest running time of an attempt: a task that has all its work kept still starts and ends. */
const LEAST_S = 1;

/** Conditions of a task's running time. */
export interface RunConditions {
  /** Its attempt by `number`. */
  readonly task: StartRequest['task'];
  readonly role: StartRequest['role'];
  readonly type: InstanceType;
  /** Its present neighbours on the instance. */
  readonly neighbours: readonly StartRequest[];
  /** Running time in the workload. */
  readonly runtimeS: Seconds;
  /** Running times of all tasks of its stage in the workload, seconds. */
  readonly stageS: Float64Array;
}

/**
 * Running time of a task from its beginning, were conditions these throughout. They are asked again whenever its
 * neighbours change.
 */
export type TrueRuntime = (of: RunConditions) => Seconds;

/**
 * The truth of a simulation: running times, failures, interruptions. The fleet acts by it; of the policies only an
 * oracle may be made from it.
 */
export class Truth {
  readonly trace: MarketTrace;
  readonly capacity: CapacityTruth;
  /** Set-up of each attempt, before its work begins. */
  readonly setupS: Seconds;
  /** Megabytes of a task's memory that a move transfers per second. */
  readonly migrationMBPerS: number;
  /** Time after a stop until the place of an attempt is free. */
  readonly preemptionDelayS: Seconds;
  readonly #stages = new Map<JobId, ReadonlyMap<string, StageTruth>>();
  /** Tries that have failed so far, of tasks that fail some. */
  readonly #failed = new Map<string, number>();
  readonly #runtime: TrueRuntime | null;
  readonly #interference: Interference | null;
  readonly #pools: ReadonlyMap<PoolId, Pool>;
  /** Stages whose tasks are a gang, as `job/stage`. */
  readonly #gangs = new Set<string>();
  /** Soft constraints with a slowdown, by job and stage; jobs without any are not here. */
  readonly #slowed = new Map<JobId, ReadonlyMap<string, readonly Preference[]>>();

  /** `runtime`: absent: the workload's running times, whatever the instance and the neighbours. */
  constructor(
    of: Pick<Truth, 'trace' | 'capacity' | 'setupS'> & {
      readonly migrationMBPerS?: number | undefined;
      readonly preemptionDelayS?: Seconds;
      readonly interference?: Interference | undefined;
    },
    runtime: TrueRuntime | null = null,
  ) {
    this.#interference = of.interference ?? null;
    this.trace = of.trace;
    this.capacity = of.capacity;
    this.setupS = of.setupS;
    this.preemptionDelayS = of.preemptionDelayS ?? ZERO_S;
    this.migrationMBPerS = of.migrationMBPerS ?? MIGRATION_MB_PER_S;
    this.#runtime = runtime;
    this.#pools = new Map(of.trace.pools.map((pool) => [pool.id, pool]));
  }

  /** A job of the workload, with its specification: soft constraints may slow it down. */
  add(job: JobId, stages: ReadonlyMap<string, StageTruth>, spec: Pick<JobSpec, 'stages'>): void {
    this.#stages.set(job, stages);
    for (const { name, gang } of spec.stages) if (gang) this.#gangs.add(`${job}/${name}`);
    const slowed = spec.stages.filter(({ preferences }) => slowsAnywhere(preferences));
    if (slowed.length > 0) this.#slowed.set(job, new Map(slowed.map((s) => [s.name, s.preferences])));
  }

  /** Forgets a finished job, so that memory is bounded by the live ones. */
  forget(job: JobId): void {
    for (const [stage, { failures, runtimeS }] of this.#stages.get(job) ?? []) {
      if (failures === undefined) continue;
      for (let index = 0; index < runtimeS.length; index++) {
        if ((failures[index] ?? 0) > 0) this.#failed.delete(`${job}/${stage}/${index}`);
      }
    }
    for (const stage of this.#stages.get(job)?.keys() ?? []) this.#gangs.delete(`${job}/${stage}`);
    this.#stages.delete(job);
    this.#slowed.delete(job);
  }

  /** Running time of a task in the workload, from its beginning, without an interruption. */
  runtimeS(job: JobId, stage: string, index: number): Seconds {
    const truth = this.#of(job, stage);
    return seconds(invariant(truth.runtimeS[index], `no running time of ${job}/${stage}/${index}`));
  }

  /** Running times of all tasks of a stage. */
  runtimesS(job: JobId, stage: string): Float64Array {
    return this.#of(job, stage).runtimeS;
  }

  script(request: StartRequest, keptS: Seconds, pool: PoolId): TaskScript {
    const { job, stage, index } = request.task;
    const runtimeS = this.runtimeS(job as JobId, stage, index);
    const script: TaskScript = {
      runtimeS: add(this.setupS, most(seconds(LEAST_S), sub(runtimeS, keptS))),
      setupS: this.setupS,
      exitCode: this.#fails(job as JobId, stage, index) ? 1 : 0,
      checkpointEveryS: request.checkpoint?.everyS ?? null,
      stopsInS: STOPS_IN_S,
      ...(isPositive(this.preemptionDelayS) ? { vacatesInS: this.preemptionDelayS } : {}),
      movesInS: most(STOPS_IN_S, seconds(megabytes(request.resources.memory) / this.migrationMBPerS)),
    };
    const slowdown = this.#slowdownOf(request, pool);
    const pace = this.#runtime === null ? null : this.#paceOf(request, { pool, runtimeS, slowdown });
    const interferes = this.#interference;
    if (interferes !== null) {
      const { type } = this.#poolOf(pool);
      const beside: TaskScript['beside'] = (neighbours) => {
        const of = interferes({ request, type, neighbours });
        return { ...of, pace: of.pace * (pace === null ? 1 / slowdown : pace(neighbours)) };
      };
      const gang = `${job}/${stage}`;
      return { ...script, beside, ...(this.#gangs.has(gang) ? { gang } : {}) };
    }
    if (pace !== null) return { ...script, beside: (neighbours) => ({ pace: pace(neighbours) }) };
    return slowdown === 1 ? script : { ...script, beside: () => ({ pace: 1 / slowdown }) };
  }

  /** Where its soft constraints are not met it is as slow as they say. */
  #slowdownOf({ task }: StartRequest, pool: PoolId): number {
    const preferences = this.#slowed.get(task.job as JobId)?.get(task.stage);
    return preferences === undefined ? 1 : slowdownOn(preferences, this.#poolOf(pool));
  }

  #poolOf(pool: PoolId): Pool {
    return invariant(this.#pools.get(pool), `the market has no pool ${pool}`);
  }

  #paceOf(
    request: StartRequest,
    { pool, runtimeS, slowdown }: { readonly pool: PoolId; readonly runtimeS: Seconds; readonly slowdown: number },
  ): (neighbours: readonly StartRequest[]) => number {
    const { type } = this.#poolOf(pool);
    const runtime = invariant(this.#runtime, 'there is a function of the running time');
    const { task, role } = request;
    const stageS = this.runtimesS(task.job as JobId, task.stage);
    return (neighbours) => {
      const trueS = raw(runtime({ task, role, type, neighbours, runtimeS, stageS }));
      if (!(trueS > 0 && Number.isFinite(trueS)))
        throw new EbbError('internal', { what: 'a running time is to be above 0 and finite', got: String(trueS) });
      return (isPositive(runtimeS) ? raw(runtimeS) / trueS : 1) / slowdown;
    };
  }

  #fails(job: JobId, stage: string, index: number): boolean {
    const failures = this.#of(job, stage).failures?.[index] ?? 0;
    if (failures === 0) return false;
    const key = `${job}/${stage}/${index}`;
    const failed = this.#failed.get(key) ?? 0;
    if (failed >= failures) return false;
    this.#failed.set(key, failed + 1);
    return true;
  }

  #of(job: JobId, stage: string): StageTruth {
    return invariant(this.#stages.get(job)?.get(stage), `the workload says nothing of stage ${stage} of job ${job}`);
  }
}
