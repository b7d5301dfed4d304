/**
 * Solved programs, kept between decisions. Terms are rounded to few classes, so that tasks share programs, and a task
 * uses the same one for hours: a program for more work than is left answers for less. Bounded by MOST_VALUES numbers;
 * the least recently used go first.
 */
import { slot, type DecisionMemory } from '../memory.ts';
import { DeadlineProgram, type Terms } from './program.ts';

/** 32 MB. */
const MOST_VALUES = 4_000_000;
/** Prices are rounded to twentieths of on-demand, lateness to powers of 2. */
const PRICES = 20;
/** Lateness that is never worth it, hours of on-demand. More would be lost in rounding. */
export const NEVER_LATE_H = 1e4;
const WORK_CLASSES_H = [2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024];
const SLACK_CLASSES_H = [2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512];

const PROGRAMS = slot(() => new Programs());

/** The program for terms, perhaps solved before. O(1), or 2 to 20 ms where it is solved now. */
export const programFor = (memory: DecisionMemory, terms: Terms): DeadlineProgram => memory.of(PROGRAMS).for(terms);

class Programs {
  readonly #solved = new Map<string, DeadlineProgram>();
  #values = 0;

  for(asked: Terms): DeadlineProgram {
    const terms = classOf(asked);
    const key = Object.values(terms).join(' ');
    let program = this.#solved.get(key);
    if (program === undefined) {
      program = new DeadlineProgram(terms);
      this.#values += program.size;
    } else this.#solved.delete(key);
    this.#solved.set(key, program);
    for (const [oldest, { size }] of this.#solved) {
      if (this.#values <= MOST_VALUES || oldest === key) break;
      this.#solved.delete(oldest);
      this.#values -= size;
    }
    return program;
  }
}

/** In one order of keys, which the key of a class is made of. */
const classOf = (of: Terms): Terms => ({
  mostWorkH: smallestOver(of.mostWorkH, WORK_CLASSES_H),
  mostSlackH: smallestOver(of.mostSlackH, SLACK_CLASSES_H),
  price: Math.max(1, Math.min(PRICES, Math.round(of.price * PRICES))) / PRICES,
  takesH: of.takesH,
  paidH: of.paidH,
  late: of.late >= NEVER_LATE_H ? NEVER_LATE_H : 2 ** Math.round(Math.log2(Math.max(1, of.late))),
  upFactor: of.upFactor,
  pools: of.pools,
});

const smallestOver = (hours: number, classes: readonly number[]): number =>
  classes.find((most) => most >= hours) ?? classes.at(-1) ?? hours;
