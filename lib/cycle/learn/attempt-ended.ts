import { invariant } from '../../kernel/errors.ts';
import type { PoolId } from '../../kernel/ids.ts';
import { lt, lte, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import type { Attempt, AttemptOutcome, Job, StageSpec, Usage } from '../../domain/job.ts';
import type { Pool } from '../../domain/pool.ts';
import type { NeighbourBelief } from '../../policy/colocation/neighbour-belief.ts';
import type { AttemptEnded } from '../../policy/learner.ts';
import type { WorkingState } from '../state/working-state.ts';

type Recorded = Pick<AttemptEnded, 'attempt' | 'job' | 'stage' | 'runtimeS'>;

/** Context of ended attempts; the same for all that end together. */
export interface Ground {
  readonly state: WorkingState;
  readonly pools: ReadonlyMap<PoolId, Pool>;
  /** Absent: nobody slows anybody down. */
  readonly slowdowns?: Pick<NeighbourBelief, 'slowedBy'>;
}

/** End of an attempt for learners. Parts that few learners read are looked up on first use. */
export class EndedAttempt implements AttemptEnded {
  readonly attempt: Attempt;
  readonly job: Job;
  readonly stage: StageSpec;
  readonly runtimeS: Seconds | null;
  readonly #ground: Ground;

  constructor({ attempt, job, stage, runtimeS }: Recorded, ground: Ground) {
    this.attempt = attempt;
    this.job = job;
    this.stage = stage;
    this.runtimeS = runtimeS;
    this.#ground = ground;
  }

  get kind() {
    return 'attempt-ended' as const;
  }

  get atMs(): EpochMs {
    return invariant(this.attempt.endedMs, 'the attempt has ended');
  }

  get outcome(): AttemptOutcome {
    return invariant(this.attempt.outcome, 'the attempt has ended');
  }

  get usage(): Usage | null {
    return this.attempt.usage;
  }

  get slowed(): number {
    return this.#ground.slowdowns?.slowedBy(this) ?? 1;
  }

  get instance(): Instance {
    const { id, instance } = this.attempt;
    return invariant(this.#ground.state.instances.get(instance), `attempt ${id} ran on an unknown instance`);
  }

  get pool(): Pool {
    const { id, pool } = this.instance;
    return invariant(this.#ground.pools.get(pool), `instance ${id} is in unknown pool ${pool}`);
  }

  get neighbours(): AttemptEnded['neighbours'] {
    const { id, instance, startedMs } = this.attempt;
    if (startedMs === null) return [];
    const { state } = this.#ground;
    return state.attemptsOn(instance).flatMap((attempt) => {
      const job = attempt.id === id || !ranAt(attempt, this.atMs) ? undefined : state.jobs.get(attempt.job);
      return job === undefined ? [] : [{ attempt, job }];
    });
  }
}

/** True if its process ran until an instant: including one that ended just then, not one that started then. */
const ranAt = ({ startedMs, endedMs }: Attempt, at: EpochMs): boolean =>
  startedMs !== null && lt(startedMs, at) && (endedMs === null || lte(at, endedMs));
