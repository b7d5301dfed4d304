import { epochMs, lt, plus, raw, seconds, type EpochMs } from '../kernel/units.ts';
import type { Instance } from '../domain/instance.ts';
import type { Attempt, Job } from '../domain/job.ts';
import type { Bill, LedgerKind, LedgerRow } from '../domain/ledger.ts';
import type { Pool } from '../domain/pool.ts';
import { dominantShare } from '../domain/resources.ts';

interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
  readonly share: number;
  readonly kind: Exclude<LedgerKind, 'idle'>;
  readonly attempt: Attempt;
}

/** A part of a piece of the bill, or all parts of one interval. */
interface Charge {
  fromMs: number;
  toMs: number;
  usd: number;
  onDemandUsd: number;
}

/**
 * Attributes an instance's bill: at each moment every attempt gets its dominant share of the price, the rest is idle;
 * when shares sum to more than the instance, they are scaled down to it. An attempt's time up to its last checkpoint
 * (all of it when it succeeded) is work, the rest wasted. Rows sum to the bill exactly up to floating point: each piece
 * is divided among its moments by time, and idle takes what is left.
 * O(pieces + attempts log attempts + cuts x attempts alive at once) for pieces in the order of time.
 */
export function attribute(of: {
  readonly instance: Instance;
  readonly pool: Pool;
  readonly bill: Bill;
  readonly attempts: readonly Attempt[];
  readonly jobs: ReadonlyMap<string, Job>;
  /** For an instance that still lives: attempts that run count until here. */
  readonly until: EpochMs;
}): LedgerRow[] {
  const intervals = of.attempts.flatMap((a) => intervalsOf(a, of.pool, of.until));
  /** By interval: an attempt has one of each kind at most. */
  const totals = new Map<Interval | null, Charge>();
  const charge = (interval: Interval | null, part: Charge): void => {
    const { fromMs, toMs, usd, onDemandUsd } = part;
    const known = totals.get(interval);
    if (known !== undefined) {
      known.usd += usd;
      known.onDemandUsd += onDemandUsd;
      known.toMs = Math.max(known.toMs, toMs);
      return;
    }
    totals.set(interval, { usd, onDemandUsd, fromMs, toMs });
  };
  const cuts = new Cuts(intervals);
  let aliveAt = sweep(intervals);
  let reachedMs = -Infinity;
  for (const piece of of.bill.pieces) {
    const fromMs = raw(piece.fromMs);
    const toMs = raw(piece.toMs);
    if (toMs <= fromMs) {
      // A charge without extent (a billing minimum) is nobody's work.
      charge(null, { fromMs, toMs, usd: piece.usd, onDemandUsd: piece.onDemandUsd });
      continue;
    }
    if (fromMs < reachedMs) aliveAt = sweep(intervals);
    for (let a = fromMs; a < toMs;) {
      const b = Math.min(toMs, cuts.after(a));
      const part = (b - a) / (toMs - fromMs);
      // One for all shares of the moment: `charge` keeps its numbers, not the record.
      const portion: Charge = { fromMs: a, toMs: b, usd: 0, onDemandUsd: 0 };
      const chargeShare = (interval: Interval | null, share: number): void => {
        portion.usd = piece.usd * part * share;
        portion.onDemandUsd = piece.onDemandUsd * part * share;
        charge(interval, portion);
      };
      const alive = aliveAt(a);
      let sum = 0;
      for (const i of alive) sum += i.share;
      const shrink = sum > 1 ? 1 / sum : 1;
      for (const i of alive) chargeShare(i, i.share * shrink);
      const idle = Math.max(0, 1 - sum * shrink);
      if (idle > 1e-12) chargeShare(null, idle);
      a = b;
    }
    reachedMs = toMs;
  }
  const rows: LedgerRow[] = [];
  totals.forEach(({ fromMs, toMs, usd, onDemandUsd }, interval) => {
    const job = interval === null ? undefined : of.jobs.get(interval.attempt.job);
    rows.push({
      instance: of.instance.id,
      pool: of.pool.id,
      kind: interval === null ? 'idle' : interval.kind,
      attempt: interval?.attempt.id ?? null,
      job: interval?.attempt.job ?? null,
      owner: job?.spec.owner ?? null,
      template: job?.template ?? null,
      fromMs: epochMs(fromMs),
      toMs: epochMs(toMs),
      usd,
      onDemandUsd,
    });
  });
  return rows;
}

/**
 * Answers for ascending times which intervals hold just after, in the order given: each is taken in and let go once. An instance
 * that lives for days runs thousands of attempts, of which a few at once.
 */
function sweep(intervals: readonly Interval[]): (atMs: number) => readonly Interval[] {
  const byStart = intervals.map((_, i) => i).sort((a, b) => (intervals[a]?.fromMs ?? 0) - (intervals[b]?.fromMs ?? 0));
  let next = 0;
  let alive: number[] = [];
  return (atMs) => {
    const before = next;
    alive = alive.filter((i) => (intervals[i]?.toMs ?? 0) > atMs);
    for (; next < byStart.length; next++) {
      const i = byStart[next] as number;
      if ((intervals[i]?.fromMs ?? 0) > atMs) break;
      if ((intervals[i]?.toMs ?? 0) > atMs) alive.push(i);
    }
    if (next > before) alive.sort((a, b) => a - b);
    return alive.map((i) => intervals[i] as Interval);
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

function intervalsOf(attempt: Attempt, pool: Pool, until: EpochMs): Interval[] {
  if (attempt.startedMs === null) return [];
  const share = dominantShare(attempt.resources, pool.type.capacity);
  const ended = attempt.endedMs ?? until;
  const keptUntil =
    attempt.outcome === 'succeeded' || attempt.outcome === null
      ? ended
      : plus(attempt.startedMs, seconds(raw(attempt.keptS)));
  const cut = lt(keptUntil, ended) ? keptUntil : ended;
  const pieces: Interval[] = [];
  if (lt(attempt.startedMs, cut))
    pieces.push({ fromMs: raw(attempt.startedMs), toMs: raw(cut), share, kind: 'work', attempt });
  if (lt(cut, ended)) pieces.push({ fromMs: raw(cut), toMs: raw(ended), share, kind: 'wasted', attempt });
  return pieces;
}
