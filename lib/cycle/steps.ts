/**
 * One cycle as steps that may run in separate processes, one after the other, with data between them: the Step
 * Functions cycle calls them. Local mode's engine (engine.ts) does the same with its state in memory; both are made of
 * observer.ts, decision.ts, intents.ts and act.ts, and give the same plans.
 *   observe -> (estimate, forecast) -> solve -> record -> perform (in parts, at once) -> confirm
 * Invariants: every commit is under the token that `observe` took, so an overtaken cycle ends with `fenced` and has
 * done nothing unknown to the newer one. Only `perform` acts on the world, and only on recorded intents, under their
 * keys. Crash points: any step may die anywhere and be repeated, or be followed by another cycle instead. Intents that
 * no `confirm` has closed are among those that the next `record` hands out.
 */
import type { EffectKey } from '../kernel/ids.ts';
import { planId, timeOrderedText } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import type { Seconds } from '../kernel/units.ts';
import type { Clock } from '../kernel/clock.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { EffectOutcome } from '../domain/plan.ts';
import type { RuntimeForecast } from '../domain/forecast.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { StageKey, Forecasts } from '../domain/forecasts.ts';
import type { EstimateContext, Stages } from '../policy/contracts.ts';
import type { Learners } from '../policy/learners.ts';
import {
  forecastTable,
  tabledForecast,
  type ForecastTable,
  type OutlookForecast,
} from '../market/forecast/forecast-data.ts';
import type { Fleet } from '../ports/fleet.ts';
import type { Store } from '../ports/store.ts';
import { act } from './act/act.ts';
import { nextDecisionS } from './decide/next-decision.ts';
import { decideOn, isOpen, type Decision, type DecisionParts, type ObservedState } from './decide/decision.ts';
import { giveUp } from './decide/endings.ts';
import { bidsAsked, poolsPriced, type BoundAsks } from '../policy/asks.ts';
import { holdAll } from './observe/holding.ts';
import { decisionOf, isolate, type IsolationLimits, type Trials } from './decide/isolate.ts';
import { confirm, capacityRefused, recordIntents, settleAll } from './act/intents.ts';
import { storedBackOffs } from './observe/back-off.ts';
import { Observer, type ObserverParts } from './observe/observer.ts';
import type { ObservationMemory } from './observe/remembered.ts';
import { noteServicePlans } from './replicas/service-plans.ts';
import { WorkingState } from './state/working-state.ts';

export interface ObserveParts extends Omit<ObserverParts, 'remembered'> {
  readonly random: Uniform;
  /** Names this cycle in the lease. */
  readonly holder: string;
  readonly memory: ObservationMemory;
  /** Called with the number of held jobs, now and before this observation; also if nothing is left to do. */
  readonly onHeld?: (now: number, before: number) => void;
}

/**
 * Takes the lease, takes in reports, and takes one snapshot; `draining`: everything is to stop. Null: nothing is left
 * to do.
 */
export async function observe(parts: ObserveParts, draining: boolean): Promise<ObservedState | null> {
  const { store, clock, random, memory } = parts;
  const token = await store.takeLease(parts.holder);
  memory.begin(token);
  const observer = new Observer({ ...parts, remembered: memory.remembered });
  await observer.recall('learned');
  const state = new WorkingState(await store.loadActive());
  const heldBefore = heldJobs(state);
  await observer.observe(state);
  await commit(store, token, state);
  settleAll(state, clock.now());
  const isOver = state.isIdle && state.openEffects.length === 0;
  const snapshot = isOver ? null : await observer.snapshot(state);
  await commit(store, token, state);
  memory.end(token);
  parts.onHeld?.(heldJobs(state), heldBefore);
  if (snapshot === null) return null;
  const plan = planId(`p-${timeOrderedText(snapshot.nowMs, random)}`);
  return { token, plan, snapshot: asData(snapshot), lastRanMs: observer.lastRanMs(snapshot), draining };
}

const heldJobs = (state: WorkingState): number =>
  state.activeJobs().reduce((n, job) => (job.state === 'held' ? n + 1 : n), 0);

/** A snapshot as data for another process, without its own index of instances and its parts. */
export const asData = ({ parts: _, ...snapshot }: Snapshot): Snapshot => ({
  ...snapshot,
  instances: new Map(snapshot.instances.values().map((view) => [view.instance.id, view])),
});

/** What `estimate` leaves for `solve`, which reads no store. */
export interface Estimated {
  readonly runtime: ReadonlyMap<StageKey, RuntimeForecast>;
  /** Stored rows of the learners that later policies declare. */
  readonly learned: ReadonlyMap<string, string>;
}

/** All running times, because another process asks. Beliefs are the stored ones, recalled by the caller. */
export function estimate<S>(
  observed: ObservedState,
  stages: Pick<Stages<S>, 'estimate'>,
  context: Omit<EstimateContext, 'snapshot'>,
): Estimated['runtime'] {
  return new Map(isOpen(observed) ? stages.estimate({ ...context, snapshot: observed.snapshot }) : []);
}

/** Interruptions for every bid that the decision can ask about, and prices of every pool that the preset may buy in. */
export function forecast(
  observed: ObservedState,
  market: OutlookForecast,
  {
    config,
    asks,
    buys,
  }: { readonly config: SchedulerConfig; readonly asks: readonly BoundAsks[] } & Pick<Stages<unknown>, 'buys'>,
): ForecastTable {
  const { snapshot } = observed;
  if (!isOpen(observed)) return forecastTable(market, snapshot.nowMs, []);
  return forecastTable(
    market,
    snapshot.nowMs,
    bidsAsked(snapshot, asks, config),
    poolsPriced(snapshot, { ...(buys && { buys }) }),
  );
}

export function solve<S>(
  observed: ObservedState,
  forecasts: { readonly runtime: Forecasts['runtime']; readonly market: ForecastTable },
  parts: DecisionParts<S>,
): Promise<Decision> {
  return decideOn(observed, { runtime: forecasts.runtime, market: tabledForecast(forecasts.market) }, parts);
}

/**
 * The decision without the jobs that keep it from being made, where `estimate` or `solve` threw or never came back.
 * Null where no job is to blame.
 */
export async function isolateFaulty(
  { snapshot }: ObservedState,
  { trial, nowMs }: Pick<Trials, 'trial' | 'nowMs'>,
  limits: IsolationLimits,
): Promise<Decision | null> {
  const found = await isolate({ snapshot, trial, nowMs, limits });
  return found === null ? null : decisionOf(found);
}

/**
 * Writes the intents of a decision. Returns the keys of all intents without outcome, those left open by earlier cycles
 * first. Repeated for the same plan it writes nothing new.
 */
export async function record(store: Store, decision: Omit<Decision, 'runningOffers'>): Promise<readonly EffectKey[]> {
  const { plan, endings } = decision;
  const state = new WorkingState(await store.loadActive('known'));
  const open = state.openEffects.map((e) => e.key);
  if (state.openEffects.some((e) => e.plan === plan.id)) return open;
  holdAll(state, decision, plan.atMs);
  giveUp(state, endings, plan.atMs);
  noteServicePlans(state, decision, new Map());
  const records = recordIntents(state, plan);
  await commit(store, plan.token, state);
  return [...open, ...records.map((r) => r.key)];
}

export type Outcomes = ReadonlyMap<EffectKey, EffectOutcome>;

/** Performs intents that are still open. Safe to repeat, and for several parts of one plan at once. */
export async function perform(
  { store, fleet }: { readonly store: Store; readonly fleet: Fleet },
  keys: readonly EffectKey[],
): Promise<Outcomes> {
  const wanted = new Set(keys);
  const state = new WorkingState(await store.loadActive('known'));
  return act(
    fleet,
    state,
    state.openEffects.filter((e) => wanted.has(e.key)),
  );
}

/**
 * Closes effects with an outcome. Throws `fenced` if a newer cycle has begun: it finds the intents open, and performs
 * them again.
 */
export async function confirmOutcomes(
  { store, clock, learners }: { readonly store: Store; readonly clock: Clock; readonly learners: Learners },
  token: number,
  outcomes: Outcomes,
): Promise<{ readonly wasShort: boolean }> {
  const state = new WorkingState(await store.loadActive('known'));
  const records = state.openEffects.filter((e) => outcomes.has(e.key));
  const wasShort = capacityRefused(outcomes, records);
  // Without learners of refusals nothing is read.
  if (wasShort) await learners.recall(store, learners.learningFrom('launch-refused'));
  confirm(state, outcomes, { records, at: clock.now(), backOffs: await storedBackOffs(store), learners });
  await commit(store, token, state);
  return { wasShort };
}

/** Engine time until the next cycle is due unless something happens before. */
export const nextCycleS = (observed: ObservedState, config: SchedulerConfig): Seconds =>
  nextDecisionS(observed.snapshot, config);

async function commit(store: Store, token: number, state: WorkingState): Promise<void> {
  const changes = state.takeChanges();
  if (changes.length > 0) await store.commit(token, changes);
}
