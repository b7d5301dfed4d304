/**
 * Contracts of the stages: what each is given, and what it answers. A policy (policy.ts) is one way to fulfil a
 * contract.
 *
 * All of them are pure: the same context gives the same answer, whatever the order of what is in it. Nothing is acted
 * on.
 */
import type { AttemptId, GroupId, InstanceId } from '../kernel/ids.ts';
import type { Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Offer } from '../domain/forecast.ts';
import type { Forecasts, StageForecasts } from '../domain/forecasts.ts';
import type { Constraints, TaskRef } from '../domain/job.ts';
import type { Allotment, ConsideredOffer, Placement, Purchase, Release, StartOption, Worth } from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';
import type { Resources } from '../domain/resources.ts';
import type { InstanceView, PendingGroup, RunningTask, Snapshot } from '../domain/snapshot.ts';
import type { Beliefs } from './learner.ts';
import type { DecisionMemory } from './memory.ts';

/** What every stage sees: one picture of now, and the settings, those of the policy itself among them. */
export interface SceneContext {
  readonly snapshot: Snapshot;
  readonly config: SchedulerConfig;
  readonly memory: DecisionMemory;
}
export interface EstimateContext extends SceneContext {
  /** What learners know. */
  readonly beliefs: Beliefs;
}
/** Forecasts answer what the policy's `asks` declares, and throw an internal error for anything else. */
export interface ValueContext extends SceneContext {
  readonly forecasts: Forecasts;
}
export interface AppraiseContext extends ValueContext {
  readonly worths: Worths;
}
/** What is known once forecasts, worths and offers are: the context of every later stage. */
export interface DecisionContext extends AppraiseContext {
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
}

/** Forecasts of running times, one for each stage that waits or runs. */
export type EstimatePolicy = (context: EstimateContext) => StageForecasts;

/** Worth per pending group and per running attempt. */
export interface Worths {
  readonly groups: ReadonlyMap<GroupId, Worth>;
  /**
   * Of a running attempt of the same snapshot; undefined where its stage has nothing left to finish. Worked out when it
   * is asked for: what runs is by far the most there is, and most of it nobody asks about.
   */
  readonly ofRunning: (running: RunningTask) => Worth | undefined;
  /**
   * False only where the last safe start of a running attempt surely lies more than `withinS` ahead, or there is none.
   * It takes less than working that out, which of most that runs is needless. Absent: anything may be due.
   */
  readonly mayBeDue?: (running: RunningTask, withinS: number) => boolean;
}
/** What finishing is worth, and until when it may begin. */
export type ValuePolicy = (context: ValueContext) => Worths;

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
export type AppraisePolicy = (context: AppraiseContext) => ReadonlyMap<GroupId, GroupOffers>;

/** Running work that is to go on elsewhere. */
export interface Move {
  readonly attempt: AttemptId;
  readonly reason: string;
  readonly running: RunningTask;
  readonly view: InstanceView;
  /** Absent: to capacity that is not taken away. */
  readonly to?: 'spot';
}

/** A move that the plan kept, with the worth of its work and where it may go. */
export interface PlannedMove {
  readonly running: RunningTask;
  readonly reason: string;
  readonly worth: Worth;
  readonly toSpot: boolean;
  /** The stage's constraints, narrowed to that side. */
  readonly constraints: Constraints;
}

/** Moves with the offers for each, as if it waited for those alone. */
export interface AppraisedMoves {
  readonly moves: readonly PlannedMove[];
  readonly worths: ReadonlyMap<GroupId, Worth>;
  readonly groups: ReadonlyMap<GroupId, PendingGroup>;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
}

export interface BeginInput extends DecisionContext {
  readonly moves: readonly PlannedMove[];
  /** The preset's own judgement of work as it would wait: its value and appraise stages. */
  readonly value: ValuePolicy;
  readonly appraise: AppraisePolicy;
}

/** What a move without a target may go by. */
export interface VacateInput {
  readonly snapshot: Snapshot;
  readonly move: PlannedMove;
  readonly offers: readonly Offer[];
  /** All attempts that move in this cycle. */
  readonly going: ReadonlySet<AttemptId>;
  /** Whether anything is bought in this cycle. */
  readonly buys: boolean;
}

/** Which running work goes on elsewhere. A task is stopped once its target is up, and the next plan starts it there. */
export interface MovePolicy {
  /** Before the plan, which keeps room for them: each attempt at most once, by id. */
  readonly propose: (context: DecisionContext) => readonly Move[];
  /** Of the moves that the plan kept those that begin, appraised as work that waits. */
  readonly begin: (input: BeginInput) => AppraisedMoves;
  /** Attempts that stop now and for which room elsewhere is kept. */
  readonly returning: (context: SceneContext) => readonly RunningTask[];
  /** Why a move stops before it has a target, to make room for it; null: it does not. */
  readonly vacate: (input: VacateInput) => string | null;
}

export interface PlanInput extends DecisionContext {
  /** Moves that were proposed: room is kept for them before anything else gets some. Absent: none. */
  readonly moves?: readonly Move[];
}
/** `S` is the solver's type; policies that need none ignore it. */
export type PlanPolicy<S> = (input: PlanInput, solver: S) => Promise<Allotment>;
export type { Allotment, StartOption };

/** What the preset's place and queue stages do, for the order stage, which strings them together. */
export interface RoomStages {
  readonly place: PlacePolicy;
  readonly queue: QueuePolicy;
}

export interface OrderInput extends DecisionContext {
  readonly groups: ReadonlyMap<GroupId, PendingGroup>;
  readonly leftOf: (running: RunningTask) => Seconds;
  readonly allotment: Allotment;
  readonly hosts: readonly Host[];
  readonly stages: RoomStages;
}

/** What becomes of the starts of a plan. */
export interface Started {
  /** Have room now, on instances that are up or starting. */
  readonly placements: readonly Placement[];
  /** Have room once work that stops there is gone. */
  readonly reserved: readonly Placement[];
  /** To be bought for. */
  readonly leftovers: readonly Leftover[];
  /** Wait for a place that others have, on instances that are up or starting. */
  readonly forSlotReuse: Queued['forSlotReuse'];
  /** Wait for the first runs of their class. */
  readonly untold: Queued['untold'];
  /** Of the plan's pre-emptions those that something needs. */
  readonly needed: ReadonlySet<AttemptId>;
}
/** Who goes first on the room that there is, and which instances a start may take besides those of its pool. */
export type OrderPolicy = (input: OrderInput) => Started;

/** A second live attempt of a task that runs. */
export interface Copy {
  readonly of: AttemptId;
  readonly reason: string;
}
/** Running tasks that get a second attempt; may be none. */
export type SpeculatePolicy = (context: DecisionContext) => readonly Copy[];

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
  readonly preempted: ReadonlySet<AttemptId>;
  /** Tasks of these groups that wait for room, beyond those that start now. */
  readonly behind: ReadonlyMap<GroupId, number>;
  readonly leftovers: readonly (Leftover & Required<Pick<TaskToPlace, 'inPool'>>)[];
  /**
   * Equivalence class of a stage whose running time nothing is known of: the first run that ends in it is a forecast
   * for all of it. Null where something is known.
   */
  readonly unknownAs: (of: Pick<PendingGroup, 'job' | 'stage'>) => string | null;
  readonly config: SchedulerConfig;
}
export interface Queued {
  /** What is bought for: a place for each of `count`, which may serve several tasks one after the other. */
  readonly leftovers: readonly Leftover[];
  /** Tasks that wait for a place that others have now, or will have first. */
  readonly forSlotReuse: ReadonlyMap<GroupId, number>;
  /** Tasks that wait for the first runs of their class to tell how long they take. */
  readonly untold: ReadonlyMap<GroupId, number>;
}
/**
 * Which of the leftovers wait for places that are taken, and how many places the others get. Input order does not
 * matter.
 */
export type QueuePolicy = (input: QueueInput) => Queued;

/** Demand: what found no room. The offers are those that limits on money leave. */
export interface AcquireInput extends DecisionContext {
  readonly leftovers: readonly Leftover[];
}
export interface ScaleInput extends AcquireInput {
  /**
   * Footprint in use: instances that this cycle gave tasks to, or keeps for tasks that stop. Held are those of the
   * snapshot.
   */
  readonly used: ReadonlySet<InstanceId>;
}
export interface Scaling {
  readonly purchases: readonly Purchase[];
  readonly releases: readonly Release[];
}
/**
 * What is bought and what is given back: called in every cycle, also without demand, and again with less of it where
 * money does not reach (the last answer counts).
 */
export type ScalePolicy = (input: ScaleInput) => Scaling;

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
   * Pools outside which `allowed` allows nothing, so that a packer need not ask it there: there are far fewer pools
   * than hosts. Absent: any pool. Tasks that share `allowed` share this.
   */
  readonly inPool?: (pool: Pool) => boolean;
}
/** An instance that is there, or one being bought. */
export interface Host {
  readonly on: InstanceId;
  readonly pool: Pool;
  readonly capacity: Resources;
  readonly free: Resources;
  /** Longest remaining running time of its tasks; 0 when empty. */
  readonly remainingS: Seconds;
}
/** A placement's `task` is the very record that it was given: tasks are told apart by it. */
/** A place policy that needs tasks and hosts alone. */
export type PlaceTasks = (tasks: readonly TaskToPlace[], hosts: readonly Host[]) => readonly Placement[];
export type PlacePolicy = (
  tasks: readonly TaskToPlace[],
  hosts: readonly Host[],
  context: SceneContext,
) => readonly Placement[];

/** The stages in the order in which a decision goes through them. */
export interface Stages<S> {
  readonly estimate: EstimatePolicy;
  readonly value: ValuePolicy;
  readonly appraise: AppraisePolicy;
  readonly move: MovePolicy;
  readonly plan: PlanPolicy<S>;
  readonly order: OrderPolicy;
  readonly place: PlacePolicy;
  readonly queue: QueuePolicy;
  readonly speculate: SpeculatePolicy;
  readonly scale: ScalePolicy;
}
