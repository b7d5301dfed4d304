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
import { decideOn, isOpen, type Decision, type Sight } from './decide/decision.ts';
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
  stopsOfSuperseded,
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
  /** Whether jobs are explained, for those who read it; default true. Changes nothing that is decided. */
  readonly explains?: boolean;
  /** Names this engine in the lease. */
  readonly holder: string;
  /** Least engine time between two cycles: triggers within it become one. */
  readonly minGapS: Seconds;
  /**
   * Least engine time between two looks for places that came free, which are given on between decisions
   * (slot-reuse.ts). Absent: none are.
   */
  readonly reuseGapS?: Seconds;
  /** Trials of decisions where one does not end, or throws. Absent: they run here, where nothing bounds them. */
  readonly trials?: (sight: Sight, market: MarketForecast) => Promise<Trials>;
  /** The engine before this one never came back from a decision: the first one is made in trials. */
  readonly isSuspicious?: boolean;
  /** Told where the cycle is. */
  readonly onStep?: (step: CycleStep) => void;
  /** Told of each finished cycle. */
  readonly onCycle?: (report: CycleReport) => void;
  /** Told of a cycle that failed and will be tried again. */
  readonly onFault?: (error: unknown) => void;
}

/** Where a cycle is; `waiting`: between two of them. */
export type CycleStep = 'observe' | 'forecast' | 'decide' | 'isolate' | 'record' | 'act' | 'waiting';

export interface CycleReport {
  readonly atMs: EpochMs;
  readonly plan: Plan | null;
  readonly idle: boolean;
  /** Instances and attempts that have not ended. */
  readonly live: number;
}

/**
 * Least time between two decisions, in times that the last one took, while places are given on in between: deciding
 * takes a fifth of the engine's time at most, for nothing is given on meanwhile. What concerns capacity or a failure,
 * or leaves a place empty, is decided at once.
 */
const PACE = 4;

/** Cycles that may fail in a row before the engine gives up: faults of the world pass, broken invariants do not. */
const MAX_FAULTS = 5;
/**
 * The scheduling engine: load, observe, decide, record intents, act, confirm; over and over, one cycle at a time.
 *
 * Lifecycle: `start` takes the lease (older engines are fenced off) and what was learned; `cycle` is one round; `run`
 * repeats it when woken, when the period is over, when a pause ends, and at once when capacity was refused. With
 * nothing to do it waits without a timer. While it waits it gives on places that tasks leave, as the last decision
 * orders (`reuseGapS`). Between cycles it keeps the active state (WorkingState.carryOver) and what its observer
 * remembers. Invariants: nothing is done to the world that is not recorded as an intent first; what is recorded is done
 * under its key until an outcome is confirmed. What is learned counts once: a cycle that did not come to its end may
 * have learned what no commit holds (or whose commit holds and was not answered), so the next one first recalls what is
 * stored. Crash points: after any store or fleet call. The next `start` finds intents without outcome and does them
 * again. What was given on is committed with what was observed, in one piece; that it was done, with the next commit:
 * until then its intents are open.
 */
export class Engine<S> {
  readonly #parts: EngineParts<S>;
  readonly #observer: Observer;
  /** For explanations alone: nothing is decided by it. */
  #runningOffers: RunningOffers = new Map();
  /** What policies keep from decision to decision. */
  readonly #memory = new DecisionMemory();
  #token = 0;
  #draining = false;
  #stopped = false;
  #wakeUp: (() => void) | null = null;
  #woken = false;
  #lastCycleMs: EpochMs | null = null;
  /** Whether memory may differ from what the store holds: a cycle is under way or ended with an error. */
  #inDoubt = false;
  /** What the last cycle left, all of it committed; null: to be loaded. */
  #kept: WorkingState | null = null;
  /** Whether some job keeps decisions from being made. */
  #isSuspicious: boolean;
  /** Cycles in a row that followed at once upon a refusal. */
  #hurried = 0;
  /** Something happened in the fleet since it was last observed. */
  #hasNews = false;
  /** Who has the places that come free until the next decision; null: nobody. */
  #slotReuse: SlotReuse | null = null;
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

  /** Writes down what happened to the engine itself. */
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
          // With the step at which it failed still told.
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

  /** From now on nothing starts: tasks are asked to checkpoint and stop, instances are given back. */
  drain(): void {
    this.#draining = true;
    this.wake();
  }

  /** One round. Returns how long to wait for the next one unless woken; null when there is nothing to wait for. */
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

  /** What slot reuse left to the next commit. Nothing after a fault: then it is done again. */
  async #commitKept(): Promise<void> {
    if (this.#kept === null || this.#inDoubt || !this.#kept.changed) return;
    this.#inDoubt = true;
    await this.#commit(this.#kept);
    this.#inDoubt = false;
  }

  /**
   * Gives on places that come free until it is time for a decision: the least gap after the last one where only a
   * decision can go on, PACE times what that took where anything happened, and `waitS` else, or the same where that is
   * longer and nothing has a deadline.
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

  /**
   * One look at what happened since the last cycle, and starts in the places that came free. True where only a cycle
   * can go on.
   */
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
    for (const stop of stopsOfSuperseded(state)) records.push(recordIntent(state, stop, plan));
    const isLeft = !this.#observer.mayStart || reuse.give(observed, { state, instances, nowMs: at }, record);
    const asks = isLeft || observed.isLosing || reuse.asksForDecision(observed.left, state);
    await this.#commit(state);
    const outcomes = records.length === 0 ? NO_OUTCOMES : await act(fleet, state, records);
    confirm(state, outcomes, { records, at: clock.now(), backOffs: this.#observer.backOffs, learners });
    this.#done({ atMs: at, plan: null, idle: false, live: state.live });
    this.#inDoubt = false;
    return asks || records.some((r) => outcomes.get(r.key)?.status !== 'done');
  }

  /**
   * All that is active: what the last cycle left with what others have written since, where the store can tell, else
   * loaded.
   */
  async #active(kept: WorkingState | null): Promise<WorkingState> {
    const { store } = this.#parts;
    if (kept === null || store.changedByOthers === undefined) return new WorkingState(await store.loadActive());
    kept.carryOver(await store.changedByOthers(kept.jobs));
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
    const sight = await this.#look(state);
    const decision = await this.#decide(sight);
    const { plan, endings, runningOffers, slotReuse = null } = decision;
    this.#runningOffers = runningOffers;
    onStep('record');
    holdAll(state, decision, sight.snapshot.nowMs);
    giveUp(state, endings, sight.snapshot.nowMs);
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
    return this.#hurried > 0 ? ZERO_S : nextDecisionS(sight.snapshot, config);
  }

  async #look(state: WorkingState): Promise<Sight> {
    const snapshot = await this.#observer.snapshot(state);
    const plan = planId(`p-${timeOrderedText(snapshot.nowMs, this.#parts.random)}`);
    const lastRanMs = this.#observer.lastRanMs(snapshot);
    return { token: this.#token, plan, snapshot, lastRanMs, draining: this.#draining };
  }

  /** A decision that fails is made again without the jobs that it fails for. */
  async #decide(sight: Sight): Promise<Decision> {
    const { onStep = () => undefined, forecast } = this.#parts;
    if (!isOpen(sight)) return decideOn(sight, null, this.#parts);
    onStep('forecast');
    const market = await forecast(sight.snapshot);
    const isolated = this.#isSuspicious ? await this.#isolate(sight, market) : null;
    if (isolated !== null) return isolated;
    onStep('decide');
    try {
      return await this.#decideAll(sight, market);
    } catch (error) {
      this.#parts.onFault?.(error);
      const without = await this.#isolate(sight, market);
      if (without === null) throw error;
      return without;
    }
  }

  #decideAll(sight: Sight, market: MarketForecast): Promise<Decision> {
    const { stages, learners, config } = this.#parts;
    const memory = this.#memory;
    const forecasts: Forecasts = {
      runtime: stages.estimate({ snapshot: sight.snapshot, beliefs: learners, config, memory }),
      market,
    };
    const reusesSlots = this.#parts.reuseGapS !== undefined;
    return decideOn(sight, forecasts, {
      ...this.#parts,
      memory,
      knownOffers: this.#runningOffers,
      reusesSlots,
    });
  }

  /** Null where no job is to blame. */
  async #isolate(sight: Sight, market: MarketForecast): Promise<Decision | null> {
    const { onStep = () => undefined, trials = this.#trialsHere } = this.#parts;
    onStep('isolate');
    const { trial, nowMs, close } = await trials(sight, market);
    try {
      const watched: Trial = (...asked) => {
        onStep('isolate');
        return trial(...asked);
      };
      const found = await isolate({ snapshot: sight.snapshot, trial: watched, limits: ISOLATION_LIMITS, nowMs });
      this.#isSuspicious = found !== null && found.undecided.length > 0;
      return found === null ? null : decisionOf(found);
    } finally {
      await close();
    }
  }

  readonly #trialsHere = async (sight: Sight, market: MarketForecast): Promise<Trials> =>
    trialsInProcess((tried) => this.#decideAll({ ...sight, snapshot: triedOn(sight.snapshot, tried) }, market));

  /**
   * Does the effects and confirms; effects that failed stay open for the next cycle. True when capacity was refused.
   */
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

  /** At least the least gap, then until woken, or until `waitS` of engine time has passed (null: only until woken). */
  async #waitForTrigger(waitS: Seconds | null): Promise<void> {
    if (this.#stopped) return;
    await this.#parts.clock.sleep(this.#parts.minGapS);
    await this.#sleep(waitS, () => this.#woken || this.#hasNews);
  }

  /** Until `isOver` is true when something wakes it, or until `waitS` of engine time has passed (null: only that). */
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

/** Instances the provider has and the store does not know of: given back, never ignored. */
export async function reconcile({ fleet, store }: Pick<ObserverParts, 'fleet' | 'store'>): Promise<void> {
  const known = new Set((await store.loadActive()).instances.map((i) => i.id));
  const unknown = (await fleet.list()).filter((i) => i.live && !known.has(i.instance));
  if (unknown.length === 0) return;
  await fleet.release(unknown.map((i) => ({ key: releaseKey(i.instance), instance: i.instance })));
}

const releaseKey = (id: InstanceId) => `release/${id}` as Extract<Effect, { kind: 'release' }>['key'];
