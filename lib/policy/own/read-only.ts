/**
 * Inputs of users' policies, which they cannot change. Records are frozen where they are: rows of the cycle never
 * change but are replaced (lib/cycle/state/what-runs.ts). A frozen record stays right, keeps the identity by which
 * caches and answers know it, and is frozen once. Maps, sets and arrays of doubles cannot be frozen: policies get views
 * or copies of these. Presets without policies of the user's own pay nothing. With one, a decision takes O(records that
 * are new) to freeze; each of its calls takes O(1), and O(entries) for the lists that are its arguments.
 */
import type { Forecasts, StageForecasts } from '../../domain/forecasts.ts';
import type { CapacityCurve, InterruptionCurve, RuntimeForecast } from '../../domain/forecast.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { StageName } from '../../domain/preset-spec.ts';
import {
  SnapshotParts,
  type InstanceParts,
  type InstanceView,
  type RunningParts,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { InstanceId, JobId } from '../../kernel/ids.ts';
import { withCurves } from '../asks.ts';
import { readOnlyBeliefs } from '../declared-beliefs.ts';
import type { GroupOffers, MovePolicy, SceneContext, Worths } from '../contracts.ts';
import type { Beliefs } from '../learner.ts';
import { DecisionMemory, slot } from '../memory.ts';
import type { Contract } from '../policy.ts';
import type { Solver } from '../solver.ts';
import { hush, isThenable } from './read.ts';

/**
 * Freezes the value and its parts. Functions and typed arrays stay as they are. Frozen parts are skipped: only this
 * function freezes records, and it freezes parts first.
 */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) for (const item of value as readonly unknown[]) frozen(item);
  else for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

/** The same contract. What it is called with cannot be changed. */
export function withReadOnlyInput<Stage extends StageName>(stage: Stage, contract: Contract<Stage>): Contract<Stage> {
  const all: Contract<StageName> = contract;
  // A `decide` that is asynchronous makes no contract: each call of it is refused.
  if (isThenable(contract)) hush(contract);
  if (stage === 'move') {
    const own = all as MovePolicy;
    const readOnly: MovePolicy = {
      propose: (context) => own.propose(readOnlyInput(context)),
      begin: (input) => own.begin(readOnlyInput(input)),
      returning: (context) => own.returning(readOnlyInput(context)),
      vacate: (input) => own.vacate(readOnlyInput(input)),
    };
    return readOnly as Contract<Stage>;
  }
  const own = all as (...asked: readonly unknown[]) => unknown;
  return ((...asked: readonly unknown[]) => own(...asked.map(readOnlyInput))) as unknown as Contract<Stage>;
}

function readOnlyInput<T>(given: T): T {
  if (Array.isArray(given)) return frozen([...(given as readonly unknown[])]) as T;
  if (isSolver(given)) return readOnlySolver(given) as T;
  if (typeof given !== 'object' || given === null || !('snapshot' in given)) return frozen(given);
  const memory = ownMemory((given as Partial<SceneContext>).memory);
  const parts = Object.entries(given).map(([name, of]) => [name, partOf(name, of, memory)]);
  return Object.freeze(Object.fromEntries(parts)) as T;
}

/** Memory of users' policies: what shipped policies remember for them has no effect on the others. */
class OwnMemory extends DecisionMemory {}
const MEMORY = slot(() => {
  const memory = new OwnMemory();
  Object.freeze(memory);
  return memory;
});

/** A policy without a context remembers nothing. */
const ownMemory = (memory: DecisionMemory | undefined): DecisionMemory =>
  memory instanceof OwnMemory ? memory : (memory?.of(MEMORY) ?? new OwnMemory());

function partOf(name: string, of: unknown, memory: DecisionMemory): unknown {
  switch (name) {
    case 'snapshot':
      return readOnlySnapshot(of as Snapshot);
    case 'config':
      return readOnlyConfig(of as SchedulerConfig);
    case 'memory':
      return memory;
    case 'forecasts':
      return readOnlyForecasts(of as Forecasts, memory.of(COPIES));
    case 'beliefs':
      return readOnlyBeliefs(of as Beliefs);
    case 'worths':
      return isMap(of) ? readOnlyMap(of) : readOnlyWorths(of as Worths);
    case 'offers':
      return Array.isArray(of)
        ? frozen([...(of as readonly unknown[])])
        : readOnlyMap(of as ReadonlyMap<unknown, GroupOffers>, readOnlyOffers);
    default:
      break;
  }
  if (Array.isArray(of)) return frozen([...(of as readonly unknown[])]);
  if (of instanceof Set) return new Set(of);
  return isMap(of) ? readOnlyMap(of) : frozen(of);
}

/** With the settings that it was made of, which it keeps under a symbol (lib/stages/registry.ts). */
export function readOnlyConfig(config: SchedulerConfig): SchedulerConfig {
  for (const key of Object.getOwnPropertySymbols(config)) frozen((config as Readonly<Record<symbol, unknown>>)[key]);
  return frozen(config);
}

function readOnlySnapshot(snapshot: Snapshot): Snapshot {
  const { jobs, pools, spentUsd, budgets, limits, instances, parts, ...lists } = snapshot;
  const { running } = lists;
  const views = new ReadOnlyInstances(instances);
  return Object.freeze({
    ...frozen(lists),
    jobs: readOnlyMap(jobs),
    pools: frozen([...pools]),
    spentUsd: readOnlyMap(spentUsd),
    ...(budgets && { budgets: readOnlyMap(budgets) }),
    limits: frozen({ ...limits }),
    instances: views,
    ...(parts?.isOf(snapshot) === true && { parts: new ReadOnlyParts({ running, instances: views }, parts) }),
  });
}

const readOnlyWorths = ({ groups, ofRunning, mayBeDue }: Worths): Worths =>
  Object.freeze({
    groups: readOnlyMap(groups),
    ofRunning: (running: RunningTask) => frozen(ofRunning(running)),
    ...(mayBeDue && { mayBeDue }),
  });

/** `considered` stays unread, because it may be built on first use. */
const readOnlyOffers = (of: GroupOffers): GroupOffers =>
  Object.freeze({
    offers: frozen(of.offers),
    excluded: frozen(of.excluded),
    get considered() {
      return frozen(of.considered);
    },
  });

/** Copies of forecasts, whose arrays cannot be frozen: one of each, by which caches know it. */
const COPIES = slot(() => ({
  runtimes: new WeakMap<object, unknown>(),
  curves: new WeakMap<object, unknown>(),
}));
type Copies = ReturnType<(typeof COPIES)['make']>;

const readOnlyForecasts = ({ runtime, market }: Forecasts, { runtimes, curves }: Copies): Forecasts =>
  Object.freeze({
    runtime: readOnlyRuntimes(runtime, (forecast) => copied(forecast, runtimes, copyOfRuntime)),
    market: withCurves(market, (curve) => copied(curve, curves, copyOfCurve)),
  });

function readOnlyRuntimes(of: StageForecasts, copyOf: (forecast: RuntimeForecast) => RuntimeForecast): StageForecasts {
  const maybe = (forecast: RuntimeForecast | undefined) => forecast && copyOf(forecast);
  return Object.freeze<StageForecasts>({
    get: (key) => maybe(of.get(key)),
    ...(of.ofStage && { ofStage: (job: JobId, stage) => maybe(of.ofStage?.(job, stage)) }),
    *[Symbol.iterator]() {
      for (const [key, forecast] of of) yield [key, copyOf(forecast)];
    },
  });
}

function copied<T extends object>(of: T, known: WeakMap<object, unknown>, copy: (of: T) => T): T {
  let made = known.get(of) as T | undefined;
  if (made === undefined) known.set(of, (made = copy(of)));
  return made;
}

const copyOfRuntime = ({ runtime: { atS, weight }, ...of }: RuntimeForecast): RuntimeForecast =>
  frozen({ ...of, runtime: { atS: atS.slice(), weight: weight.slice() } });

const copyOfCurve = <C extends InterruptionCurve | CapacityCurve>(of: C): C =>
  frozen({ ...of, horizonS: of.horizonS.slice(), pInterrupted: of.pInterrupted.slice() });

const isSolver = (of: unknown): of is Solver => typeof (of as Partial<Solver> | null)?.solve === 'function';

/** The solver, which a policy cannot close. */
const readOnlySolver = (solver: Solver): Solver =>
  Object.freeze<Solver>({
    solve: (model, limits, start) => solver.solve(model, limits, start),
    relax: (model, limits) => solver.relax(model, limits),
    write: (model, format) => solver.write(model, format),
    close: () => Promise.resolve(),
  });

/** A view of a map. Values are made read-only when they are asked for. */
class ReadOnlyMap<K, V> implements ReadonlyMap<K, V> {
  readonly #of: ReadonlyMap<K, V>;
  readonly #safe: (value: V) => V;

  constructor(of: ReadonlyMap<K, V>, safe: (value: V) => V) {
    this.#of = of;
    this.#safe = safe;
    Object.freeze(this);
  }

  get size(): number {
    return this.#of.size;
  }

  get(key: K): V | undefined {
    const value = this.#of.get(key);
    return value === undefined ? value : this.#safe(value);
  }

  has(key: K): boolean {
    return this.#of.has(key);
  }

  keys(): MapIterator<K> {
    return this.#of.keys();
  }

  *values(): MapIterator<V> {
    for (const value of this.#of.values()) yield this.#safe(value);
  }

  *entries(): MapIterator<[K, V]> {
    for (const [key, value] of this.#of) yield [key, this.#safe(value)];
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(told: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) told(value, key, this);
  }
}

const readOnlyMap = <K, V>(of: ReadonlyMap<K, V>, safe: (value: V) => V = frozen): ReadonlyMap<K, V> =>
  new ReadOnlyMap(of, safe);

const isMap = (of: unknown): of is ReadonlyMap<unknown, unknown> => of instanceof Map || of instanceof ReadOnlyMap;

/** A view of the live instances, likewise. */
class ReadOnlyInstances implements Pick<ReadonlyMap<InstanceId, InstanceView>, 'get' | 'values' | 'size'> {
  readonly #of: Snapshot['instances'];

  constructor(of: Snapshot['instances']) {
    this.#of = of;
    Object.freeze(this);
  }

  get size(): number {
    return this.#of.size;
  }

  get(id: InstanceId): InstanceView | undefined {
    return frozen(this.#of.get(id));
  }

  *values(): MapIterator<InstanceView> {
    for (const view of this.#of.values()) yield frozen(view);
  }
}

/** Parts that the cycle has found, or finds for both. */
class ReadOnlyParts extends SnapshotParts {
  readonly #found: SnapshotParts;

  constructor(of: Pick<Snapshot, 'running' | 'instances'>, found: SnapshotParts) {
    super(of);
    this.#found = found;
    Object.freeze(this);
  }

  override get byJob(): ReadonlyMap<JobId, readonly RunningTask[]> {
    return readOnlyMap(this.#found.byJob);
  }

  override get running(): RunningParts {
    return frozen(this.#found.running);
  }

  override get instances(): InstanceParts {
    const { takingTasks, leaving, idle } = this.#found.instances;
    return { takingTasks: readOnlyMap(takingTasks), leaving: frozen(leaving), idle: frozen(idle) };
  }
}
