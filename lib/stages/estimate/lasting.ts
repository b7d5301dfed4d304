/**
 * Elapsed time of each running task, in steps. Every cycle goes through all of them, so the inputs stand in columns:
 * the records lie all over the memory, and reading a thousand of them takes as long as computing with a hundred
 * thousand numbers.
 * Columns stay valid because a running task's record never changes: it is replaced, and nothing in it depends on the
 * time (domain/snapshot.ts).
 */
import type { RunningTask } from '../../domain/snapshot.ts';
import { raw, ZERO_S, type EpochMs } from '../../kernel/units.ts';

/** Bounds are rounded down to steps of a fifth, from half a minute on: start-up and cycles tell no less apart. */
const LEAST_S = 30;
const STEP = 1.2;
const LOG_STEP = Math.log(STEP);
/** A week; longer times count as a week. */
export const STEPS = Math.ceil(Math.log((7 * 86_400) / LEAST_S) / LOG_STEP);
export const STEPS_S = Float64Array.from({ length: STEPS }, (_, k) => LEAST_S * STEP ** k);
/** The same but for the rounding of times, which are to reach a step that they are equal to. */
const REACHED_S = STEPS_S.map((s) => s * (1 - 1e-10));

/** Last step not above `s`, searched from `step` on; -1: none. */
export function lastStepAt(s: number, step = -1): number {
  let at = step;
  while (at >= 0 && s < (REACHED_S[at] as number)) at--;
  while (at + 1 < STEPS && s >= (REACHED_S[at + 1] as number)) at++;
  return at;
}

/**
 * Doubles of a row: start time (ms; Infinity before the start), then seconds read, resumed from and run before, and the
 * slowdown.
 */
const FACTS = 5;

/** Running tasks, row by row as in the snapshot, each with a value of its caller. */
export class Lasting<T> {
  #running: readonly RunningTask[] = [];
  readonly #with: (T | null)[] = [];
  #facts = new Float64Array(0);
  /** Step of each row at the last visit. */
  #steps = new Int8Array(0);

  /**
   * Replaces the rows by these tasks. `of` is called for new tasks, and again for those it answered with null.
   * Remaining tasks keep their relative order; otherwise they count as new. O(running), a comparison each, + O(new).
   */
  follow(running: readonly RunningTask[], of: (r: RunningTask) => T | null): void {
    const before = this.#running;
    this.#reserve(running.length);
    let from = 0;
    let to = 0;
    while (from < before.length && to < running.length) {
      const same = this.#sameFrom(from, running, to);
      this.#move(from, to, same);
      from += same;
      to += same;
      const is = running[to];
      // A task with a new record is still there; one without a record is gone.
      if (is !== undefined && is.attempt.id === before[from]?.attempt.id) this.#put(to++, is, of);
      from++;
    }
    for (; to < running.length; to++) this.#put(to, running[to] as RunningTask, of);
    this.#with.length = running.length;
    this.#running = running;
  }

  /** Length of the unchanged run of rows from there on; such rows are moved at once. */
  #sameFrom(from: number, running: readonly RunningTask[], to: number): number {
    const before = this.#running;
    const most = Math.min(before.length - from, running.length - to);
    let same = 0;
    while (same < most && before[from + same] === running[to + same] && this.#with[from + same] !== null) same++;
    return same;
  }

  /** Calls back for each task with its last step reached by then; -1: none. */
  each(nowMs: EpochMs, visit: (of: T, step: number) => void): void {
    const now = raw(nowMs);
    const facts = this.#facts;
    for (let i = 0; i < this.#with.length; i++) {
      const of = this.#with[i] as T | null;
      if (of === null) continue;
      const at = i * FACTS;
      // Same as `doneOnceS` of `begunBy`.
      const ranS = Math.max(0, (now - (facts[at] as number)) / 1000);
      const workS = Math.max(0, ranS - (facts[at + 1] as number)) / (facts[at + 4] as number);
      const doneS = (facts[at + 2] as number) + workS;
      const step = lastStepAt(Math.max(doneS, facts[at + 3] as number), this.#steps[i]);
      this.#steps[i] = step;
      visit(of, step);
    }
  }

  #move(from: number, to: number, rows: number): void {
    if (from === to || rows === 0) return;
    // Array's own copyWithin takes 25 times as long.
    for (let i = 0; i < rows; i++) this.#with[to + i] = this.#with[from + i] as T;
    this.#facts.copyWithin(to * FACTS, from * FACTS, (from + rows) * FACTS);
    this.#steps.copyWithin(to, from, from + rows);
  }

  #put(to: number, r: RunningTask, of: (r: RunningTask) => T | null): void {
    const { startedMs, resumedFromS } = r.attempt;
    this.#with[to] = of(r);
    this.#facts[to * FACTS] = startedMs === null ? Infinity : raw(startedMs);
    this.#facts[to * FACTS + 1] = raw(r.readS);
    this.#facts[to * FACTS + 2] = raw(resumedFromS);
    this.#facts[to * FACTS + 3] = raw(r.ranS ?? ZERO_S);
    this.#facts[to * FACTS + 4] = r.attempt.slowdown ?? 1;
    this.#steps[to] = -1;
  }

  #reserve(rows: number): void {
    if (rows <= this.#steps.length) return;
    const facts = new Float64Array(2 * rows * FACTS);
    const steps = new Int8Array(2 * rows);
    facts.set(this.#facts);
    steps.set(this.#steps);
    this.#facts = facts;
    this.#steps = steps;
  }
}
