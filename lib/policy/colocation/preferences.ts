/**
 * Which program to begin beside one that runs: preferences, learned by a gradient bandit for each running one (Mary,
 * Hugo and Hugo*, section 4.1.2). Programs are told apart by a key: a template (Mary) or a group of templates (Hugo).
 */

/** Where no preference is known. */
const AT_FIRST = 0;
/** Preferences stay within this, so that no choice ever becomes impossible: e^16 is 9 million to one. */
const MOST = 8;

/** One running program. */
interface Bandit {
  /** Preferences of what was ever chosen beside it. */
  readonly h: Map<string, number>;
  /** Goodness so far: its mean, and the number of measurements. */
  mean: number;
  count: number;
}

export interface BanditRow {
  readonly h: Readonly<Record<string, number>>;
  readonly mean: number;
  readonly count: number;
}

/** Probabilities in proportion to the exponentials. Sum 1. */
export function softmax(preferences: readonly number[]): readonly number[] {
  const weights = preferences.map(Math.exp);
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / sum);
}

export class Preferences {
  readonly #bandits = new Map<string, Bandit>();
  readonly #step: number;
  readonly #window: number;

  /**
   * `step`: the step size gamma of eqs. (2) and (3). `window`: measurements over which the mean of the goodness is
   * taken; older ones fade, as programs change.
   */
  constructor({ step, window }: { readonly step: number; readonly window: number }) {
    this.#step = step;
    this.#window = window;
  }

  /**
   * A measurement: `chosen` began beside `running`, with this goodness. `all`: keys that could have been chosen, the
   * chosen one among them. Eqs. (2) and (3) with the mean of this running program's goodness as the baseline. O(all).
   */
  learn(running: string, chosen: string, goodness: number, all: readonly string[]): void {
    if (!Number.isFinite(goodness)) return;
    const of = this.#of(running);
    of.count = Math.min(this.#window, of.count + 1);
    of.mean += (goodness - of.mean) / of.count;
    const gain = this.#step * (goodness - of.mean);
    if (gain === 0) return;
    const chances = this.chances(running, all);
    all.forEach((key, i) => {
      const p = chances[i] ?? 0;
      const h = of.h.get(key) ?? AT_FIRST;
      const next = key === chosen ? h + gain * (1 - p) : h - gain * p;
      of.h.set(key, Math.max(-MOST, Math.min(MOST, next)));
    });
  }

  preference(running: string, next: string): number {
    return this.#bandits.get(running)?.h.get(next) ?? AT_FIRST;
  }

  /** Chances of each key to be the next beside a running one: softmax of the preferences. Sum 1. O(all). */
  chances(running: string, all: readonly string[]): readonly number[] {
    return softmax(all.map((key) => this.preference(running, key)));
  }

  /** Measurements beside a running program. */
  count(running: string): number {
    return this.#bandits.get(running)?.count ?? 0;
  }

  get running(): readonly string[] {
    return [...this.#bandits.keys()].sort();
  }

  row(running: string): BanditRow | null {
    const of = this.#bandits.get(running);
    return of === undefined ? null : { h: Object.fromEntries(of.h), mean: of.mean, count: of.count };
  }

  restore(running: string, { h, mean, count }: BanditRow): void {
    this.#bandits.set(running, { h: new Map(Object.entries(h)), mean, count });
  }

  /** Forgets a key wherever it stands. O(keys). */
  forget(key: string): void {
    this.#bandits.delete(key);
    for (const { h } of this.#bandits.values()) h.delete(key);
  }

  #of(running: string): Bandit {
    let of = this.#bandits.get(running);
    if (of === undefined) this.#bandits.set(running, (of = { h: new Map(), mean: 0, count: 0 }));
    return of;
  }
}
