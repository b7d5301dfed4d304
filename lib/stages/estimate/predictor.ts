import { invariant } from '../../kernel/errors.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { raw, seconds, type Seconds } from '../../kernel/units.ts';
import type { Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures, RuntimeHistory } from '../../domain/forecasts.ts';
import { FeatureSet, PAPER_FEATURES } from './features.ts';
import { FeatureValues } from './feature-values.ts';
import { ALPHA, ESTIMATORS, Histories, type Estimator } from './histories.ts';
import { HISTORY_PREFIX, decodeHistory, encodeHistory } from './history-codec.ts';

const FEATURES = new FeatureSet(PAPER_FEATURES);

/**
 * JVuPredict (JamaisVu section 3): for each feature of a job the history of earlier runs with the same value, in each
 * history eight estimators, and for each such pair the error of its past predictions. The pair with the lowest NRMSE
 * predicts. As in 3Sigma the answer is a distribution: that of the chosen history.
 * Lifecycle, rows and crashes: FeatureValues.
 * State: at most `maxFeatureValues` histories of 0.5 to 1.6 kB (Histories), their index, the texts in use: 0.3 GB at
 * the default bound were it ever full; a few MB for hundreds of recurring jobs. `predict` is O(features), `learn`
 * O(features x bins): a few microseconds and about ten.
 */
export class JvuPredict implements RuntimeHistory {
  readonly prefix: string;
  readonly #maxFeatureValues: number;
  #histories = new Histories();
  #values: FeatureValues;
  /** Forecasts by slot until the slot learns: within a cycle many tasks ask the same. */
  readonly #forecasts = new Map<number, HistoryForecast>();

  /** `prefix`: beginning of its rows. */
  constructor(options: { readonly maxFeatureValues?: number; readonly prefix?: string } = {}) {
    this.prefix = options.prefix ?? HISTORY_PREFIX;
    this.#maxFeatureValues = options.maxFeatureValues ?? DEFAULT_MAX_FEATURE_VALUES;
    this.#values = this.#open();
  }

  #open(): FeatureValues {
    const histories = this.#histories;
    const slots = {
      reserve: (count: number) => histories.reserve(count),
      clear: (slot: number) => histories.clear(slot),
      read: (slot: number) => encodeHistory(histories.read(slot)),
      write: (slot: number, key: string, text: string) => histories.write(slot, decodeHistory(key, text)),
      changing: (slot: number) => void this.#forecasts.delete(slot),
    };
    return new FeatureValues(FEATURES, { prefix: this.prefix, most: this.#maxFeatureValues, slots });
  }

  /** Feature-values that have a history. */
  get size(): number {
    return this.#values.size;
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
    const words = invariant(FEATURES.features[feature], 'the chosen feature is tracked');
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
    this.#values.resolve(features);
    let chosen = -1;
    let chosenFeature = -1;
    let lowest = Infinity;
    for (let feature = 0; feature < FEATURES.lookups; feature++) {
      const slot = this.#values.find(feature);
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
    this.#values.resolve(features);
    const slot = this.#values.find(feature);
    if (slot === -1) return null;
    return Float64Array.from(ESTIMATORS, (_, e) => this.#histories.prediction(slot, e));
  }

  /**
   * A task ran for `runtime` from its beginning to its success, on reference speed. Interrupted, failed, cancelled and
   * timed-out runs are not to be learned from: they only bound the runtime from below. Runtimes under a millisecond
   * count as one millisecond.
   */
  learn(features: JobFeatures, runtime: Seconds): void {
    const runtimeS = learnable(runtime);
    this.#values.learn(features, (_, slot) => this.#histories.add(slot, runtimeS));
  }

  /** `FeatureValues.export`. */
  export(): [key: string, value: string][] {
    return this.#values.export();
  }

  markChanged(keys: Iterable<string>): void {
    this.#values.markChanged(keys);
  }

  import(rows: Iterable<readonly [key: string, value: string]>): void {
    this.#values.import(rows);
  }

  /** `export` and `import` as the engine's memory has them. */
  takeDirty(): ReadonlyMap<string, string> {
    return new Map(this.export());
  }

  /** Replaces all state, stored or not, by these rows. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#histories = new Histories();
    this.#forecasts.clear();
    this.#values = this.#open();
    this.import(rows);
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

/** Seconds to learn, at least a millisecond. Throws RangeError for a runtime that is no number. */
export function learnable(runtime: Seconds): number {
  const runtimeS = Math.max(raw(runtime), MIN_RUNTIME_S);
  if (Number.isFinite(runtimeS)) return runtimeS;
  throw new RangeError(`a runtime must be a finite number of seconds, got ${runtimeS}`);
}

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
