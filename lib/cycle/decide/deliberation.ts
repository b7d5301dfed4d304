import type { AttemptId, GroupId, JobId, PlanId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type { Allotment, Placement, Purchase, Release } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { AppraisedMoves, GroupOffers, Stages, Worths } from '../../policy/contracts.ts';
import type { NeighbourBelief } from '../../policy/colocation/neighbour-belief.ts';
import type { Beliefs } from '../../policy/learner.ts';
import type { DecisionMemory } from '../../policy/memory.ts';
import type { Lots } from '../money/lots.ts';
import type { Short } from '../money/purse.ts';
import type { Neighbours } from '../neighbours/neighbours.ts';
import type { Copies } from './copies.ts';
import type { Stop } from './stops.ts';

/** Offers for the remaining work of a job whose tasks all run: for its first running attempt, as of `atMs`. */
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
  readonly beliefs: Beliefs;
  readonly plan: PlanId;
  readonly token: number;
  /** Offers of the previous deliberation; empty or absent at first. */
  readonly knownOffers?: RunningOffers;
  /** False: no explanations, and no appraisals for them alone. The decision is the same. */
  readonly explains?: boolean;
}

/** Answers of the stages, for explanations and tests. */
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
  readonly copies: Copies;
  /** Moves that begin now or wait for their targets, the places of those that have one, and all stops. */
  readonly moving: {
    readonly appraised: AppraisedMoves;
    readonly placed: readonly Placement[];
    readonly stops: readonly Stop[];
  };
  readonly purchases: readonly Purchase[];
  /** Tasks and jobs of each purchased instance. */
  readonly lots: Lots;
  /** Jobs with waiting work that could pass their limit on money. */
  readonly short: ReadonlyMap<JobId, Short>;
  /** Jobs without purchases because of a limit of the deployment, with the reason. */
  readonly heldUp: ReadonlyMap<JobId, string>;
  readonly releases: readonly Release[];
  /** Starts that no purchase can serve, with the reason. */
  readonly unbought: ReadonlyMap<GroupId, string>;
  /** True: among best-effort work that waits for room, jobs with less work left come first. */
  readonly shortJobsFirst: boolean;
  /** Rules on where tasks are relative to others; null: no job has any. */
  readonly neighbours: Neighbours | null;
  /** Who slows whom down, as learned; null: it counts for nothing. */
  readonly slowdowns: NeighbourBelief | null;
}
