import { invariant } from '../../kernel/errors.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { raw, seconds, type Seconds } from '../../kernel/units.ts';
import { Doubles } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures, RuntimeHistory } from '../../domain/forecasts.ts';
import { FeatureSet, RECURRING_FEATURES } from './features.ts';
import { FeatureValues } from './feature-values.ts';
import { corrupt } from './history-codec.ts';
import { HitRates, HIT_PRIOR } from './hit-rates.ts';
import { learnable } from './predictor.ts';
import { blend, hintDistribution } from './prior.ts';
import { decodeRecent, encodeRecent, RECENT_PREFIX, TALLIES_KEY } from './recent-codec.ts';
import { isHit, PICK_COUNT, PICKS, RecentRuns, RUNS, type RecentState } from './recent-runs.ts';

const SET = new FeatureSet(RECURRING_FEATURES);
const IS_RELATIVE = Array.from(SET.featureOf, (feature) => RECURRING_FEATURES[feature]?.isRelative ?? false);
/** Relative features come last. */
const FIRST_RELATIVE = IS_RELATIVE.indexOf(true);
const GUESSES_OF_OWNER = SET.featureOf.indexOf(RECURRING_FEATURES.findIndex((f) => f.name === 'guesses:owner'));

/**
 * A last run or a broad history must hit this much more often than the centre of a specific history: among many
 * candidates some seem better by luck (for last runs 0.5 points within 2x on the first half of the Google trace).
 */
const MARGIN = 0.05;
/** Candidates' handicaps, by lookup and pick. */
const HANDICAP = Array.from(SET.featureOf, (feature) => {
  const isBroad = RECURRING_FEATURES[feature]?.broad ?? false;
  return PICKS.map((pick) => (pick === 'last' ? MARGIN : 0) + (isBroad ? MARGIN : 0));
});
/** Weight, in predictions, of the error that is usual for a feature and age. */
const ERROR_PRIOR = 3;
/** Weight of a first guess, in runs of the job itself: one run weighs as much as it. */
const GUESS_RUNS = 1;
/** Share of right guesses from which a guess tells more than what is known of all jobs. */
const TRUSTED = 0.5;
/** Runs of the job itself from which a first guess says nothing more. */
const ENOUGH_RUNS = 10;
/** A broad history says enough of a job where it has hit this often, in at least PROVEN_RUNS predictions. */
const PROVEN = 0.8;
const PROVEN_RUNS = 3;
/** Same bound as JvuPredict's: 40 MB if it were ever full. */
const MAX_FEATURE_VALUES = 131_072;
/** Slots whose forecasts are remembered; each forecast is about 1 kB. */
const MAX_REMEMBERED = 1024;

/** The best candidate. `score` is its expected hit rate. */
interface Choice {
  readonly lookup: number;
  readonly slot: number;
  readonly pick: number;
  readonly score: number;
}

/**
 * Running times of recurring jobs: for each feature of a job the latest runs with the same value, in each history two
 * picks, and for each of them the recency-weighted share of past predictions within a factor of two. The pair with the
 * highest share predicts (the scheme of JamaisVu section 3.3, which takes the lowest NRMSE: a few outliers rule that).
 * A young history borrows the hit rate that histories of its feature and age had so far (HitRates).
 *
 * Guesses of users compete as well: their histories are of running time over guess, so bias and spread are learned by
 * owner. The best of them and the best other history are compared by their mean errors: both mostly hit, and the
 * sharper one is wanted. An owner's first guess counts as the guesses of all did, and is blended with what is known.
 *
 * Lifecycle, rows and crashes: FeatureValues; the hit rates of features are one more row. Memory: at most
 * `maxFeatureValues` slots of 0.3 kB. `predict` is O(features), `learn` O(features x RUNS).
 */
export class RecurringRuns implements RuntimeHistory {
  readonly #maxFeatureValues: number;
  #runs = new RecentRuns();
  #values: FeatureValues;
  #rates = new HitRates(SET.lookups);
  #isTallyStored = true;
  /** By slot, then by guess and pick, until the slot learns. */
  readonly #forecasts = new Map<number, Map<number, RuntimeForecast>>();
  readonly #guesses = new Map<number, RuntimeForecast>();
  readonly #doubles = new Doubles();

  constructor({ maxFeatureValues = MAX_FEATURE_VALUES }: { readonly maxFeatureValues?: number } = {}) {
    this.#maxFeatureValues = maxFeatureValues;
    this.#values = this.#open();
  }

  #open(): FeatureValues {
    const runs = this.#runs;
    const slots = {
      reserve: (count: number) => runs.reserve(count),
      clear: (slot: number) => runs.clear(slot),
      read: (slot: number) => encodeRecent(runs.read(slot)),
      write: (slot: number, key: string, text: string) => runs.write(slot, decodeRecent(key, text)),
      changing: (slot: number) => void this.#forecasts.delete(slot),
    };
    return new FeatureValues(SET, { prefix: RECENT_PREFIX, most: this.#maxFeatureValues, slots });
  }

  /** Feature-values that have a history. */
  get size(): number {
    return this.#values.size;
  }

  /** Null if nothing was learned and the user guessed nothing: the caller needs a prior. */
  predict(features: JobFeatures): RuntimeForecast | null {
    const guess = features.expectedRuntimeS;
    this.#values.resolve(features);
    const best = this.#best(false);
    if (guess === undefined) return best === null ? null : this.#forecast(best, 0);
    const judged = this.#best(true);
    if (judged !== null && this.#values.find(GUESSES_OF_OWNER) !== -1) {
      const isSharper = best === null || this.#meanError(judged) < this.#meanError(best);
      return this.#forecast(isSharper ? judged : best, raw(guess));
    }
    return this.#firstGuess(guess, best, judged);
  }

  /** Best history of running times, or of running times relative to the guess. */
  #best(isRelative: boolean): Choice | null {
    let best: { lookup: number; slot: number; pick: number } | null = null;
    let highest = -Infinity;
    for (let lookup = isRelative ? FIRST_RELATIVE : 0; lookup < (isRelative ? SET.lookups : FIRST_RELATIVE); lookup++) {
      const slot = this.#values.find(lookup);
      if (slot === -1) continue;
      const judged = this.#runs.judged(slot);
      const runs = this.#runs.count(slot);
      for (let pick = 0; pick < PICK_COUNT; pick++) {
        const prior = this.#rates.of(lookup, runs, pick);
        const score = (this.#runs.hits(slot, pick) + HIT_PRIOR * prior) / (judged + HIT_PRIOR);
        const fair = score - (HANDICAP[lookup]?.[pick] ?? 0);
        if (fair > highest + 1e-9) {
          highest = fair;
          best = { lookup, slot, pick };
        }
      }
    }
    return best === null ? null : { ...best, score: highest };
  }

  /** Expected error of the centre. */
  #meanError({ lookup, slot }: Choice): number {
    const prior = this.#rates.errorOf(lookup, this.#runs.count(slot));
    return (this.#runs.error(slot) + ERROR_PRIOR * prior) / (this.#runs.judged(slot) + ERROR_PRIOR);
  }

  #forecast({ lookup, slot, pick }: Choice, guessS: number): RuntimeForecast {
    const isRelative = IS_RELATIVE[lookup] as boolean;
    const key = isRelative ? guessS * PICK_COUNT + pick : -1 - pick;
    return this.#remembered(slot, key, () => {
      const offset = isRelative ? Math.log(guessS) : 0;
      const feature = invariant(SET.features[SET.featureOf[lookup] as number], 'a lookup is of a tracked feature');
      const samples = this.#runs.count(slot);
      const judged = this.#runs.judged(slot);
      const hitRate = judged === 0 ? undefined : this.#runs.hits(slot, pick) / judged;
      const pointS = Math.exp(this.#runs.prediction(slot, pick) + offset);
      const isProven = judged >= PROVEN_RUNS && (hitRate ?? 0) >= PROVEN;
      return {
        runtime: this.#runs.distribution(slot, pick, offset),
        basis: isRelative ? 'hint' : 'history',
        reason: reasonOf(feature.words, { pick, samples, hitRate, pointS }),
        evidence: {
          feature: feature.name,
          estimator: PICKS[pick] ?? '',
          broad: feature.broad && !isProven,
          samples,
          ...(hitRate !== undefined && { hitRate }),
          worthRuns: 1 + (pick === 0 ? Math.min(samples, RUNS) : Math.min(samples, WORTH_OF_LAST)),
          pointS: seconds(pointS),
        },
      };
    });
  }

  /**
   * A guess of an owner of whom no guess was judged yet: as guesses of others were (`judged`), else as it stands. It is
   * blended with the owner's history of the job by number of runs, and with any other history by the odds that either
   * hits. The history of all jobs is left out where there is a guess, unless guesses mostly miss.
   */
  #firstGuess(guess: Seconds, best: Choice | null, judged: Choice | null): RuntimeForecast {
    const score = Math.max(this.#rates.ofGuesses(), judged?.score ?? 0);
    const isTrusted = judged === null || this.#rates.ofGuesses() === score;
    const alone = isTrusted ? this.#guessAlone(guess) : this.#forecast(judged, raw(guess));
    const feature = best === null ? undefined : SET.features[SET.featureOf[best.lookup] as number];
    if (best === null || feature === undefined) return alone;
    const isOfOwner = feature.of.includes('owner');
    if (feature.broad && !isOfOwner && score >= TRUSTED) return alone;
    const history = this.#forecast(best, 0);
    const runs = this.#runs.count(best.slot);
    const isOwn = isOfOwner && history.evidence?.broad === false;
    if (isOwn && runs >= ENOUGH_RUNS) return history;
    const share = isOwn ? runs / (runs + GUESS_RUNS) : odds(best.score) / (odds(best.score) + odds(score));
    // In steps of 5 %, so that a forecast stays the same while the hit rates hardly move.
    const weight = Math.round(share * 20) / 20;
    const key = (isTrusted ? -10 : -20) - raw(guess) - weight;
    return this.#remembered(best.slot, key, () => ({
      ...(weight >= 0.5 ? history : alone),
      runtime: blend(history.runtime, weight, alone.runtime, this.#doubles),
      reason: `${alone.reason}; weighs ${Math.round((1 - weight) * 100)} % beside the ${history.reason}`,
    }));
  }

  #guessAlone(guess: Seconds): RuntimeForecast {
    let forecast = this.#guesses.get(raw(guess));
    if (forecast !== undefined) return forecast;
    const reason = `expectedRuntime of ${wordsForDuration(guess)} from the job file, taken as right within a factor of two`;
    forecast = { runtime: hintDistribution(guess), basis: 'hint', reason };
    if (this.#guesses.size >= MAX_REMEMBERED) this.#guesses.clear();
    this.#guesses.set(raw(guess), forecast);
    return forecast;
  }

  #remembered(slot: number, key: number, make: () => RuntimeForecast): RuntimeForecast {
    let bySlot = this.#forecasts.get(slot);
    let forecast = bySlot?.get(key);
    if (forecast !== undefined) return forecast;
    forecast = make();
    if (bySlot === undefined || bySlot.size >= MAX_REMEMBERED) {
      if (this.#forecasts.size >= MAX_REMEMBERED) this.#forecasts.clear();
      this.#forecasts.set(slot, (bySlot = new Map<number, RuntimeForecast>()));
    }
    bySlot.set(key, forecast);
    return forecast;
  }

  /** A task ran for `runtime` from its beginning to its success, on reference speed. See `JvuPredict.learn`. */
  learn(features: JobFeatures, runtime: Seconds): void {
    const logS = Math.log(learnable(runtime));
    const guess = features.expectedRuntimeS;
    const relative = guess === undefined ? 0 : logS - Math.log(raw(guess));
    if (guess !== undefined) this.#rates.judgeGuess(isHit(0, relative));
    this.#values.learn(features, (lookup, slot) => {
      const value = (IS_RELATIVE[lookup] as boolean) ? relative : logS;
      const runs = this.#runs.count(slot);
      if (runs > 0) {
        const [centre, last] = [this.#runs.prediction(slot, 0), this.#runs.prediction(slot, 1)];
        this.#rates.judge(lookup, runs, value, [centre, last]);
      }
      this.#runs.add(slot, value);
    });
    this.#isTallyStored = false;
  }

  /** Rows that changed since the last call. */
  takeDirty(): ReadonlyMap<string, string> {
    const rows = new Map(this.#values.export());
    if (!this.#isTallyStored) rows.set(TALLIES_KEY, this.#rates.encode());
    this.#isTallyStored = true;
    return rows;
  }

  /** Replaces all state, stored or not, by these rows. Throws `store.corrupt`. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#runs = new RecentRuns();
    this.#forecasts.clear();
    this.#values = this.#open();
    this.#values.import([...rows].filter(([key]) => key !== TALLIES_KEY));
    this.#rates = new HitRates(SET.lookups);
    const tallies = rows.get(TALLIES_KEY) ?? '';
    if (tallies !== '' && !this.#rates.decode(tallies)) throw corrupt(TALLIES_KEY, tallies.slice(0, 100));
    this.#isTallyStored = true;
  }

  /** Adds histories from another learner, by key without prefix. They count as changed. */
  adopt(histories: Iterable<readonly [key: string, state: RecentState]>): void {
    const rows = [...histories].map(([key, state]) => [RECENT_PREFIX + key, encodeRecent(state)] as const);
    this.#values.import(rows);
    this.#values.markChanged(rows.map(([key]) => key));
  }
}

/** Runs that the weights of a last run are worth: Kish's number of 1, 1/2, 1/4 .. */
const WORTH_OF_LAST = 3;

const odds = (p: number): number => p / (1 - Math.min(p, 0.99));

function reasonOf(
  words: string,
  facts: {
    readonly pick: number;
    readonly samples: number;
    readonly hitRate: number | undefined;
    readonly pointS: number;
  },
): string {
  const { samples, hitRate } = facts;
  const runs =
    facts.pick === 1
      ? `last of ${samples} earlier runs`
      : samples === 1
        ? 'the 1 earlier run'
        : `${samples} earlier runs`;
  const record =
    hitRate === undefined ? '' : `, ${Math.round(hitRate * 100)} % of past forecasts within a factor of two`;
  return `${runs} with the same ${words}: about ${wordsForDuration(seconds(facts.pointS))}${record}`;
}
