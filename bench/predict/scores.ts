/** How good forecasts were: points, and distributions on the log scale. */
import type { Distribution } from '../../lib/domain/distribution.ts';

/** Runtimes of 0 s count as 1 ms. */
const LEAST_S = 0.001;

/** JamaisVu section 6.2: between -50 % and +100 % of the truth is within a factor of two. */
export function within(predictedS: number, truthS: number, factor: number): boolean {
  const truth = Math.max(truthS, LEAST_S);
  return predictedS >= truth / factor && predictedS <= truth * factor;
}

/** Levels of the pinball loss: 0.05, 0.10 .. 0.95. */
const LEVELS = Float64Array.from({ length: 19 }, (_, i) => (i + 1) / 20);

/** Mean scores over runs. */
export class Scores {
  runs = 0;
  #within2x = 0;
  #within10Percent = 0;
  #within10x = 0;
  #forecasts = 0;
  #pinball = 0;
  #covered = 0;
  readonly #pit = new Float64Array(10);

  /** A run without a forecast has NaN for its point, and no distribution: it counts as missed. */
  add(pointS: number, d: Distribution | null, truthS: number): void {
    this.runs++;
    this.#within2x += within(pointS, truthS, 2) ? 1 : 0;
    this.#within10x += within(pointS, truthS, 10) ? 1 : 0;
    if (d !== null) this.#judge(d, Math.max(truthS, LEAST_S));
  }

  #judge({ atS, weight }: Distribution, truthS: number): void {
    this.#forecasts++;
    const truth = Math.log(truthS);
    let mass = 0;
    let below = 0;
    let level = 0;
    let loss = 0;
    let medianS = NaN;
    for (let i = 0; i < atS.length; i++) {
      const s = atS[i] as number;
      const w = weight[i] as number;
      below += s < truthS ? w : s === truthS ? w / 2 : 0;
      mass += w;
      for (; level < LEVELS.length && (mass >= (LEVELS[level] as number) - 1e-9 || i + 1 === atS.length); level++) {
        const p = LEVELS[level] as number;
        const miss = truth - Math.log(s);
        loss += Math.max(p * miss, (p - 1) * miss);
        if (2 * level + 1 === LEVELS.length) medianS = s;
        if (level === LEVELS.length - 1) this.#covered += truthS <= s ? 1 : 0;
      }
    }
    this.#pinball += loss / LEVELS.length;
    this.#within10Percent += Math.abs(medianS - truthS) <= 0.1 * truthS ? 1 : 0;
    const decile = Math.min(9, Math.floor(10 * below));
    this.#pit[decile] = (this.#pit[decile] ?? 0) + 1;
  }

  /** Shares of all runs: points within a factor, medians within a tenth. */
  get within2x(): number {
    return this.#within2x / Math.max(1, this.runs);
  }
  get within10Percent(): number {
    return this.#within10Percent / Math.max(1, this.runs);
  }
  get within10x(): number {
    return this.#within10x / Math.max(1, this.runs);
  }

  /** Of runs with a distribution: mean pinball loss of ln(seconds) over LEVELS. */
  get pinball(): number {
    return this.#pinball / Math.max(1, this.#forecasts);
  }
  /** Share of truths at or below the 95 % quantile. */
  get covered(): number {
    return this.#covered / Math.max(1, this.#forecasts);
  }
  /** Probability integral transform: share of truths by decile of their forecast. Flat: a tenth each. */
  get pit(): readonly number[] {
    return [...this.#pit].map((n) => n / Math.max(1, this.#forecasts));
  }
}
