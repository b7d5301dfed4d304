/**
 * Hit rates of features: the share of predictions within a factor of two, by lookup, age of the history and pick, over
 * all histories; and mean errors likewise. They are the prior of a history that has predicted little itself, so that a
 * feature which tells nothing here (a label that varies, a job name that is shared) loses to one that does.
 */
import { z } from 'zod';
import { cappedError, isHit, PICK_COUNT } from './recent-runs.ts';

/**
 * Weight of that prior, in predictions: half of the weight that a history's own record can reach. 5 and 10 cost 0.2 and
 * 0.1 points within 2x on the first half of the Google trace.
 */
export const HIT_PRIOR = 20;
/** Weight of a prediction relative to the next one of the same lookup and age. */
const DECAY = 0.999;
/** Prior of the prior: as many hits as misses. */
const UNKNOWN = 2;

/** Runs from which a history is of each age. */
const AGES = [1, 2, 3, 5, 10] as const;
const AGE_BY_RUNS = Int8Array.from({ length: 11 }, (_, runs) => AGES.findLastIndex((from) => runs >= from));
/** Layout of a tally: decayed numbers. */
const JUDGED = 0;
const ERROR = 1;
const HITS = 2;
const STRIDE = HITS + PICK_COUNT;
/** Error of which nothing is known: a factor of 1.5. */
const UNKNOWN_ERROR = 0.4;

/** Hits expected of guesses of which none is known: nine in ten (prior.ts), with the weight of ten. */
const GUESS_HITS = 0.9;
const GUESS_WEIGHT = 10;
const GUESS_DECAY = 0.99;

const tallies = z.strictObject({
  v: z.literal(1),
  g: z.tuple([z.number().nonnegative(), z.number().nonnegative()]),
  t: z.array(z.number().nonnegative()),
});

export class HitRates {
  readonly #tallies: Float64Array;
  readonly #guesses = { hits: 0, judged: 0 };

  constructor(lookups: number) {
    this.#tallies = new Float64Array(lookups * AGES.length * STRIDE);
  }

  /** Expected hit rate of a pick of histories that have `runs` runs. */
  of(lookup: number, runs: number, pick: number): number {
    const at = placeOf(lookup, runs);
    const judged = this.#tallies[at + JUDGED] as number;
    return ((this.#tallies[at + HITS + pick] as number) + UNKNOWN / 2) / (judged + UNKNOWN);
  }

  /** Expected error of their centre, as logarithm. */
  errorOf(lookup: number, runs: number): number {
    const at = placeOf(lookup, runs);
    const judged = this.#tallies[at + JUDGED] as number;
    return ((this.#tallies[at + ERROR] as number) + UNKNOWN * UNKNOWN_ERROR) / (judged + UNKNOWN);
  }

  /** The next run of a history with `runs` runs, for which each pick predicted one of `predicted`. */
  judge(lookup: number, runs: number, logS: number, predicted: readonly number[]): void {
    const at = placeOf(lookup, runs);
    const t = this.#tallies;
    t[at + JUDGED] = (t[at + JUDGED] as number) * DECAY + 1;
    t[at + ERROR] = (t[at + ERROR] as number) * DECAY + cappedError(predicted[0] ?? NaN, logS);
    for (let pick = 0; pick < PICK_COUNT; pick++) {
      const hit = isHit(predicted[pick] ?? NaN, logS) ? 1 : 0;
      t[at + HITS + pick] = (t[at + HITS + pick] as number) * DECAY + hit;
    }
  }

  /** Expected hit rate of a guess of an owner who has not guessed before. */
  ofGuesses(): number {
    return (this.#guesses.hits + GUESS_HITS * GUESS_WEIGHT) / (this.#guesses.judged + GUESS_WEIGHT);
  }

  judgeGuess(isRight: boolean): void {
    this.#guesses.hits = this.#guesses.hits * GUESS_DECAY + (isRight ? 1 : 0);
    this.#guesses.judged = this.#guesses.judged * GUESS_DECAY + 1;
  }

  encode(): string {
    return JSON.stringify({ v: 1, g: [this.#guesses.hits, this.#guesses.judged], t: [...this.#tallies] });
  }

  /** False if the text is not what `encode` writes. Tallies of other features are left out: they are only priors. */
  decode(text: string): boolean {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return false;
    }
    const parsed = tallies.safeParse(json);
    if (!parsed.success) return false;
    const { g, t } = parsed.data;
    [this.#guesses.hits, this.#guesses.judged] = g;
    if (t.length === this.#tallies.length) this.#tallies.set(t);
    return true;
  }
}

const placeOf = (lookup: number, runs: number): number =>
  (lookup * AGES.length + (AGE_BY_RUNS[Math.min(runs, 10)] as number)) * STRIDE;
