import { EbbError } from '../kernel/errors.ts';
import { planId, timeOrderedText, type InstanceId } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import { raw, seconds, ZERO_S, type EpochMs, type Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Effect, Plan } from '../domain/plan.ts';
import type { Forecasts, MarketForecast, Stages } from '../domain/stages.ts';
import { act } from './act.ts';
import { nextDecisionS } from './decide.ts';
import { decideOn, isOpen, type Sight } from './decision.ts';
import { giveUp } from './endings.ts';
import type { Scene } from './forecasting.ts';
import { confirm, capacityRefused, MAX_HURRIED, recordIntents, settleAll } from './intents.ts';
import { Observer, type ObserverParts } from './observer.ts';
import type { RunningOffers } from './running-offers.ts';
import { WorkingState } from './working-state.ts';

export interface EngineParts<S> extends ObserverParts {
  readonly random: Uniform;
  readonly solver: S;
  readonly stages: Stages<S>;
  readonly preset: string;
  readonly config: SchedulerConfig;
  readonly forecast: (scene: Scene) => Promise<MarketForecast>;
  /** Whether jobs are explained, for those who read it; default true. Changes nothing that is decided. */
  readonly explains?: boolean;
  /** Names this engine in the lease. */
  readonly holder: string;
  /** Least engine time between two cycles: triggers within it become one. */
  readonly minGapS: Seconds;
  /** Told of each finished cycle. */
  readonly onCycle?: (report: CycleReport) => void;
  /** Told of a cycle that failed and will be tried again. */
  readonly onFault?: (error: unknown) => void;
}

export interface CycleReport {
  readonly atMs: EpochMs;
  readonly plan: Plan | null;
  readonly idle: boolean;
  /** Instances and attempts that have not ended. */
  readonly live: number;
}

/** Cycles that may fail in a row before the engine gives up: faults of the world pass, broken invariants do not. */
const MAX_FAULTS = 5;
/**
 * The scheduling engine: load, observe, decide, record intents, act, confirm; over and over, one cycle at a time.
 *
 * Lifecycle: `start` takes the lease (older engines are fenced off) and what was learned; `cycle` is one round; `run`
 * repeats it when woken, when the period is over, when a pause ends, and at once when capacity was refused. With nothing to do it
 * waits without a timer. Between cycles it keeps the active state (WorkingState.carryOver) and what its observer remembers.
 * Invariants: nothing is done to the world that is not recorded as an intent first; what is recorded is done under its
 * key until an outcome is confirmed. What is learned counts once: a cycle that did not come to its end may have learned
 * what no commit holds (or whose commit holds and was not answered), so the next one first recalls what is stored.
 * Crash points: after any store or fleet call. The next `start` finds intents without outcome and does them again.
 */
export class Engine<S> {
  readonly #parts: EngineParts<S>;
  readonly #observer: Observer;
  /** For explanations alone: nothing is decided by it. */
  #runningOffers: RunningOffers = new Map();
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
  /** Cycles in a row that followed at once upon a refusal. */
  #hurried = 0;

  constructor(parts: EngineParts<S>) {
    this.#parts = parts;
    this.#observer = new Observer(parts);
  }

  get lastCycleMs(): EpochMs | null {
    return this.#lastCycleMs;
  }

  async start(): Promise<void> {
    this.#token = await this.#parts.store.takeLease(this.#parts.holder);
    await this.#observer.recall();
    await reconcile(this.#parts);
  }

  /** There may be something to do. */
  wake(): void {
    this.#woken = true;
    this.#wakeUp?.();
  }

  /** Repeats cycles until `stop`, or rejects when it may not or cannot go on. */
  async run(): Promise<void> {
    const unsubscribe = this.#parts.fleet.onChange(() => this.wake());
    let faults = 0;
    try {
      while (!this.#stopped) {
        this.#woken = false;
        let waitS: Seconds | null = this.#parts.minGapS;
        try {
          waitS = await this.cycle();
          faults = 0;
        } catch (error) {
          faults += 1;
          this.#parts.onFault?.(error);
          if (faults >= MAX_FAULTS || (error instanceof EbbError && !error.retryable) || isFenced(error)) throw error;
          waitS = seconds(raw(this.#parts.minGapS) * 2 ** faults);
        }
        await this.#waitForTrigger(waitS);
      }
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
    const state = await this.#active(this.#inDoubt ? null : this.#kept);
    this.#inDoubt = true;
    const waitS = await this.#round(state);
    this.#kept = state;
    this.#inDoubt = false;
    return waitS;
  }

  /** All that is active: what the last cycle left with what others have written since, where the store can tell, else loaded. */
  async #active(kept: WorkingState | null): Promise<WorkingState> {
    const { store } = this.#parts;
    if (kept === null || store.changedByOthers === undefined) return new WorkingState(await store.loadActive());
    kept.carryOver(await store.changedByOthers(kept.jobs));
    return kept;
  }

  async #round(state: WorkingState): Promise<Seconds | null> {
    const { clock, config } = this.#parts;
    await this.#observer.observe(state);
    await this.#commit(state);
    await this.#perform(state, state.openEffects);
    const at = clock.now();
    settleAll(state, at);
    if (state.isIdle) {
      await this.#commit(state);
      this.#done({ atMs: at, plan: null, idle: true, live: 0 });
      return null;
    }
    const sight = await this.#look(state);
    const { plan, endings, runningOffers } = await decideOn(sight, await this.#forecast(sight), {
      ...this.#parts,
      knownOffers: this.#runningOffers,
    });
    this.#runningOffers = runningOffers;
    giveUp(state, endings, sight.snapshot.nowMs);
    const records = recordIntents(state, plan);
    await this.#commit(state);
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
    return this.#hurried > 0 ? ZERO_S : nextDecisionS(sight.snapshot, config);
  }

  async #look(state: WorkingState): Promise<Sight> {
    const snapshot = await this.#observer.snapshot(state);
    const plan = planId(`p-${timeOrderedText(raw(snapshot.nowMs), this.#parts.random)}`);
    const lastRanMs = this.#observer.lastRanMs(snapshot);
    return { token: this.#token, plan, snapshot, lastRanMs, draining: this.#draining };
  }

  async #forecast(sight: Sight): Promise<Forecasts | null> {
    if (!isOpen(sight)) return null;
    const { stages, history, forecast } = this.#parts;
    return { runtime: stages.estimate(sight.snapshot, history), market: await forecast(sight.snapshot) };
  }

  /** Does the effects and confirms; effects that failed stay open for the next cycle. True when capacity was refused. */
  async #perform(state: WorkingState, records: WorkingState['openEffects']): Promise<boolean> {
    if (records.length === 0) return false;
    const outcomes = await act(this.#parts.fleet, state, records);
    const { clock, capacity } = this.#parts;
    confirm(state, outcomes, { records, at: clock.now(), rests: this.#observer.rests, capacity });
    await this.#commit(state);
    return capacityRefused(outcomes, records);
  }

  async #commit(state: WorkingState): Promise<void> {
    const changes = state.takeChanges();
    if (changes.length > 0) await this.#parts.store.commit(this.#token, changes);
  }

  #done(report: CycleReport): void {
    this.#lastCycleMs = report.atMs;
    this.#parts.onCycle?.(report);
  }

  /** At least the least gap, then until woken, or until `waitS` of engine time has passed (null: only until woken). */
  async #waitForTrigger(waitS: Seconds | null): Promise<void> {
    if (this.#stopped) return;
    await this.#parts.clock.sleep(this.#parts.minGapS);
    if (this.#woken) return;
    const woken = new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    const timer = new AbortController();
    await (waitS === null ? woken : Promise.race([woken, this.#parts.clock.sleep(waitS, timer.signal)]));
    timer.abort();
    this.#wakeUp = null;
  }
}

const isFenced = (error: unknown): boolean => error instanceof EbbError && error.code === 'fenced';

/** Instances the provider has and the store does not know of: given back, never ignored. */
export async function reconcile({ fleet, store }: Pick<ObserverParts, 'fleet' | 'store'>): Promise<void> {
  const known = new Set((await store.loadActive()).instances.map((i) => i.id));
  const unknown = (await fleet.list()).filter((i) => i.live && !known.has(i.instance));
  if (unknown.length === 0) return;
  await fleet.release(unknown.map((i) => ({ key: releaseKey(i.instance), instance: i.instance })));
}

const releaseKey = (id: InstanceId) => `release/${id}` as Extract<Effect, { kind: 'release' }>['key'];
