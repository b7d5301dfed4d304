import type { AttemptId, GroupId, InstanceId } from '../kernel/ids.ts';
import type { EpochMs, Seconds, UsdPerHour } from '../kernel/units.ts';
import type { SchedulerConfig } from './config.ts';
import type {
  CapacityCurve,
  ForecastOrigin,
  InterruptionCurve,
  Offer,
  PriceDrivers,
  RuntimeForecast,
} from './forecast.ts';
import type { TaskRef } from './job.ts';
import type { Allotment, ConsideredOffer, Placement, Purchase, Release, StartOption, Worth } from './plan.ts';
import type { Bid, Pool } from './pool.ts';
import type { Resources } from './resources.ts';
import type { PendingGroup, RunningTask, Snapshot } from './snapshot.ts';

/** What a runtime prediction may look at: known at submission. */
export interface JobFeatures {
  readonly owner: string;
  /** Templated job name: digits and dates taken out. */
  readonly jobName: string;
  /** Base name of the program. */
  readonly program: string;
  readonly stage: string;
  readonly resources: Resources;
  readonly submittedMs: EpochMs;
}

/** Runs of the past, asked for a forecast. Null: nothing at all is known (lib/stages/estimate answers for that). */
export interface RuntimeHistory {
  predict(features: JobFeatures): RuntimeForecast | null;
}

/** `${job}/${stage}`. */
export type StageKey = string;

/**
 * Of each stage that waits or runs the forecast of a whole task, from its beginning. It may be made when it is first asked for, as long as
 * nothing is learned in between: most stages nobody asks about. To go through them makes all. A map is one.
 */
export interface StageForecasts extends Iterable<[StageKey, RuntimeForecast]> {
  get(key: StageKey): RuntimeForecast | undefined;
}
export type EstimatePolicy = (snapshot: Snapshot, history: RuntimeHistory) => StageForecasts;

/** What is known of spot pools: forecasts are made on demand and remembered within a cycle. */
export interface MarketForecast {
  interruption(pool: Pool, bid: Bid): InterruptionCurve;
  /** Expected price at a later time, given that it is `now` now. */
  expectedPrice(pool: Pool, at: EpochMs): UsdPerHour | null;
  /** Time-weighted mean price over the history: what an uncapped bid, which also rides through spikes, pays in the long run. */
  meanPrice?(pool: Pool): UsdPerHour | null;
  /** Pearson correlation of two pools' prices over the history, in [-1, 1]; 0 when unknown (Tributary 2.2.2). */
  correlation(a: Pool, b: Pool): number;
  /** How it was made; absent where nothing was to be chosen. */
  readonly origin?: ForecastOrigin;
  /** What the risk of a bid rests on; null where there is no price, or no bid to be passed. */
  drivers?(pool: Pool, bid: Bid): PriceDrivers | null;
  /** The part of capacity in what a bid risks; null where nothing ends it, or nobody says. */
  capacity?(pool: Pool): CapacityCurve | null;
}

export interface Forecasts {
  readonly runtime: StageForecasts;
  readonly market: MarketForecast;
}

/** Worth per pending group and per running attempt. */
export interface Worths {
  readonly groups: ReadonlyMap<GroupId, Worth>;
  /**
   * Of a running attempt of the same snapshot; undefined where its stage has nothing left to finish. Worked out when it is asked for:
   * what runs is by far the most there is, and most of it nobody asks about.
   */
  readonly ofRunning: (running: RunningTask) => Worth | undefined;
  /**
   * False only where the last safe start of a running attempt surely lies more than `withinS` ahead, or there is none. It takes
   * less than working that out, which of most that runs is needless. Absent: anything may be due.
   */
  readonly mayBeDue?: (running: RunningTask, withinS: number) => boolean;
}
export type ValuePolicy = (snapshot: Snapshot, forecasts: Forecasts, config: SchedulerConfig) => Worths;

export interface GroupOffers {
  /** Best first, at most `offersPerGroup`, the cheapest on-demand one among them if any fits. */
  readonly offers: readonly Offer[];
  /** How many pools each constraint or resource excludes. */
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
  /** Offers that were appraised, for explanations; includes those not kept, with a verdict. */
  readonly considered: readonly ConsideredOffer[];
}
/** The same with other offers. What was considered stays unread: it may be put together only when it is read. */
export const withOffers = (of: GroupOffers, offers: readonly Offer[]): GroupOffers => ({
  offers,
  excluded: of.excluded,
  get considered() {
    return of.considered;
  },
});

/** Appraises pools and bids for each pending group. */
export type AppraisePolicy = (
  snapshot: Snapshot,
  forecasts: Forecasts,
  worths: Worths,
  config: SchedulerConfig,
) => ReadonlyMap<GroupId, GroupOffers>;

export interface PlanInput {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly worths: Worths;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
  readonly config: SchedulerConfig;
}
/** `S` is the solver's type (lib/stages/plan/solver.ts); policies that need none ignore it. */
export type PlanPolicy<S> = (input: PlanInput, solver: S) => Promise<Allotment>;
export type { Allotment, StartOption };

/** Tasks that were to start and found no room on the instances there are. */
export interface Leftover {
  readonly group: PendingGroup;
  readonly option: StartOption;
  readonly count: number;
  readonly runtimeS: Seconds;
}

export interface QueueInput {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly worths: ReadonlyMap<GroupId, Worth>;
  /** Of running tasks, what they still have to run. */
  readonly leftOf: (running: RunningTask) => Seconds;
  /** What of this cycle's starts has room, now or once work has given way, on instances that are up or starting. */
  readonly placements: readonly Placement[];
  /** Running tasks that the plan stops for that. */
  readonly giveWay: ReadonlySet<AttemptId>;
  /** Tasks of these groups that wait for room, beyond those that start now. */
  readonly behind: ReadonlyMap<GroupId, number>;
  readonly leftovers: readonly (Leftover & Required<Pick<TaskToPlace, 'inPool'>>)[];
  /**
   * Equivalence class of a stage whose running time nothing is known of: the first run that ends in it is a forecast for all of it. Null where
   * something is known.
   */
  readonly unknownAs: (of: Pick<PendingGroup, 'job' | 'stage'>) => string | null;
  readonly config: SchedulerConfig;
}
export interface Queued {
  /** What is bought for: a place for each of `count`, which may serve several tasks one after the other. */
  readonly leftovers: readonly Leftover[];
  /** Tasks that wait for a place that others have now, or will have first. */
  readonly inTurn: ReadonlyMap<GroupId, number>;
  /** Tasks that wait for the first runs of their class to tell how long they take. */
  readonly untold: ReadonlyMap<GroupId, number>;
}
/** Which of the leftovers wait for places that are taken, and how many places the others get. Input order does not matter. */
export type QueuePolicy = (input: QueueInput) => Queued;

export interface AcquireInput {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
  readonly worths: Worths;
  readonly leftovers: readonly Leftover[];
  readonly config: SchedulerConfig;
}
export type AcquirePolicy = (input: AcquireInput) => readonly Purchase[];

export interface ReleaseInput {
  readonly snapshot: Snapshot;
  /** Instances that this cycle gave tasks to. */
  readonly used: ReadonlySet<InstanceId>;
  readonly config: SchedulerConfig;
}
export type ReleasePolicy = (input: ReleaseInput) => readonly Release[];

/** A task to be placed, with what the packer needs to know. */
export interface TaskToPlace {
  readonly task: TaskRef;
  readonly group: GroupId;
  readonly need: Resources;
  readonly runtimeS: Seconds;
  /** Tasks of one gang carry the same text: all are placed or none. Null otherwise. */
  readonly gang: string | null;
  /** Which hosts its constraints, deadline and plan allow. */
  readonly allowed: (host: Host) => boolean;
  /**
   * Pools outside which `allowed` allows nothing, so that a packer need not ask it there: there are far fewer pools than hosts. Absent: any
   * pool. Tasks that share `allowed` share this.
   */
  readonly inPool?: (pool: Pool) => boolean;
}
/** An instance that is there, or one being bought. */
export interface Host {
  readonly on: Placement['on'];
  readonly pool: Pool;
  readonly capacity: Resources;
  readonly free: Resources;
  /** Longest remaining running time of its tasks; 0 when empty. */
  readonly remainingS: Seconds;
}
/** A placement's `task` is the very record that it was given: tasks are told apart by it. */
export type PlacePolicy = (tasks: readonly TaskToPlace[], hosts: readonly Host[]) => readonly Placement[];

/** One policy per stage: what a preset is. */
export interface Stages<S> {
  readonly estimate: EstimatePolicy;
  readonly value: ValuePolicy;
  readonly appraise: AppraisePolicy;
  readonly plan: PlanPolicy<S>;
  readonly acquire: AcquirePolicy;
  readonly release: ReleasePolicy;
  readonly place: PlacePolicy;
  readonly queue: QueuePolicy;
}
