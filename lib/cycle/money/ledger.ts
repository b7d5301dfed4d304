import { epochMs, least, lt, most, plus, raw, type EpochMs } from '../../kernel/units.ts';
import { invariant } from '../../kernel/errors.ts';
import type { AttemptId, JobId } from '../../kernel/ids.ts';
import type { Instance, Reservation } from '../../domain/instance.ts';
import type { Attempt, Job } from '../../domain/job.ts';
import type { Bill, LedgerKind, LedgerRow } from '../../domain/ledger.ts';
import type { Pool } from '../../domain/pool.ts';
import { dominantShare } from '../../domain/resources.ts';

/** Part of a bill: of one piece, or of one payer. */
interface Charge {
  fromMs: number;
  toMs: number;
  usd: number;
  onDemandUsd: number;
}

/** Payer of a part of the bill. */
interface Payer {
  readonly kind: LedgerKind;
  /** Null for idle time. */
  readonly attempt: AttemptId | null;
  readonly job: JobId | null;
  /** Null until something is charged. */
  charge: Charge | null;
}

interface Interval extends Payer {
  readonly attempt: AttemptId;
  readonly job: JobId;
  readonly fromMs: number;
  readonly toMs: number;
  readonly share: number;
  /** Its place among all. */
  readonly place: number;
}

export interface Attributed {
  readonly instance: Pick<Instance, 'id' | 'boughtFor' | 'reservations'>;
  readonly pool: Pool;
  readonly bill: Bill;
  readonly attempts: readonly Attempt[];
  /** Jobs of attempts and of `boughtFor`. Rows of a missing job have no owner, template and caller. */
  readonly jobs: ReadonlyMap<string, Job>;
  /** End of the account for a live instance: running attempts count until here. */
  readonly until: EpochMs;
}

/** Jobs that a row names. */
export const jobsNamed = (
  { boughtFor = [], reservations = [] }: Pick<Instance, 'boughtFor' | 'reservations'>,
  attempts: readonly Pick<Attempt, 'job'>[],
): ReadonlySet<JobId> => new Set([...attempts, ...boughtFor, ...reservations].map((of) => of.job));

/**
 * Attributes an instance's bill to jobs (docs/adr/0023-idle-time-belongs-to-jobs.md). At each moment:
 * - tasks run: each attempt pays for its requested dominant share, and for unused capacity in proportion to that share;
 * - room is kept for the arrival of a move: it pays as if it ran;
 * - nothing has run yet (start-up): the jobs for which the instance was bought pay, by their parts;
 * - a gap or the tail: the jobs of the stretch of work before it pay, by share x time in that stretch.
 * A payment depends on nothing later, so an accrued bill never moves from one job to another. If the purchase is
 * unknown, start-up is paid by the jobs that ran, by share x time; if nothing ran either, by nobody.
 * Shares that sum to more than the instance are scaled down to it. An attempt's time up to its last checkpoint (all of
 * it on success, and of a service's replica in any case) is work, the remaining time wasted, that of a superseded one
 * speculative; unused capacity is idle. The time of a move is `moved`: from the order to stop until the end of the
 * attempt, unless it succeeded all the same, and from the reservation until the start of the one that goes on, or until
 * the task turned out not to come.
 * Rows sum to the bill exactly up to floating point. O(pieces + attempts log attempts + cuts x attempts alive at once +
 * gaps x jobs of the stretch) for pieces in the order of time.
 */
export function attribute(of: Attributed): LedgerRow[] {
  const account = new Account(of);
  const intervals = intervalsOf(of);
  const cuts = new Cuts(intervals);
  let aliveAt = sweep(intervals);
  let reachedMs = -Infinity;
  for (const piece of of.bill.pieces) {
    const fromMs = raw(piece.fromMs);
    const toMs = raw(piece.toMs);
    if (toMs <= fromMs) {
      // A charge without duration (a billing minimum) is nobody's work.
      account.gap({ fromMs, toMs, usd: piece.usd, onDemandUsd: piece.onDemandUsd });
      continue;
    }
    if (fromMs < reachedMs) aliveAt = sweep(intervals);
    for (let a = fromMs; a < toMs;) {
      const b = Math.min(toMs, cuts.after(a));
      const part = (b - a) / (toMs - fromMs);
      const moment: Charge = { fromMs: a, toMs: b, usd: piece.usd * part, onDemandUsd: piece.onDemandUsd * part };
      const alive = aliveAt(a);
      if (alive.length === 0) account.gap(moment);
      else account.used(moment, alive);
      a = b;
    }
    reachedMs = toMs;
  }
  return account.rows();
}

/** Payers of one instance. Moments are charged in the order of time. */
class Account {
  readonly #of: Attributed;
  /** In the order of their first charge. */
  readonly #payers: Payer[] = [];
  readonly #idle = new Map<JobId | null, Payer>();
  /** Share x milliseconds per job in the present stretch of work. */
  #stretch = new Map<JobId, number>();
  /** The same over the whole life. */
  readonly #use = new Map<JobId, number>();
  #inGap = true;
  /** Start-up of an instance whose purchase is unknown: charged at the end. */
  readonly #unclaimed: Charge[] = [];

  constructor(of: Attributed) {
    this.#of = of;
  }

  /** Attempts run. */
  used(moment: Charge, alive: readonly Interval[]): void {
    if (this.#inGap) this.#stretch = new Map();
    this.#inGap = false;
    let sum = 0;
    for (const i of alive) sum += i.share;
    const shrink = sum > 1 ? 1 / sum : 1;
    const unused = Math.max(0, 1 - sum * shrink);
    for (const i of alive) {
      this.#charge(i, moment, i.share * shrink);
      const part = sum > 0 ? i.share / sum : 1 / alive.length;
      if (unused > 1e-12) this.#charge(this.#idleOf(i.job), moment, unused * part);
      const use = (sum > 0 ? i.share : 1) * (moment.toMs - moment.fromMs);
      add(this.#stretch, i.job, use);
      add(this.#use, i.job, use);
    }
  }

  /** Nothing runs. */
  gap(moment: Charge): void {
    this.#inGap = true;
    const { boughtFor = [] } = this.#of.instance;
    if (this.#stretch.size > 0) this.#share(moment, this.#stretch);
    else if (boughtFor.length > 0) this.#share(moment, new Map(boughtFor.map((b) => [b.job, b.part])));
    else this.#unclaimed.push(moment);
  }

  rows(): LedgerRow[] {
    for (const moment of this.#unclaimed) this.#share(moment, this.#use);
    return this.#payers.map((payer) => rowOf(payer, this.#of));
  }

  #share(moment: Charge, weights: ReadonlyMap<JobId, number>): void {
    let sum = 0;
    for (const weight of weights.values()) sum += weight;
    if (sum > 0) for (const [job, weight] of weights) this.#charge(this.#idleOf(job), moment, weight / sum);
    else this.#charge(this.#idleOf(null), moment, 1);
  }

  #idleOf(job: JobId | null): Payer {
    let payer = this.#idle.get(job);
    if (payer === undefined) this.#idle.set(job, (payer = { kind: 'idle', attempt: null, job, charge: null }));
    return payer;
  }

  #charge(payer: Payer, { fromMs, toMs, usd, onDemandUsd }: Charge, part: number): void {
    const known = payer.charge;
    if (known === null) {
      payer.charge = { usd: usd * part, onDemandUsd: onDemandUsd * part, fromMs, toMs };
      this.#payers.push(payer);
      return;
    }
    known.usd += usd * part;
    known.onDemandUsd += onDemandUsd * part;
    known.fromMs = Math.min(known.fromMs, fromMs);
    known.toMs = Math.max(known.toMs, toMs);
  }
}

const add = (sums: Map<JobId, number>, job: JobId, more: number): void => {
  sums.set(job, (sums.get(job) ?? 0) + more);
};

function rowOf({ kind, attempt, job: id, charge }: Payer, { instance, pool, jobs }: Attributed): LedgerRow {
  const { fromMs, toMs, usd, onDemandUsd } = invariant(charge, 'who is charged has a charge');
  const job = id === null ? undefined : jobs.get(id);
  return {
    instance: instance.id,
    pool: pool.id,
    kind,
    attempt,
    job: id,
    owner: job?.spec.owner ?? null,
    template: job?.template ?? null,
    caller: job?.submittedBy?.id ?? null,
    fromMs: epochMs(fromMs),
    toMs: epochMs(toMs),
    usd,
    onDemandUsd,
  };
}

/**
 * Intervals that hold just after each of several ascending times, in the given order. Each is entered and left once,
 * because an instance that lives for days runs thousands of attempts, but few at once.
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

/** Boundaries of intervals. */
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

  /** First boundary after that time; Infinity: none. O(boundaries passed since the last call). */
  after(ms: number): number {
    const at = this.#atMs;
    while (this.#next > 0 && (at[this.#next - 1] as number) > ms) this.#next--;
    while (this.#next < at.length && (at[this.#next] as number) <= ms) this.#next++;
    return at[this.#next] ?? Infinity;
  }
}

/** Attempt by attempt, then room that is kept for others. */
function intervalsOf({ instance, attempts, pool, jobs, until }: Attributed): Interval[] {
  const intervals: Interval[] = [];
  const add = (of: Spending, kind: LedgerKind, from: EpochMs, to: EpochMs): void => {
    if (!lt(from, to)) return;
    const share = dominantShare(of.resources, pool.type.capacity);
    const span = { kind, fromMs: raw(from), toMs: raw(to), share, place: intervals.length };
    intervals.push({ attempt: of.attempt, job: of.job, charge: null, ...span });
  };
  for (const attempt of attempts) {
    const of = { attempt: attempt.id, job: attempt.job, resources: attempt.resources };
    const isReplica = jobs.get(attempt.job)?.spec.class === 'service';
    for (const { kind, from, to } of spansOf(attempt, { until, isReplica })) add(of, kind, from, to);
  }
  for (const r of instance.reservations ?? []) add(r, 'moved', r.sinceMs, r.untilMs ?? until);
  return intervals;
}

type Spending = Pick<Reservation, 'attempt' | 'job' | 'resources'>;

interface Span {
  readonly kind: LedgerKind;
  readonly from: EpochMs;
  readonly to: EpochMs;
}

/** Consecutive spans of an attempt, each of one kind. */
function spansOf(
  attempt: Attempt,
  { until, isReplica }: { readonly until: EpochMs; readonly isReplica: boolean },
): readonly Span[] {
  const { startedMs, reservedMs, leaving, outcome } = attempt;
  const endMs = attempt.endedMs ?? until;
  const spans: Span[] = [];
  if (reservedMs !== undefined) spans.push({ kind: 'moved', from: reservedMs, to: startedMs ?? endMs });
  if (startedMs === null) return spans;
  if (attempt.supersededBy !== undefined || outcome === 'superseded')
    return [...spans, { kind: 'speculative', from: startedMs, to: endMs }];
  // An attempt that succeeds while it is told to stop has worked to its end.
  const isMove = leaving !== undefined && outcome !== 'succeeded';
  const ranUntilMs = isMove ? most(startedMs, least(leaving.sinceMs, endMs)) : endMs;
  const cutMs = isReplica ? ranUntilMs : least(keptUntil(attempt, startedMs, ranUntilMs), ranUntilMs);
  return [
    ...spans,
    { kind: 'work', from: startedMs, to: cutMs },
    { kind: 'wasted', from: cutMs, to: ranUntilMs },
    { kind: 'moved', from: ranUntilMs, to: endMs },
  ];
}

/** Time until which an attempt's running counts as work. Nobody resumes what a copy saved. */
function keptUntil({ outcome, role, keptS }: Attempt, startedMs: EpochMs, endMs: EpochMs): EpochMs {
  if (outcome === 'succeeded' || outcome === null) return endMs;
  return role === 'copy' ? startedMs : plus(startedMs, keptS);
}
