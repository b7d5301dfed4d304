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

/** A part of a piece of the bill. */
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
 * O(pieces x attempts + attempts log attempts + cuts x attempts alive at once).
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
  const totals = new Map<
    Interval | null,
    { row: Omit<LedgerRow, 'usd' | 'onDemandUsd'>; usd: number; onDemandUsd: number; fromMs: number; toMs: number }
  >();
  const charge = (interval: Interval | null, part: Charge): void => {
    const { fromMs, toMs, usd, onDemandUsd } = part;
    const known = totals.get(interval);
    if (known !== undefined) {
      known.usd += usd;
      known.onDemandUsd += onDemandUsd;
      known.toMs = Math.max(known.toMs, toMs);
      return;
    }
    const job = interval === null ? undefined : of.jobs.get(interval.attempt.job);
    totals.set(interval, {
      row: {
        instance: of.instance.id,
        pool: of.pool.id,
        kind: interval === null ? 'idle' : interval.kind,
        attempt: interval?.attempt.id ?? null,
        job: interval?.attempt.job ?? null,
        owner: job?.spec.owner ?? null,
        template: job?.template ?? null,
        fromMs: of.until,
        toMs: of.until,
      },
      usd,
      onDemandUsd,
      fromMs,
      toMs,
    });
  };
  for (const piece of of.bill.pieces) {
    const fromMs = raw(piece.fromMs);
    const toMs = raw(piece.toMs);
    if (toMs <= fromMs) {
      // A charge without extent (a billing minimum) is nobody's work.
      charge(null, { fromMs, toMs, usd: piece.usd, onDemandUsd: piece.onDemandUsd });
      continue;
    }
    const inside = intervals.filter((i) => i.toMs > fromMs && i.fromMs < toMs);
    const cuts = cutsIn(inside, fromMs, toMs);
    const aliveAt = sweep(inside);
    for (let c = 0; c + 1 < cuts.length; c++) {
      const a = cuts[c] ?? 0;
      const b = cuts[c + 1] ?? 0;
      const part = (b - a) / (toMs - fromMs);
      // One for all shares of the moment: `charge` keeps its numbers, not the record.
      const portion: Charge = { fromMs: a, toMs: b, usd: 0, onDemandUsd: 0 };
      const chargeShare = (interval: Interval | null, share: number): void => {
        portion.usd = piece.usd * part * share;
        portion.onDemandUsd = piece.onDemandUsd * part * share;
        charge(interval, portion);
      };
      const alive = aliveAt(a);
      const sum = alive.reduce((s, i) => s + i.share, 0);
      const shrink = sum > 1 ? 1 / sum : 1;
      for (const i of alive) chargeShare(i, i.share * shrink);
      const idle = Math.max(0, 1 - sum * shrink);
      if (idle > 1e-12) chargeShare(null, idle);
    }
  }
  return [...totals.values()].map((t) => ({
    ...t.row,
    fromMs: epochMs(t.fromMs),
    toMs: epochMs(t.toMs),
    usd: t.usd,
    onDemandUsd: t.onDemandUsd,
  }));
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

/** Where anything begins or ends within [from, to], the ends of it included; ascending, each once. */
function cutsIn(intervals: readonly Interval[], from: number, to: number): Float64Array {
  const cuts = new Float64Array(2 * intervals.length + 2);
  cuts[0] = from;
  cuts[1] = to;
  intervals.forEach((interval, i) => {
    cuts[2 * i + 2] = clamp(interval.fromMs, from, to);
    cuts[2 * i + 3] = clamp(interval.toMs, from, to);
  });
  cuts.sort();
  let count = 1;
  for (let i = 1; i < cuts.length; i++) if (cuts[i] !== cuts[i - 1]) cuts[count++] = cuts[i] as number;
  return cuts.subarray(0, count);
}

const clamp = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);

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
