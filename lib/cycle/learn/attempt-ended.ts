import { invariant } from '../../kernel/errors.ts';
import type { PoolId } from '../../kernel/ids.ts';
import { lte, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import type { Attempt, AttemptOutcome, Job, StageSpec, Usage } from '../../domain/job.ts';
import type { Pool } from '../../domain/pool.ts';
import type { AttemptEnded } from '../../policy/learner.ts';
import type { WorkingState } from '../state/working-state.ts';

/** The end of an attempt, as recorded. */
export interface AttemptEnd {
  readonly attempt: Attempt;
  readonly job: Job;
  readonly stage: StageSpec;
  /** Of the whole task; null unless it succeeded. */
  readonly runtimeS: Seconds | null;
}

/** Where attempts ran; the same for all that end together. */
export interface Ground {
  readonly state: Pick<WorkingState, 'instances' | 'attemptsOn'>;
  readonly pools: ReadonlyMap<PoolId, Pool>;
}

/** The end of an attempt as learners are told it: what most of them do not read is looked up when it is read. */
export class EndedAttempt implements AttemptEnded {
  readonly #end: AttemptEnd;
  readonly #ground: Ground;

  constructor(end: AttemptEnd, ground: Ground) {
    this.#end = end;
    this.#ground = ground;
  }

  get kind() {
    return 'attempt-ended' as const;
  }

  get attempt(): Attempt {
    return this.#end.attempt;
  }

  get job(): Job {
    return this.#end.job;
  }

  get stage(): StageSpec {
    return this.#end.stage;
  }

  get runtimeS(): Seconds | null {
    return this.#end.runtimeS;
  }

  get atMs(): EpochMs {
    return invariant(this.#end.attempt.endedMs, 'the attempt has ended');
  }

  get outcome(): AttemptOutcome {
    return invariant(this.#end.attempt.outcome, 'the attempt has ended');
  }

  get usage(): Usage | null {
    return this.#end.attempt.usage;
  }

  get instance(): Instance {
    const { id, instance } = this.attempt;
    return invariant(this.#ground.state.instances.get(instance), `attempt ${id} ran on an unknown instance`);
  }

  get pool(): Pool {
    const { id, pool } = this.instance;
    return invariant(this.#ground.pools.get(pool), `instance ${id} is in unknown pool ${pool}`);
  }

  get neighbours(): readonly Attempt[] {
    const { id, instance, startedMs } = this.attempt;
    if (startedMs === null) return [];
    return this.#ground.state.attemptsOn(instance).filter((other) => other.id !== id && ranAt(other, this.atMs));
  }
}

/** Whether its process ran at an instant, or ended then. */
const ranAt = ({ startedMs, endedMs }: Attempt, at: EpochMs): boolean =>
  startedMs !== null && lte(startedMs, at) && (endedMs === null || lte(at, endedMs));
