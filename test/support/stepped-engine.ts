import { DecisionMemory } from '../../lib/policy/memory.ts';
import { deserialize, serialize } from 'node:v8';
import { reconcile, type EngineParts } from '../../lib/cycle/engine.ts';
import { capacityLearner } from '../../lib/stages/capacity-learner.ts';
import { ObservationMemory } from '../../lib/cycle/observe/remembered.ts';
import * as steps from '../../lib/cycle/steps.ts';
import type { BoundAsks, Scene } from '../../lib/policy/asks.ts';
import type { RunningOffers } from '../../lib/cycle/decide/deliberation.ts';
import type { Decision, ObservedState } from '../../lib/cycle/decide/decision.ts';
import { ISOLATION_LIMITS, trialsInProcess, triedOn } from '../../lib/cycle/decide/isolate.ts';
import { MAX_HURRIED } from '../../lib/cycle/act/intents.ts';
import { ZERO_S, type Seconds } from '../../lib/kernel/units.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import type { DeclaredBy } from '../../lib/stages/registry.ts';
import type { OutlookForecast } from '../../lib/market/forecast/forecast-data.ts';

/** What passes from one process to the next. */
const carried = <T>(value: T): T => deserialize(serialize(value)) as T;

/** The functions of a deployment that have a store. */
export type Step = 'snapshot' | 'estimate' | 'forecast' | 'solve' | 'isolate' | 'record' | 'act' | 'confirm';

/** Parts of a process: what was learned is its own, so each step begins from what is stored. */
export type SteppedParts = Omit<EngineParts<Solver>, 'forecast'> & {
  readonly forecast: (scene: Scene) => Promise<OutlookForecast>;
  readonly asks: readonly BoundAsks[];
  /** Learners that the preset declares. */
  readonly reads: DeclaredBy;
};

/**
 * The cycle in steps, each with parts of its own and nothing but data between them. Has the methods of Engine that a
 * bench drives.
 */
export class SteppedEngine {
  readonly #parts: (step: Step) => SteppedParts;
  #known: RunningOffers = new Map();
  readonly #memory = new ObservationMemory();
  #draining = false;
  #hurried = 0;

  constructor(parts: (step: Step) => SteppedParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    await reconcile(this.#parts('snapshot'));
  }

  /** From the next cycle on nothing starts, and what runs is asked to stop. */
  drain(): void {
    this.#draining = true;
  }

  async cycle(): Promise<Seconds | null> {
    const observing = this.#parts('snapshot');
    const found = await steps.observe({ ...observing, memory: this.#memory }, this.#draining);
    if (found === null) {
      observing.onCycle?.({ atMs: observing.clock.now(), plan: null, idle: true, live: 0 });
      return null;
    }
    const observed = carried(found);
    const decision = carried(await this.#decide(observed));
    this.#known = decision.runningOffers;
    const keys = carried(await steps.record(this.#parts('record').store, decision));
    let wasShort = false;
    if (keys.length > 0) {
      const outcomes = carried(await steps.perform(this.#parts('act'), keys));
      ({ wasShort } = await steps.confirmOutcomes(this.#parts('confirm'), observed.token, outcomes));
    }
    this.#hurried = wasShort && this.#hurried < MAX_HURRIED ? this.#hurried + 1 : 0;
    observing.onCycle?.({ atMs: observed.snapshot.nowMs, plan: decision.plan, idle: false, live: 0 });
    return this.#hurried > 0 ? ZERO_S : steps.nextCycleS(observed, observing.config);
  }

  /** A decision that throws is made in trials, as the state machine does. */
  async #decide(observed: ObservedState): Promise<Decision> {
    const { learners, ...rest } = this.#parts('solve');
    const parts = { ...rest, beliefs: learners, knownOffers: this.#known };
    const decide = async (of: ObservedState): Promise<Decision> => {
      const { learned, ...forecasts } = carried(await this.#forecast(of));
      learners.restore(learned);
      return steps.solve(of, forecasts, parts);
    };
    try {
      return await decide(observed);
    } catch (error) {
      const trials = trialsInProcess((tried) => decide({ ...observed, snapshot: triedOn(observed.snapshot, tried) }));
      const isolated = await steps.isolateFaulty(observed, trials, ISOLATION_LIMITS);
      if (isolated === null) throw error;
      return isolated;
    }
  }

  async #forecast(observed: NonNullable<Awaited<ReturnType<typeof steps.observe>>>) {
    const { stages, learners, store, reads } = this.#parts('estimate');
    const { learners: others, store: other, forecast, config, asks } = this.#parts('forecast');
    await learners.recall(store, reads.estimate);
    await others.recall(other, [capacityLearner]);
    return {
      runtime: steps.estimate(observed, stages, { beliefs: learners, config, memory: new DecisionMemory() }),
      learned: await learners.stored(store, reads.decide),
      market: steps.forecast(observed, await forecast(observed.snapshot), {
        config,
        asks,
      }),
    };
  }
}
