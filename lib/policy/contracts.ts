/**
 * Contracts of the stages: input and answer of each. A policy (policy.ts) is one way to fulfil a contract.
 * All of them are pure: the same context gives the same answer, whatever the order of its parts. They act on nothing.
 */
import type { AttemptId, GroupId, InstanceId, JobId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Offer } from '../domain/forecast.ts';
import type { Forecasts, StageForecasts } from '../domain/forecasts.ts';
import type { Constraints, MoveUsd, TaskRef } from '../domain/job.ts';
import type {
  Allotment,
  ConsideredOffer,
  JobWork,
  MoveTarget,
  NamedTarget,
  Placement,
  Purchase,
  Release,
  StartOption,
  Worth,
} from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';
import type { Resources } from '../domain/resources.ts';
import type { InstanceView, PendingGroup, RunningTask, Snapshot } from '../domain/snapshot.ts';
import type { Beliefs } from './learner.ts';
import type { DecisionMemory } from './memory.ts';

/**
 * Context of a decision. It grows from stage to stage: each sees what the stages before it found. From `move` on every
 * stage has all of it (`DecisionContext`).
 */
export interface SceneContext {
  readonly snapshot: Snapshot;
  /** Settings, including the policy's own. */
  readonly config: SchedulerConfig;
  readonly memory: DecisionMemory;
  /** Beliefs of the learners that the policy declares; throws an internal error for any other. */
  readonly beliefs: Beliefs;
}
export type EstimateContext = SceneContext;
/** Forecasts answer what the policy's `asks` declares, and throw an internal error for anything else. */
export interface ValueContext extends SceneContext {
  readonly forecasts: Forecasts;
}
export interface AppraiseContext extends ValueContext {
  readonly worths: Worths;
}
export interface DecisionContext extends AppraiseContext {
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
}

/** Forecasts of running times, one for each stage that waits or runs. */
export type EstimatePolicy = (context: EstimateContext) => StageForecasts;

/** Worth per pending group and per running attempt. */
export interface Worths {
  readonly groups: ReadonlyMap<GroupId, Worth>;
  /**
   * Worth of a running attempt of the same snapshot; undefined if its stage has nothing left to finish. Computed on
   * demand: running attempts are by far the most numerous, and few are asked about.
   */
  readonly ofRunning: (running: RunningTask) => Worth | undefined;
  /**
   * False only if the last safe start of a running attempt surely lies more than `withinS` ahead, or there is none.
   * Much cheaper than the last safe start itself. Absent: anything may be due.
   */
  readonly mayBeDue?: (running: RunningTask, withinS: number) => boolean;
}
/** Worth of finishing, and the last safe start. */
export type ValuePolicy = (context: ValueContext) => Worths;

/** Offers for purchases, beyond those that a plan chooses from. Worked out when asked for. */
export interface FurtherOffers {
  /** In pools that suit all waiting work together: not the best for a task alone. */
  readonly together: () => readonly Offer[];
  /** The best of each size of instance, for what fills no other. */
  readonly sizes: () => readonly Offer[];
}

export interface GroupOffers {
  /** Best first, at most `offersPerGroup`, the cheapest on-demand one among them if any fits. */
  readonly offers: readonly Offer[];
  /** Absent: none. */
  readonly further?: FurtherOffers;
  /** Number of pools that each constraint or resource excludes. */
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
  /** Offers that were appraised, for explanations; includes those not kept, with a verdict. */
  readonly considered: readonly ConsideredOffer[];
}
/** Offers of a group, replaced, without further ones. `considered` is left unread: it may be built on first use. */
export const withOffers = (of: GroupOffers, offers: readonly Offer[]): GroupOffers => ({
  offers,
  excluded: of.excluded,
  get considered() {
    return of.considered;
  },
});

export const withFurther = (of: GroupOffers, further: FurtherOffers): GroupOffers => ({
  offers: of.offers,
  further,
  excluded: of.excluded,
  get considered() {
    return of.considered;
  },
});

/** Appraises pools and bids for each pending group. */
export type AppraisePolicy = (context: AppraiseContext) => ReadonlyMap<GroupId, GroupOffers>;

/** Running work that is to go on elsewhere. Dollars, where given, are shown in explanations. */
export interface Move extends MoveUsd {
  readonly attempt: AttemptId;
  readonly reason: string;
  readonly running: RunningTask;
  readonly view: InstanceView;
  /**
   * Absent: off spot, to any non-interruptible capacity. `spot`: to any spot capacity. A named instance is not bought;
   * in a named pool one is bought at the bid where none has room. The user's constraints hold for each, and tasks of
   * gangs have no named target. The task runs on until its target is up and has room.
   */
  readonly to?: MoveTarget;
  /** A task without a checkpoint moves only if this is true: to start again elsewhere is cheaper than to stay. */
  readonly restarts?: boolean;
}

/** A move that the plan kept, with the worth of its work and where it may go. */
export interface PlannedMove extends MoveUsd {
  readonly running: RunningTask;
  readonly reason: string;
  readonly worth: Worth;
  readonly toSpot: boolean;
  /** Absent: any capacity of that side. */
  readonly to?: NamedTarget;
  /** The stage's constraints, narrowed to that side, or to the pool of the target. */
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

/** Facts for a move to any capacity of a side, of which there is none. */
export interface VacateInput extends DecisionContext {
  readonly move: PlannedMove;
  /** The move and all others of its gang that have no target either. */
  readonly together: readonly PlannedMove[];
  /** Offers for the work that moves. */
  readonly moveOffers: readonly Offer[];
  /** All attempts that move in this cycle. */
  readonly going: ReadonlySet<AttemptId>;
  /** True if this cycle buys anything. */
  readonly buys: boolean;
}

/** Running work that goes on elsewhere. A task is stopped once its target is up, and the next plan starts it there. */
export interface MovePolicy {
  /** Before the plan, which keeps room for them: each attempt at most once, by id. */
  readonly propose: (context: DecisionContext) => readonly Move[];
  /** Kept moves of the plan that begin now, appraised as waiting work. */
  readonly begin: (input: BeginInput) => AppraisedMoves;
  /** Attempts that stop now, with room reserved elsewhere. */
  readonly returning: (context: DecisionContext) => readonly RunningTask[];
  /** Reason to stop a move before it has a target, to make room for it; null: none. */
  readonly vacate: (input: VacateInput) => string | null;
}

export interface PlanInput extends DecisionContext {
  /** Proposed moves. Room is reserved for them first. Absent: none. */
  readonly moves?: readonly Move[];
  /** Work of each job, where a group stands for those of several jobs. Absent: what groups and running tasks tell. */
  readonly work?: () => ReadonlyMap<JobId, JobWork>;
}
/** `S` is the solver's type; policies that need none ignore it. */
export type PlanPolicy<S> = (input: PlanInput, solver: S) => Promise<Allotment>;
export type { Allotment, MoveTarget, NamedTarget, StartOption };

/** The preset's place and queue stages, for the order stage, which combines them. */
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

/** Outcome of a plan's starts. */
export interface Started {
  /** Starts with room now, on instances that are up or starting. */
  readonly placements: readonly Placement[];
  /** Starts with room once stopping work has ended there, or once the rest of their gang has been bought. */
  readonly reserved: readonly Placement[];
  /** Starts that need a purchase. */
  readonly leftovers: readonly Leftover[];
  /** Tasks that wait for slot reuse, on instances that are up or starting. */
  readonly forSlotReuse: Queued['forSlotReuse'];
  /** Tasks that wait for the first runs of their class. */
  readonly untold: Queued['untold'];
  /** Preemptions of the plan that some start needs. */
  readonly needed: ReadonlySet<AttemptId>;
}
/** Order of starts on the room there is, and the instances allowed to a start besides those of its pool. */
export type OrderPolicy = (input: OrderInput) => Started;

/** A further live attempt of a task that runs. It begins anew; the first attempt to succeed wins. */
export interface Copy {
  /** A live attempt of the task. */
  readonly of: AttemptId;
  readonly reason: string;
  /** Absent: any instance that has room. Nothing is bought. */
  readonly to?: NamedTarget;
  /** How many attempts of the task are to live at once, this one included; default 2. */
  readonly attempts?: number;
}
/**
 * Which running tasks get copies; mostly none. A copy is asked for in every decision until it runs; nothing is done
 * where as many attempts live as it names. A task has one copy in an answer, and can have one as `whyNotCopied`
 * (copies.ts) says. It runs where the task's constraints allow, and never where another attempt of the task does.
 *
 * Copies have the room, vCPUs and money that starts and purchases of the same decision leave. Copies of work with a
 * deadline come first. A copy without room is dropped, with a reason. So is a copy that could not succeed, because
 * another attempt has claimed the outputs or the image cannot claim any.
 */
export type SpeculatePolicy = (context: DecisionContext) => readonly Copy[];

/** Tasks that were to start and found no room on the instances there are. */
export interface Leftover {
  readonly group: PendingGroup;
  readonly option: StartOption;
  readonly count: number;
  readonly runtimeS: Seconds;
  /**
   * Most of its tasks on an instance that is bought for them, by `placement` rules. A scale policy is not asked for
   * more of them at once. Absent: any number.
   */
  readonly perInstance?: number;
  /** True: all of them have to be on one instance. */
  readonly onOneInstance?: boolean;
}

export interface QueueInput extends DecisionContext {
  /** Remaining running time of a running task. */
  readonly leftOf: (running: RunningTask) => Seconds;
  /**
   * Placements of this cycle: tasks that have room now, or will have when preempted tasks stop, on instances that are
   * up or starting.
   */
  readonly placements: readonly Placement[];
  /** Running tasks that the plan preempts for them. */
  readonly preempted: ReadonlySet<AttemptId>;
  /** Tasks of these groups that wait for room, beyond those that start now. */
  readonly behind: ReadonlyMap<GroupId, number>;
  readonly leftovers: readonly (Leftover & Required<Pick<TaskToPlace, 'inPool'>>)[];
  /**
   * Equivalence class of a stage whose running time is unknown: its first run to end is a forecast for the whole class.
   * Null if something is known.
   */
  readonly unknownAs: (of: Pick<PendingGroup, 'job' | 'stage'>) => string | null;
}
export interface Queued {
  /** Demand for purchases: slots for `count` tasks; one slot may serve several tasks in turn. */
  readonly leftovers: readonly Leftover[];
  /** Tasks that wait for slot reuse: other tasks use the slot now, or first. */
  readonly forSlotReuse: ReadonlyMap<GroupId, number>;
  /** Tasks that wait for the first runs of their class to tell how long they take. */
  readonly untold: ReadonlyMap<GroupId, number>;
}
/** Leftovers that wait for taken slots, and the number of slots that the others get. Input order does not matter. */
export type QueuePolicy = (input: QueueInput) => Queued;

/** Demand without room. Offers are already cut to the limits on money. */
export interface AcquireInput extends DecisionContext {
  readonly leftovers: readonly Leftover[];
}
/** Work that starts later: deferred by the plan, with an earliest start, or in a back-off. It has an offer. */
export interface LaterDemand extends Leftover {
  readonly fromMs: EpochMs;
  /** Its offers of now, best first; `option` has one of them. */
  readonly offers: readonly Offer[];
}
export interface ScaleInput extends AcquireInput {
  /**
   * Demand by time, the earliest first, for purchases ahead of it: such a purchase names the groups that it `serves`.
   * Moves without room are among `leftovers`. Worked out when it is first asked for.
   */
  readonly later: () => readonly LaterDemand[];
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
 * Purchases and releases. Called in every cycle, also without demand, and again with less demand where money does not
 * reach; the last answer counts. Nothing is bought that no task may use: now, or later if the purchase names whom it
 * serves. Purchases ahead get the money and vCPUs that others leave. They are idle at first, and the policy's to keep.
 */
export type ScalePolicy = (input: ScaleInput) => Scaling;

/** A task to be placed, with its facts for the packer. */
export interface TaskToPlace {
  readonly task: TaskRef;
  readonly group: GroupId;
  readonly need: Resources;
  readonly runtimeS: Seconds;
  /** Tasks of one gang share a text: all are placed or none. Null otherwise. */
  readonly gang: string | null;
  /** True for hosts that its constraints, deadline and plan allow. */
  readonly allowed: (host: Host) => boolean;
  /**
   * Pools outside which `allowed` allows nothing, so that a packer need not ask it there: there are far fewer pools
   * than hosts. Absent: any pool. Tasks that share `allowed` share this.
   */
  readonly inPool?: (pool: Pool) => boolean;
  /** Instance that it leaves. Absent: it waits, or is a copy. */
  readonly from?: InstanceId;
}
/** A live instance, or one being bought. */
export interface Host {
  readonly on: InstanceId;
  readonly pool: Pool;
  readonly capacity: Resources;
  readonly free: Resources;
  /** Longest remaining running time of its tasks; 0 when empty. */
  readonly remainingS: Seconds;
  /** Tasks that this decision put there; `free` is without them. Absent: none. */
  readonly given?: readonly Placement[];
}
/**
 * Called for starts, moves, returning work and copies, on the room that is left for them. A placement's `task` is the
 * very record that it was given: tasks are told apart by it.
 */
export type PlacePolicy = (
  tasks: readonly TaskToPlace[],
  hosts: readonly Host[],
  context: DecisionContext,
) => readonly Placement[];
/** A place policy that needs tasks and hosts alone. */
export type PlaceTasks = (tasks: readonly TaskToPlace[], hosts: readonly Host[]) => readonly Placement[];

/** Stages in the order of a decision. */
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
  /** Pools in which `scale` may ever buy; absent: any. */
  readonly buys?: (pool: Pool) => boolean;
  /** True if `queue` lets waiting tasks take slots between decisions. */
  readonly reusesSlots?: boolean;
}
