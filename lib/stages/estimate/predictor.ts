import { invariant } from '../../kernel/errors.ts';
import { raw, seconds, type Seconds } from '../../kernel/units.ts';
import type { Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures, RuntimeHistory } from '../../domain/forecasts.ts';
import { AtomTable } from './atom-table.ts';
import { FEATURES, FEATURE_COUNT, atomTexts, isText, resolveFeatures } from './features.ts';
import { FeatureIndex } from './feature-index.ts';
import { ALPHA, ESTIMATORS, Histories, type Estimator } from './histories.ts';
import { HISTORY_PREFIX, corrupt, decodeHistory, encodeHistory } from './history-codec.ts';

/**
 * JVuPredict (JamaisVu section 3): for each feature of a job the history of earlier runs with the same value, in each
 * history eight estimators, and for each such pair the error of its past predictions. The pair with the lowest NRMSE
 * predicts. As in 3Sigma the answer is a distribution: that of the chosen history.
 * Lifecycle: `import` stored rows, then `predict` and `learn`; `export` hands out the rows changed since the last
 * export, to be written together with the learned observation. A crash before that write loses at most the runs learned
 * since, and never the consistency: rows are whole histories, not increments. One owner, no concurrency.
 * State: at most `maxFeatureValues` histories of 0.5 to 1.6 kB (Histories), their index, the texts in use: 0.3 GB at
 * the default bound were it ever full; a few MB for hundreds of recurring jobs. `predict` is O(features), `learn`
 * O(features x bins): a few microseconds and about ten. Beyond the bound the least used feature-values are forgotten
 * (FeatureIndex).
 */
export class JvuPredict implements RuntimeHistory {
  readonly prefix = HISTORY_PREFIX;
  readonly #maxFeatureValues: number;
  #index: FeatureIndex;
  #atoms = new AtomTable();
  #histories = new Histories();
  readonly #ids = new Int32Array(3 * FEATURE_COUNT);
  /** Per slot: CHANGED since the last export, STORED by an export or an import. */
  #flags = new Uint8Array(0);
  #changed: number[] = [];
  /** Forecasts by slot until the slot learns: within a cycle many tasks ask the same. */
  readonly #forecasts = new Map<number, HistoryForecast>();
  /** Keys of stored feature-values that were forgotten since: exported as empty rows. */
  readonly #forgotten = new Set<string>();

  constructor(options: { readonly maxFeatureValues?: number } = {}) {
    this.#maxFeatureValues = options.maxFeatureValues ?? DEFAULT_MAX_FEATURE_VALUES;
    this.#index = new FeatureIndex(this.#maxFeatureValues);
    this.#reserve();
  }

  /** Feature-values that have a history. */
  get size(): number {
    return this.#index.size;
  }

  /** Null when no job has ever been learned from; then the caller needs a prior. */
  predict(features: JobFeatures): HistoryForecast | null {
    const choice = this.choose(features);
    if (choice === null) return null;
    const known = this.#forecasts.get(choice.slot);
    if (known !== undefined) return known;
    const forecast = this.#forecast(choice);
    if (this.#forecasts.size >= MAX_REMEMBERED) this.#forecasts.clear();
    this.#forecasts.set(choice.slot, forecast);
    return forecast;
  }

  #forecast({ slot, feature, estimator, pointS }: Choice): HistoryForecast {
    const samples = this.#histories.count(slot);
    const nrmse = this.#histories.nrmseOf(slot, estimator);
    const name = ESTIMATORS[estimator] as Estimator;
    const words = invariant(FEATURES[feature], 'the chosen feature is tracked');
    return {
      runtime: this.#distribution(slot, estimator),
      basis: 'history',
      reason: reasonOf(words.words, name, { samples, nrmse, pointS }),
      evidence: {
        feature: words.name,
        estimator: name,
        broad: words.broad,
        samples,
        nrmse,
        pointS: seconds(pointS),
      },
    };
  }

  /** The point prediction alone, without making a distribution. */
  choose(features: JobFeatures): Choice | null {
    this.#resolve(features);
    let chosen = -1;
    let chosenFeature = -1;
    let lowest = Infinity;
    for (let feature = 0; feature < FEATURE_COUNT; feature++) {
      if (this.#ids[feature * 3] === -1) continue;
      const slot = this.#index.find(feature, this.#ids, feature * 3);
      if (slot === -1) continue;
      const score = this.#histories.score(slot);
      if (score < lowest) {
        lowest = score;
        chosen = slot;
        chosenFeature = feature;
      }
    }
    if (chosen === -1) return null;
    const estimator = this.#histories.best(chosen);
    return { slot: chosen, feature: chosenFeature, estimator, pointS: this.#histories.prediction(chosen, estimator) };
  }

  /**
   * Answers of each estimator of one feature; null if the job's feature-value has no history. For baselines that always
   * use one feature and estimator.
   */
  candidates(features: JobFeatures, feature: number): Float64Array | null {
    this.#resolve(features);
    if (this.#ids[feature * 3] === -1) return null;
    const slot = this.#index.find(feature, this.#ids, feature * 3);
    if (slot === -1) return null;
    return Float64Array.from(ESTIMATORS, (_, e) => this.#histories.prediction(slot, e));
  }

  /**
   * A task ran for `runtime` from its beginning to its success, on reference speed. Interrupted, failed, cancelled and
   * timed-out runs are not to be learned from: they only bound the runtime from below. Runtimes under a millisecond
   * count as one millisecond.
   */
  learn(features: JobFeatures, runtime: Seconds): void {
    const runtimeS = Math.max(raw(runtime), MIN_RUNTIME_S);
    if (!Number.isFinite(runtimeS))
      throw new RangeError(`a runtime must be a finite number of seconds, got ${runtimeS}`);
    // Held until the end: making room for one feature-value may forget another that shares a text with it.
    const owner = this.#intern(features.owner);
    const job = this.#intern(features.jobName);
    const stage = this.#intern(features.stage);
    const program = this.#intern(features.program);
    this.#resolve(features);
    for (let feature = 0; feature < FEATURE_COUNT; feature++) {
      if (this.#ids[feature * 3] === -1) continue;
      const found = this.#index.find(feature, this.#ids, feature * 3);
      const slot = found === -1 ? this.#add(feature, this.#ids, feature * 3) : found;
      this.#histories.add(slot, runtimeS);
      this.#forecasts.delete(slot);
      this.#mark(slot);
    }
    this.#atoms.release(owner);
    this.#atoms.release(job);
    this.#atoms.release(stage);
    this.#atoms.release(program);
  }

  /**
   * Rows that changed since the last export: key `history/<feature>/<value>...` and the whole history as text; an empty
   * text means that the feature-value was forgotten. Clears the list of changes; give the keys to `markChanged` when
   * they could not be stored.
   */
  export(): [key: string, value: string][] {
    const rows: [string, string][] = [...this.#forgotten].map((key) => [key, '']);
    for (const slot of this.#changed) {
      // A slot is listed twice when it was forgotten and given to another feature-value meanwhile.
      if ((this.#flags[slot] as number) < CHANGED) continue;
      this.#flags[slot] = STORED;
      rows.push([this.#keyOf(slot), encodeHistory(this.#histories.read(slot))]);
    }
    this.#changed = [];
    this.#forgotten.clear();
    return rows;
  }

  /** Marks rows as not stored after all: the next export has them again. */
  markChanged(keys: Iterable<string>): void {
    for (const key of keys) {
      const { feature, ids } = this.#parse(key, (text) => this.#atoms.find(text));
      const slot = ids.includes(-1) ? -1 : this.#index.find(feature, ids, 0);
      if (slot === -1) this.#forgotten.add(key);
      else this.#mark(slot);
    }
  }

  /** Adds exported rows, replacing those with the same keys. Throws `store.corrupt`. */
  import(rows: Iterable<readonly [key: string, value: string]>): void {
    for (const [key, value] of rows) {
      if (value === '') continue;
      const state = decodeHistory(key, value);
      const held: number[] = [];
      const { feature, ids } = this.#parse(key, (text) => {
        const id = this.#intern(text);
        held.push(id);
        return id;
      });
      const found = this.#index.find(feature, ids, 0);
      const slot = found === -1 ? this.#add(feature, ids, 0) : found;
      this.#histories.write(slot, state);
      this.#forecasts.delete(slot);
      this.#flags[slot] = STORED;
      for (const id of held) this.#atoms.release(id);
    }
  }

  /** `export` and `import` as the engine's memory has them. */
  takeDirty(): ReadonlyMap<string, string> {
    return new Map(this.export());
  }

  /** Replaces all state, stored or not, by these rows. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#index = new FeatureIndex(this.#maxFeatureValues);
    this.#atoms = new AtomTable();
    this.#histories = new Histories();
    this.#flags = new Uint8Array(0);
    this.#changed = [];
    this.#forecasts.clear();
    this.#forgotten.clear();
    this.#reserve();
    this.import(rows);
  }

  #resolve(features: JobFeatures): void {
    resolveFeatures(features, this.#find, this.#ids);
  }

  readonly #find = (text: string): number => this.#atoms.find(text);

  #reserve(): void {
    const { capacity } = this.#index;
    if (capacity === this.#flags.length) return;
    this.#histories.reserve(capacity);
    const flags = new Uint8Array(capacity);
    flags.set(this.#flags);
    this.#flags = flags;
  }

  #mark(slot: number): void {
    const flags = this.#flags[slot] as number;
    if (flags >= CHANGED) return;
    this.#flags[slot] = flags | CHANGED;
    this.#changed.push(slot);
  }

  #intern(text: string): number {
    const id = this.#atoms.intern(text);
    this.#atoms.hold(id);
    return id;
  }

  #add(feature: number, ids: Int32Array, i: number): number {
    const slot = this.#index.add(feature, ids, i, this.#forget);
    this.#reserve();
    this.#histories.clear(slot);
    // Its old row is still in the store: should it be forgotten again, that has to be said again.
    const stored = this.#forgotten.size > 0 && this.#forgotten.delete(this.#keyOf(slot));
    this.#flags[slot] = stored ? STORED : 0;
    FEATURES[feature]?.of.forEach((part, p) => {
      if (isText(part)) this.#atoms.hold(ids[i + p] as number);
    });
    return slot;
  }

  readonly #forget = (slot: number): void => {
    const [feature, ids] = this.#index.key(slot);
    this.#forecasts.delete(slot);
    if (((this.#flags[slot] as number) & STORED) !== 0) this.#forgotten.add(this.#keyOf(slot));
    FEATURES[feature]?.of.forEach((part, p) => {
      if (isText(part)) this.#atoms.release(ids[p] as number);
    });
  };

  #keyOf(slot: number): string {
    const [index, ids] = this.#index.key(slot);
    const feature = invariant(FEATURES[index], 'a slot belongs to a tracked feature');
    return HISTORY_PREFIX + [feature.name, ...atomTexts(feature, ids, this.#atoms).map(encodeURIComponent)].join('/');
  }

  #parse(key: string, idOf: (text: string) => number): { feature: number; ids: Int32Array } {
    const [prefix, name, ...texts] = key.split('/');
    const index = FEATURES.findIndex((f) => f.name === name);
    const feature = FEATURES[index];
    if (`${prefix}/` !== HISTORY_PREFIX || feature === undefined || texts.length !== feature.of.length) {
      throw corrupt(key, 'a key of another form');
    }
    const ids = new Int32Array(3);
    feature.of.forEach((part, i) => {
      const text = decoded(key, texts[i] ?? '');
      ids[i] = isText(part) ? idOf(text) : Number(text);
    });
    return { feature: index, ids };
  }

  /**
   * Distribution of the chosen pair. Its centre is the estimator's point: the bins of the whole history have the
   * average as their mean and the median as their median; the last 20 runs, weighted alike or by ALPHA, have "recent"
   * or "rolling" as their mean. Filtered estimators share their unfiltered sibling's distribution, so their point may
   * lie off its centre: an outlier is unlikely, not impossible, and a deadline has to survive it.
   * Some weight is reserved for unseen running times (withUnseen): without it a single run would look like certainty.
   */
  #distribution(slot: number, estimator: number): Distribution {
    const kind = estimator % 4;
    if (kind < 2) return this.#histories.wholeDistribution(slot);
    return this.#histories.recentDistribution(slot, kind === 2 ? 1 : 1 - ALPHA);
  }
}

/**
 * Bound on feature-values. The finished jobs of the Google trace make 0.4 million, most of them names that come once;
 * keeping a third of them changes the share within a factor of two by 0.1 points.
 */
const DEFAULT_MAX_FEATURE_VALUES = 131_072;
/** Forecasts remembered at once; each is about 1 kB. */
const MAX_REMEMBERED = 1024;
const MIN_RUNTIME_S = 0.001;
const STORED = 1;
const CHANGED = 2;

/** A forecast with the facts behind it. */
export interface HistoryForecast extends RuntimeForecast {
  readonly basis: 'history';
  readonly evidence: NonNullable<RuntimeForecast['evidence']>;
}

export interface Choice {
  readonly slot: number;
  /** Index into FEATURES. */
  readonly feature: number;
  /** Index into ESTIMATORS. */
  readonly estimator: number;
  readonly pointS: number;
}

function reasonOf(words: string, estimator: string, facts: { samples: number; nrmse: number; pointS: number }): string {
  const runs = facts.samples === 1 ? 'the 1 earlier run' : `${facts.samples} earlier runs`;
  const error = Number.isFinite(facts.nrmse) ? `, past error ${Math.round(facts.nrmse * 100)} % of the mean` : '';
  return `${estimator} of ${runs} with the same ${words}: about ${wordsForDuration(seconds(facts.pointS))}${error}`;
}

function decoded(key: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw corrupt(key, 'a key that is not URL-encoded');
  }
}

/** A duration for people. */
export function wordsForDuration(d: Seconds): string {
  const s = raw(d);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 120) return `${oneDecimal(s)} s`;
  if (s < 7200) return `${oneDecimal(s / 60)} min`;
  if (s < 172_800) return `${oneDecimal(s / 3600)} h`;
  return `${oneDecimal(s / 86_400)} days`;
}

const oneDecimal = (x: number): number => Math.round(x * 10) / 10;
