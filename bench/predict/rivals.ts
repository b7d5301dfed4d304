/** Simple predictors that a learned one must beat, as they are used in schedulers today. */
import type { JobFeatures } from '../../lib/domain/forecasts.ts';
import { raw } from '../../lib/kernel/units.ts';
import { within } from './scores.ts';

type KeyOf = (f: JobFeatures) => string;

/** A rival: what it predicts from the earlier runs with the same key, oldest first. */
interface Rival {
  readonly name: string;
  readonly keyOf: KeyOf;
  readonly predict: (earlierS: readonly number[]) => number;
}

const byOwner: KeyOf = (f) => f.owner;
const byProgram: KeyOf = (f) => f.program;
const byOwnerAndProgram: KeyOf = (f) => `${f.owner}/${f.program}`;
const byJob: KeyOf = (f) => `${f.jobName}/${f.stage}`;

const last = (s: readonly number[]): number => s.at(-1) ?? NaN;
/** Tsafrir, Etsion and Feitelson, TPDS 18, 2007. */
const lastTwo = (s: readonly number[]): number => ((s.at(-1) ?? NaN) + (s.at(-2) ?? s.at(-1) ?? NaN)) / 2;
/** Of the last MEDIAN_OF runs: a median of all costs more than it gains. */
const MEDIAN_OF = 101;
const median = (s: readonly number[]): number => {
  const sorted = s.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
};

const RIVALS: readonly Rival[] = [
  { name: 'last run of owner and program', keyOf: byOwnerAndProgram, predict: last },
  { name: 'last run of the owner', keyOf: byOwner, predict: last },
  { name: 'last two of the owner', keyOf: byOwner, predict: lastTwo },
  { name: 'median of the job name', keyOf: byJob, predict: median },
  { name: 'median of owner and program', keyOf: byOwnerAndProgram, predict: median },
  { name: 'median of the program', keyOf: byProgram, predict: median },
  { name: 'median of the owner', keyOf: byOwner, predict: median },
  { name: 'median of all', keyOf: () => '', predict: median },
];

export interface RivalScore {
  readonly name: string;
  readonly within2x: number;
  /** Share of runs with no earlier run of the same key; they count as missed. */
  readonly unknown: number;
}

/** All rivals on the same events. Predictions of medians are remade only after their key has learned. */
export class Rivals {
  readonly #of = RIVALS.map((rival) => ({
    rival,
    earlier: new Map<string, number[]>(),
    made: new Map<string, number>(),
    hits: 0,
    unknown: 0,
  }));
  #guessHits = 0;
  #guesses = 0;
  #scored = 0;

  learn(features: JobFeatures, runtimeS: number): void {
    for (const { rival, earlier, made } of this.#of) {
      const key = rival.keyOf(features);
      const of = earlier.get(key);
      made.delete(key);
      if (of === undefined) earlier.set(key, [runtimeS]);
      else if (of.push(runtimeS) > MEDIAN_OF) of.shift();
    }
  }

  score(features: JobFeatures, truthS: number): void {
    this.#scored++;
    for (const of of this.#of) {
      const key = of.rival.keyOf(features);
      const earlier = of.earlier.get(key);
      if (earlier === undefined) {
        of.unknown++;
        continue;
      }
      let predicted = of.made.get(key);
      if (predicted === undefined) of.made.set(key, (predicted = of.rival.predict(earlier)));
      if (within(predicted, truthS, 2)) of.hits++;
    }
    if (features.expectedRuntimeS === undefined) return;
    this.#guesses++;
    if (within(raw(features.expectedRuntimeS), truthS, 2)) this.#guessHits++;
  }

  /** Best first. */
  scores(): readonly RivalScore[] {
    const n = Math.max(1, this.#scored);
    const all = this.#of.map(({ rival, hits, unknown }) => ({
      name: rival.name,
      within2x: hits / n,
      unknown: unknown / n,
    }));
    if (this.#guesses > 0) {
      all.push({ name: 'expectedRuntime', within2x: this.#guessHits / n, unknown: 1 - this.#guesses / n });
    }
    return all.sort((a, b) => b.within2x - a.within2x);
  }
}
