import type { AttemptId, GroupId, JobId, PlanId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type { Allotment, Placement, Purchase, Release } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { GroupOffers, Stages, Worths } from '../../policy/contracts.ts';
import type { DecisionMemory } from '../../policy/memory.ts';
import type { Lots } from '../money/lots.ts';
import type { Short } from '../money/purse.ts';

/** What there is for what is left of a job that only runs: for its first running attempt, as of `atMs`. */
export interface RunningOffer {
  readonly attempt: AttemptId;
  readonly atMs: EpochMs;
  readonly offers: GroupOffers;
}
export type RunningOffers = ReadonlyMap<JobId, RunningOffer>;

export interface DecideInput<S> {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly stages: Stages<S>;
  readonly preset: string;
  readonly solver: S;
  readonly config: SchedulerConfig;
  readonly memory: DecisionMemory;
  readonly plan: PlanId;
  readonly token: number;
  /** Of the deliberation before this one; empty or absent at first. */
  readonly knownOffers?: RunningOffers;
  /**
   * False where nobody reads explanations: none are made, nor what is appraised for them alone. The decision is the
   * same.
   */
  readonly explains?: boolean;
}

/** What the stages answered, for explanations and tests. */
export interface Deliberation {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly worths: Worths;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
  readonly runningOffers: RunningOffers;
  readonly allotment: Allotment;
  readonly placements: readonly Placement[];
  /** Starts that wait for work to stop on their instance. */
  readonly reserved: readonly Placement[];
  /** Starts that wait for a place that other tasks have. */
  readonly forSlotReuse: ReadonlyMap<GroupId, number>;
  /** Starts that wait for the first runs of their class. */
  readonly untold: ReadonlyMap<GroupId, number>;
  readonly purchases: readonly Purchase[];
  /** What each purchased instance is for. */
  readonly lots: Lots;
  /** Jobs of which something waits because their limit on money could be passed. */
  readonly short: ReadonlyMap<JobId, Short>;
  /** Jobs for which nothing is bought because a limit of the deployment could be passed, with the reason. */
  readonly heldUp: ReadonlyMap<JobId, string>;
  readonly releases: readonly Release[];
}
