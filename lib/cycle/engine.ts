import { EbbError } from '../kernel/errors.ts';
import { planId, timeOrderedText, type EffectKey, type InstanceId } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import { ZERO_S, raw, scale, seconds, secondsBetween, type EpochMs, type Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Effect, EffectOutcome, Plan } from '../domain/plan.ts';
import type { Forecasts, MarketForecast } from '../domain/forecasts.ts';
import type { Stages } from '../policy/contracts.ts';
import type { EffectRecord } from '../ports/store.ts';
import { act } from './act/act.ts';
import { nextDecisionS } from './decide/next-decision.ts';
import { decideOn, isOpen, type Decision, type ObservedState } from './decide/decision.ts';
import { giveUp } from './decide/endings.ts';
import type { Scene } from '../policy/asks.ts';
import { holdAll } from './observe/holding.ts';
import {
  confirm,
  capacityRefused,
  MAX_HURRIED,
  recordIntent,
  recordIntents,
  settleAll,
  stopsOfLost,
} from './act/intents.ts';
import { DecisionMemory } from '../policy/memory.ts';
import type { OwnInUse } from '../policy/own/refusals.ts';
import { Observer, type ObserverParts } from './observe/observer.ts';
import {
  decisionOf,
  isolate,
  ISOLATION_LIMITS,
  trialsInProcess,
  triedOn,
  type Trial,
  type Trials,
} from './decide/isolate.ts';
import type { RunningOffers } from './decide/deliberation.ts';
import type { SlotReuse } from './decide/slot-reuse.ts';
import { noteServicePlans } from './replicas/service-plans.ts';
import { WorkingState } from './state/working-state.ts';

export interface EngineParts<S> extends ObserverParts {
  readonly random: Uniform;
  readonly solver: S;
  readonly stages: Stages<S>;
  /** Policies of the user's own among the stages; absent: there are none. */
  readonly own?: OwnInUse<S>;
  readonly preset: string;
  readonly config: SchedulerConfig;
  readonly forecast: (scene: Scene) => Promise<MarketForecast>;
  /** False: no explanations. Default true. The decision is the same. */
  readonly explains?: boolean;
  /** Names this engine in the lease. */
  readonly holder: string;
  /** Least engine time between two cycles: triggers within it become one. */
  readonly minGapS: Seconds;
  /**
   * Shortest engine time between two searches for slots to reuse (slot-reuse.ts). Absent: no reuse between decisions.
   */
  readonly reuseGapS?: Seconds;
  /** Trials of decisions where one does not end, or throws. Absent: they run here, where nothing bounds them. */
  readonly trials?: (observed: ObservedState, market: MarketForecast) => Promise<Trials>;
  /** The engine before this one never came back from a decision: the first one is made in trials. */
  readonly isSuspicious?: boolean;
  /** Told where the cycle is. */
  readonly onStep?: (step: CycleStep) => void;
  /** Told of each finished cycle. */
  readonly onCycle?: (report: CycleReport) => void;
  /** Told of a cycle that failed and will be tried again. */
  readonly onFault?: (error: unknown) => void;
}

/** Step of a cycle; `waiting`: between two cycles. */
export type CycleStep = 'observe' | 'forecast' | 'decide' | 'isolate' | 'record' | 'act' | 'waiting';

export interface CycleReport {
  readonly atMs: EpochMs;
  readonly plan: Plan | null;
  readonly idle: boolean;
  /** Instances and attempts that have not ended. */
  readonly live: number;
}

/**
 * Shortest time between two decisions, in durations of the last one, while slots are reused: deciding takes a fifth of
 * the engine's time at most, because no slot is reused meanwhile. Changes of capacity, failures and empty slots are
 * decided on at once.
 */
const PACE = 4;

/** Cycles that may fail in a row before the engine gives up: faults of the world pass, broken invariants do not. */
const MAX_FAULTS = 5;
/**
 * The scheduling engine: load, observe, decide, record intents, act, confirm; over and over, one cycle at a time.
 * Lifecycle: `start` takes the lease (older engines are fenced off) and recalls beliefs; `cycle` is one round; `run`
 * repeats it when woken, at the end of the period, at the end of a pause, and at once after a refusal of capacity. With
 * nothing to do it waits without a timer. While it waits it reuses slots, in the order of the last decision
 * (`reuseGapS`). Between cycles it keeps the active state (WorkingState.refresh) and its observer's memory.
 * Invariants: no effect without a recorded intent; a recorded intent is performed under its key until an outcome is
 * confirmed. Events are learned once: an interrupted cycle may have learned events that no commit holds (or whose
 * commit was not answered), so the next one first recalls the stored beliefs.
 * Crash points: after any store or fleet call. The next `start` finds intents without outcome and performs them again.
 * Reuses are committed with their observations, in one piece, and their outcomes with the next commit: until then the
 * intents are open.
 */
export class Engine<S> {
  readonly #parts: EngineParts<S>;
  readonly #observer: Observer;
  /** Offers for running work, for explanations alone. */
  #runningOffers: RunningOffers = new Map();
  /** Memory of policies between decisions. */
  readonly #memory = new DecisionMemory();
  #token = 0;
  #draining = false;
  #stopped = false;
  #wakeUp: (() => void) | null = null;
  #woken = false;
  #lastCycleMs: EpochMs | null = null;
  /** True if memory may differ from the store: a cycle is under way or ended with an error. */
  #inDoubt = false;
  /** State of the last cycle, all of it committed; null: to be loaded. */
  #kept: WorkingState | null = null;
  /** True if some job may keep decisions from being made. */
  #isSuspicious: boolean;
  /** Cycles in a row that followed at once upon a refusal. */
  #hurried = 0;
  /** Something happened in the fleet since it was last observed. */
  #hasNews = false;
  /** Queue for free slots until the next decision; null: none. */
  #slotReuse: SlotReuse | null = null;
  /** Plans of services, as last written. */
  readonly #servicePlans = new Map<string, string>();
  /** Engine time that the last decision took, all of its cycle. */
  #decisionS = 0;

  constructor(parts: EngineParts<S>) {
    this.#parts = parts;
    this.#observer = new Observer(parts);
    this.#isSuspicious = parts.isSuspicious ?? false;
  }

  get lastCycleMs(): EpochMs | null {
    return this.#lastCycleMs;
  }

  async start(): Promise<void> {
    this.#token = await this.#parts.store.takeLease(this.#parts.holder);
    await this.#observer.recall();
    await reconcile(this.#parts);
  }

  /** Records an event of the engine itself. */
  async note(type: string, text: string): Promise<void> {
    const value = { atMs: this.#parts.clock.now(), type, job: null, text, data: {} };
    await this.#parts.store.commit(this.#token, [{ put: 'event', value }]);
  }

  /** There may be something to do. */
  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Repeats cycles until `stop`, or rejects when it may not or cannot go on. */
  async run(): Promise<void> {
    const unsubscribe = this.#parts.fleet.onChange(() => {
      this.#hasNews = true;
      this.#wakeUp?.();
    });
    let faults = 0;
    try {
      while (!this.#stopped) {
        this.#woken = false;
        this.#hasNews = false;
        let waitS: Seconds | null = this.#parts.minGapS;
        try {
          waitS = await this.cycle();
          const reuse = this.#slotReuse;
          if (reuse !== null) await this.#giveOn(reuse, waitS);
          faults = 0;
          if (reuse !== null) continue;
        } catch (error) {
          faults += 1;
          // `step` still names the failing step here.
          this.#parts.onFault?.(error);
          this.#parts.onStep?.('waiting');
          if (faults >= MAX_FAULTS || (error instanceof EbbError && !error.retryable) || isFenced(error)) throw error;
          waitS = scale(this.#parts.minGapS, 2 ** faults);
        }
        await this.#waitForTrigger(waitS);
      }
      await this.#commitKept();
    } finally {
      unsubscribe();
    }
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** From now on nothing starts: tasks are asked to checkpoint and stop, instances are released. */
  drain(): void {
    this.#draining = true;
    this.wake();
  }

  /** One round. Returns the time to wait for the next one unless woken; null: until woken. */
  async cycle(): Promise<Seconds | null> {
    if (this.#inDoubt) await this.#observer.recall();
    else await this.#commitKept();
    this.#slotReuse = null;
    const beganMs = this.#parts.clock.now();
    const state = await this.#active(this.#inDoubt ? null : this.#kept);
    this.#inDoubt = true;
    const waitS = await this.#round(state);
    this.#kept = state;
    this.#inDoubt = false;
    this.#decisionS = secondsBetween(beganMs, this.#parts.clock.now());
    return waitS;
  }

  /** Commits the changes of slot reuse. Skipped after a fault: the next cycle performs them again. */
  async #commitKept(): Promise<void> {
    if (this.#kept === null || this.#inDoubt || !this.#kept.changed) return;
    this.#inDoubt = true;
    await this.#commit(this.#kept);
    this.#inDoubt = false;
  }

  /**
   * Reuses slots until a decision is due: after the least gap if only a decision can go on; after PACE times the last
   * decision's duration if anything happened; else after `waitS`, or the same if that is longer and nothing has a
   * deadline.
   */
  async #giveOn(reuse: SlotReuse, waitS: Seconds | null): Promise<void> {
    const { clock, minGapS, reuseGapS = minGapS } = this.#parts;
    const decidedMs = clock.now();
    const leastS = raw(minGapS);
    const pacedS = Math.max(leastS, PACE * this.#decisionS);
    const mostS = Math.max(waitS === null ? Infinity : raw(waitS), reuse.hasDeadlines ? leastS : pacedS);
    let isUrgent = false;
    while (!this.#stopped && !this.#draining) {
      const wasWoken = this.#woken;
      const dueS = isUrgent ? leastS : wasWoken ? Math.min(pacedS, mostS) : mostS;
      const leftS = dueS - secondsBetween(decidedMs, clock.now());
      if (leftS <= 0) return;
      if (this.#hasNews) {
        this.#hasNews = false;
        this.#woken = true;
        if (await this.reuseSlots()) isUrgent = true;
        await clock.sleep(reuseGapS);
      } else
        await this.#sleep(leftS === Infinity ? null : seconds(leftS), () => this.#hasNews || this.#woken !== wasWoken);
    }
  }

  /** One observation since the last cycle, and starts in free slots. True if only a cycle can go on. */
  async reuseSlots(): Promise<boolean> {
    const { clock, fleet, learners, onStep = () => undefined } = this.#parts;
    const reuse = this.#slotReuse;
    const state = this.#kept;
    if (reuse === null || state === null || this.#inDoubt) return true;
    this.#inDoubt = true;
    state.followCursors();
    onStep('observe');
    const observed = await this.#observer.observe(state);
    const at = clock.now();
    const { instances } = this.#observer.whatRuns(state);
    const records: EffectRecord[] = [];
    const plan = { id: reuse.plan, atMs: at };
    const record = (start: Extract<Effect, { kind: 'start' }>): void => {
      records.push(recordIntent(state, start, plan));
    };
    for (const stop of stopsOfLost(state)) records.push(recordIntent(state, stop, plan));
    const isLeft = !this.#observer.mayStart || reuse.give(observed, { state, instances, nowMs: at }, record);
    const asks = isLeft || observed.isLosing || reuse.asksForDecision(observed.left, state);
    await this.#commit(state);
    const outcomes = records.length === 0 ? NO_OUTCOMES : await act(fleet, state, records);
    confirm(state, outcomes, { records, at: clock.now(), backOffs: this.#observer.backOffs, learners });
    this.#done({ atMs: at, plan: null, idle: false, live: state.live });
    this.#inDoubt = false;
    return asks || records.some((r) => outcomes.get(r.key)?.status !== 'done');
  }

  /** Active state: that of the last cycle with the writes of others, if the store can tell them; else loaded. */
  async #active(kept: WorkingState | null): Promise<WorkingState> {
    const { store } = this.#parts;
    if (kept === null || store.changedByOthers === undefined) return new WorkingState(await store.loadActive());
    kept.refresh(await store.changedByOthers(kept.jobs));
    return kept;
  }

  async #round(state: WorkingState): Promise<Seconds | null> {
    const { clock, config, onStep = () => undefined } = this.#parts;
    onStep('observe');
    await this.#observer.observe(state);
    await this.#commit(state);
    onStep('act');
    await this.#perform(state, state.openEffects);
    onStep('observe');
    const at = clock.now();
    settleAll(state, at);
    if (state.isIdle) {
      await this.#commit(state);
      this.#done({ atMs: at, plan: null, idle: true, live: 0 });
      return null;
    }
    const observed = await this.#observeNow(state);
    const decision = await this.#decide(observed);
    const { plan, endings, runningOffers, slotReuse = null } = decision;
    this.#runningOffers = runningOffers;
    onStep('record');
    holdAll(state, decision, observed.snapshot.nowMs);
    giveUp(state, endings, observed.snapshot.nowMs);
    noteServicePlans(state, decision, this.#servicePlans);
    const records = recordIntents(state, plan);
    this.#observer.recorded(plan);
    await this.#commit(state);
    onStep('act');
    const wasShort = await this.#perform(state, records);
    this.#done({
      atMs: at,
      plan,
      idle: false,
      // Counted for those who ask.
      get live() {
        return state.live;
      },
    });
    this.#hurried = wasShort && this.#hurried < MAX_HURRIED ? this.#hurried + 1 : 0;
    if (this.#hurried === 0 && endings.length === 0) this.#slotReuse = slotReuse;
    return this.#hurried > 0 ? ZERO_S : nextDecisionS(observed.snapshot, config);
  }

  async #observeNow(state: WorkingState): Promise<ObservedState> {
    const snapshot = await this.#observer.snapshot(state);
    const plan = planId(`p-${timeOrderedText(snapshot.nowMs, this.#parts.random)}`);
    const lastRanMs = this.#observer.lastRanMs(snapshot);
    return { token: this.#token, plan, snapshot, lastRanMs, draining: this.#draining };
  }

  /** A decision that fails is made again without the jobs that it fails for. */
  async #decide(observed: ObservedState): Promise<Decision> {
    const { onStep = () => undefined, forecast } = this.#parts;
    const beliefs = this.#parts.learners;
    if (!isOpen(observed)) return decideOn(observed, null, { ...this.#parts, beliefs });
    onStep('forecast');
    const market = await forecast(observed.snapshot);
    const isolated = this.#isSuspicious ? await this.#isolate(observed, market) : null;
    if (isolated !== null) return isolated;
    onStep('decide');
    try {
      return await this.#decideAll(observed, market);
    } catch (error) {
      this.#parts.onFault?.(error);
      const without = await this.#isolate(observed, market);
      if (without === null) throw error;
      return without;
    }
  }

  #decideAll(observed: ObservedState, market: MarketForecast): Promise<Decision> {
    const { stages, learners, config } = this.#parts;
    const memory = this.#memory;
    const forecasts: Forecasts = {
      runtime: stages.estimate({ snapshot: observed.snapshot, beliefs: learners, config, memory }),
      market,
    };
    const reusesSlots = this.#parts.reuseGapS !== undefined;
    return decideOn(observed, forecasts, {
      ...this.#parts,
      beliefs: learners,
      memory,
      knownOffers: this.#runningOffers,
      reusesSlots,
    });
  }

  /** Null where no job is to blame. */
  async #isolate(observed: ObservedState, market: MarketForecast): Promise<Decision | null> {
    const { onStep = () => undefined, trials = this.#trialsHere } = this.#parts;
    onStep('isolate');
    const { trial, nowMs, close } = await trials(observed, market);
    try {
      const watched: Trial = (...asked) => {
        onStep('isolate');
        return trial(...asked);
      };
      const found = await isolate({ snapshot: observed.snapshot, trial: watched, limits: ISOLATION_LIMITS, nowMs });
      this.#isSuspicious = found !== null && found.undecided.length > 0;
      return found === null ? null : decisionOf(found);
    } finally {
      await close();
    }
  }

  readonly #trialsHere = async (observed: ObservedState, market: MarketForecast): Promise<Trials> =>
    trialsInProcess((tried) => this.#decideAll({ ...observed, snapshot: triedOn(observed.snapshot, tried) }, market));

  /** Performs the effects and confirms; failed effects stay open for the next cycle. True if capacity was refused. */
  async #perform(state: WorkingState, records: WorkingState['openEffects']): Promise<boolean> {
    if (records.length === 0) return false;
    const outcomes = await act(this.#parts.fleet, state, records);
    const { clock, learners } = this.#parts;
    confirm(state, outcomes, { records, at: clock.now(), backOffs: this.#observer.backOffs, learners });
    await this.#commit(state);
    return capacityRefused(outcomes, records);
  }

  async #commit(state: WorkingState): Promise<void> {
    const changes = state.takeChanges();
    if (changes.length > 0) await this.#parts.store.commit(this.#token, changes);
  }

  #done(report: CycleReport): void {
    this.#parts.onStep?.('waiting');
    this.#lastCycleMs = report.atMs;
    this.#parts.onCycle?.(report);
  }

  /** Waits for the least gap, then until woken, or until `waitS` of engine time has passed (null: only until woken). */
  async #waitForTrigger(waitS: Seconds | null): Promise<void> {
    if (this.#stopped) return;
    await this.#parts.clock.sleep(this.#parts.minGapS);
    await this.#sleep(waitS, () => this.#woken || this.#hasNews);
  }

  /** Waits until a wake-up with `isOver` true, or until `waitS` of engine time has passed (null: no time limit). */
  async #sleep(waitS: Seconds | null, isOver: () => boolean): Promise<void> {
    if (this.#stopped || isOver()) return;
    const timer = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    await (waitS === null ? woken : Promise.race([woken, this.#parts.clock.sleep(waitS, timer.signal)]));
    timer.abort();
    this.#wakeUp = null;
  }
}

const NO_OUTCOMES: ReadonlyMap<EffectKey, EffectOutcome> = new Map();

const isFenced = (error: unknown): boolean => error instanceof EbbError && error.code === 'fenced';

/** Releases instances of the provider that the store does not have; they are never ignored. */
export async function reconcile({ fleet, store }: Pick<ObserverParts, 'fleet' | 'store'>): Promise<void> {
  const known = new Set((await store.loadActive()).instances.map((i) => i.id));
  const unknown = (await fleet.list()).filter((i) => i.live && !known.has(i.instance));
  if (unknown.length === 0) return;
  await fleet.release(unknown.map((i) => ({ key: releaseKey(i.instance), instance: i.instance })));
}

const releaseKey = (id: InstanceId) => `release/${id}` as Extract<Effect, { kind: 'release' }>['key'];
