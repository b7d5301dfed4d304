/**
 * The order in which the tasks of a stage are begun. As a rule it is that of their indices. Where the first of them are
 * pilots it is random: tasks near each other are often alike, and pilots have to stand for all (SLearn, section 5.1.2).
 *
 * A random order is a function of the stage, so that nothing but the number of begun tasks is kept: a permutation of
 * [0, tasks) by four rounds of a Feistel network on the next larger power of four, repeated until it comes back into
 * the range. O(1) on average for each task.
 */
import { hash32 } from '../kernel/random.ts';
import type { JobId } from '../kernel/ids.ts';
import type { StageProgress } from './job.ts';

/** A random order of a stage's tasks. */
export interface TaskOrder {
  readonly tasks: number;
  readonly seed: number;
}

export const randomOrder = (job: JobId, { name, tasks }: Pick<StageProgress, 'name' | 'tasks'>): TaskOrder => ({
  tasks,
  seed: hash32(`${job}/${name}/order`),
});

/** The order of a stage; null: by index. */
export const orderOf = (job: JobId, stage: StageProgress): TaskOrder | null =>
  stage.isDrawn === true ? randomOrder(job, stage) : null;

/** Index of the task that is begun as number `nth`, counted from 0. */
export const taskAt = (order: TaskOrder | null, nth: number): number =>
  order === null ? nth : walk(order, nth, ROUNDS);

/** The inverse of `taskAt`. */
export const placeOf = (order: TaskOrder | null, index: number): number =>
  order === null ? index : walk(order, index, ROUNDS.toReversed());

const ROUNDS = [0, 1, 2, 3];

function walk({ tasks, seed }: TaskOrder, from: number, rounds: readonly number[]): number {
  const bits = Math.max(1, Math.ceil(Math.log2(Math.max(2, tasks)) / 2));
  const isInverse = rounds[0] !== 0;
  let at = from;
  do at = permuted(at, { seed, bits, rounds, isInverse });
  while (at >= tasks);
  return at;
}

interface Permutation {
  readonly seed: number;
  /** Bits of each half. */
  readonly bits: number;
  readonly rounds: readonly number[];
  readonly isInverse: boolean;
}

function permuted(value: number, { seed, bits, rounds, isInverse }: Permutation): number {
  const size = 2 ** bits;
  let [left, right] = [Math.floor(value / size), value % size];
  for (const round of rounds) {
    if (isInverse) [left, right] = [right ^ (mixed(left, seed, round) % size), left];
    else [left, right] = [right, left ^ (mixed(right, seed, round) % size)];
  }
  return left * size + right;
}

/** 32 bits that depend on each bit of all three: the finaliser of MurmurHash3. */
function mixed(half: number, seed: number, round: number): number {
  let h = (seed ^ Math.imul(half + 1, 0x9e3779b1) ^ Math.imul(round + 1, 0x85ebca6b)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
