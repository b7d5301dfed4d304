import { epochMs, least, lt, plus, raw, type EpochMs } from '../kernel/units.ts';
import { invariant } from '../kernel/errors.ts';
import type { Instance } from '../domain/instance.ts';
import type { Attempt, Job } from '../domain/job.ts';
import type { Bill, LedgerKind, LedgerRow } from '../domain/ledger.ts';
import type { Pool } from '../domain/pool.ts';
import { dominantShare } from '../domain/resources.ts';

/** Part of a bill: of one of its pieces, or all that somebody has to answer for. */
interface Charge {
  fromMs: number;
  toMs: number;
  usd: number;
  onDemandUsd: number;
}

/** Who answers for a part of the bill. */
interface Payer {
  readonly kind: LedgerKind;
  /** Null: nobody ran. */
  readonly attempt: Attempt | null;
  /** Null until something is charged. */
  charge: Charge | null;
}

interface Interval extends Payer {
  readonly fromMs: number;
  readonly toMs: number;
  readonly share: number;
  /** Its place among all. */
  readonly place: number;
}

interface Attributed {
  readonly instance: Instance;
  readonly pool: Pool;
  readonly bill: Bill;
  readonly attempts: readonly Attempt[];
  readonly jobs: ReadonlyMap<string, Job>;
  /** For an instance that still lives: attempts that run count until here. */
  readonly until: EpochMs;
}

/**
 * Attributes an instance's bill: at each moment every attempt gets its dominant share of the price, the rest is idle;
 * when shares sum to more than the instance, they are scaled down to it. An attempt's time up to its last checkpoint
 * (all of it when it succeeded) is work, the rest wasted. Rows sum to the bill exactly up to floating point: each piece
 * is divided among its moments by time, and idle takes what is left.
 * O(pieces + attempts log attempts + cuts x attempts alive at once) for pieces in the order of time.
 */
export function attribute(of: Attributed): LedgerRow[] {
  const intervals = intervalsOf(of);
  const idle: Payer = { kind: 'idle', attempt: null, charge: null };
  /** In the order in which they were charged first. */
  const payers: Payer[] = [];
  const charge = (payer: Payer, { fromMs, toMs, usd, onDemandUsd }: Charge): void => {
    const known = payer.charge;
    if (known === null) {
      payer.charge = { usd, onDemandUsd, fromMs, toMs };
      payers.push(payer);
      return;
    }
    known.usd += usd;
    known.onDemandUsd += onDemandUsd;
    known.toMs = Math.max(known.toMs, toMs);
  };
  const cuts = new Cuts(intervals);
  let aliveAt = sweep(intervals);
  let reachedMs = -Infinity;
  for (const piece of of.bill.pieces) {
    const fromMs = raw(piece.fromMs);
    const toMs = raw(piece.toMs);
    if (toMs <= fromMs) {
      // A charge without extent (a billing minimum) is nobody's work.
      charge(idle, { fromMs, toMs, usd: piece.usd, onDemandUsd: piece.onDemandUsd });
      continue;
    }
    if (fromMs < reachedMs) aliveAt = sweep(intervals);
    for (let a = fromMs; a < toMs;) {
      const b = Math.min(toMs, cuts.after(a));
      const part = (b - a) / (toMs - fromMs);
      // One for all shares of the moment: `charge` keeps its numbers, not the record.
      const portion: Charge = { fromMs: a, toMs: b, usd: 0, onDemandUsd: 0 };
      const chargeShare = (payer: Payer, share: number): void => {
        portion.usd = piece.usd * part * share;
        portion.onDemandUsd = piece.onDemandUsd * part * share;
        charge(payer, portion);
      };
      const alive = aliveAt(a);
      let sum = 0;
      for (const i of alive) sum += i.share;
      const shrink = sum > 1 ? 1 / sum : 1;
      for (const i of alive) chargeShare(i, i.share * shrink);
      const left = Math.max(0, 1 - sum * shrink);
      if (left > 1e-12) chargeShare(idle, left);
      a = b;
    }
    reachedMs = toMs;
  }
  return payers.map((payer) => rowOf(payer, of));
}

function rowOf({ kind, attempt, charge }: Payer, { instance, pool, jobs }: Attributed): LedgerRow {
  const { fromMs, toMs, usd, onDemandUsd } = invariant(charge, 'who is charged has a charge');
  const job = attempt === null ? undefined : jobs.get(attempt.job);
  return {
    instance: instance.id,
    pool: pool.id,
    kind,
    attempt: attempt?.id ?? null,
    job: attempt?.job ?? null,
    owner: job?.spec.owner ?? null,
    template: job?.template ?? null,
    fromMs: epochMs(fromMs),
    toMs: epochMs(toMs),
    usd,
    onDemandUsd,
  };
}

/**
 * Answers for ascending times which intervals hold just after, in the order given: each is taken in and let go once. An instance
 * that lives for days runs thousands of attempts, of which a few at once.
 */
function sweep(intervals: readonly Interval[]): (atMs: number) => readonly Interval[] {
  const byStart = intervals.toSorted((a, b) => a.fromMs - b.fromMs);
  let next = 0;
  let alive: Interval[] = [];
  return (atMs) => {
    const before = next;
    alive = alive.filter((i) => i.toMs > atMs);
    for (; next < byStart.length; next++) {
      const interval = byStart[next] as Interval;
      if (interval.fromMs > atMs) break;
      if (interval.toMs > atMs) alive.push(interval);
    }
    if (next > before) alive.sort((a, b) => a.place - b.place);
    return alive;
  };
}

/** Where intervals begin and end. */
class Cuts {
  readonly #atMs: Float64Array;
  #next = 0;

  constructor(intervals: readonly Interval[]) {
    this.#atMs = new Float64Array(2 * intervals.length);
    intervals.forEach(({ fromMs, toMs }, i) => {
      this.#atMs[2 * i] = fromMs;
      this.#atMs[2 * i + 1] = toMs;
    });
    this.#atMs.sort();
  }

  /** The first one after that time; Infinity where there is none. O(cuts passed since the last call). */
  after(ms: number): number {
    const at = this.#atMs;
    while (this.#next > 0 && (at[this.#next - 1] as number) > ms) this.#next--;
    while (this.#next < at.length && (at[this.#next] as number) <= ms) this.#next++;
    return at[this.#next] ?? Infinity;
  }
}

/** Attempt by attempt. */
function intervalsOf({ attempts, pool, until }: Attributed): Interval[] {
  const intervals: Interval[] = [];
  for (const attempt of attempts) {
    const { startedMs } = attempt;
    if (startedMs === null) continue;
    const share = dominantShare(attempt.resources, pool.type.capacity);
    const endMs = attempt.endedMs ?? until;
    const cutMs = least(keptUntil(attempt, startedMs, endMs), endMs);
    const add = (kind: LedgerKind, from: EpochMs, to: EpochMs): void => {
      const place = intervals.length;
      if (lt(from, to)) intervals.push({ kind, attempt, charge: null, fromMs: raw(from), toMs: raw(to), share, place });
    };
    add('work', startedMs, cutMs);
    add('wasted', cutMs, endMs);
  }
  return intervals;
}

/** Until when an attempt's time is work. */
const keptUntil = ({ outcome, keptS }: Attempt, startedMs: EpochMs, endMs: EpochMs): EpochMs =>
  outcome === 'succeeded' || outcome === null ? endMs : plus(startedMs, keptS);
