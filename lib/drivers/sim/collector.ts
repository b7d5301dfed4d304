/**
 * Folds finished jobs and instances into columns while a simulation runs, and has store and fleet forget them: memory
 * is bounded by the live entities, a row of figures per job and four numbers per instance. If jobs may wait for earlier
 * ones by name, jobs are kept to the end.
 * Lifecycle: the store tells `job` and `instance` as it stores; `fold` after each cycle; `finish` once at the end. An
 * instance is folded when its bill is settled and forgotten a cycle later, when the fleet knows that its end was
 * observed. A job is forgotten when it and all instances that it ran on have ended; O(ended entities) per cycle.
 */
import type { InstanceId, JobId } from '../../kernel/ids.ts';
import { raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import { attribute, jobsNamed } from '../../cycle/money/ledger.ts';
import type { Instance } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job } from '../../domain/job.ts';
import { SERVICE_LABEL } from '../../domain/service.ts';
import { instanceHours, type LedgerRow } from '../../domain/ledger.ts';
import type { Pool } from '../../domain/pool.ts';
import { JobRows } from './job-rows.ts';
import type { MemoryFleet } from './memory-fleet.ts';
import type { MemoryStore } from './memory-store.ts';
import type { PoolUse, ServiceUse } from '../../report/outcome.ts';

type Tally = { -readonly [K in keyof PoolUse]: PoolUse[K] };
type Sums = Record<LedgerRow['kind'], number>;

export interface CollectorParts {
  readonly store: MemoryStore;
  readonly fleet: MemoryFleet;
  readonly pools: readonly Pool[];
  /** True if jobs may name earlier ones that they wait for: then no job is forgotten. */
  readonly namesJobs: boolean;
  /** Told of a job that is forgotten. */
  readonly onForget: (job: JobId) => void;
  /** Called once per instance with its cost; absent: no listener. */
  readonly onSettled?: (settled: Settled) => void;
}

/** An instance with a known bill, or one alive at the end of a simulation, and its attempts. */
export interface Settled {
  readonly instance: Instance;
  readonly pool: Pool;
  /** They sum to its bill. */
  readonly rows: readonly LedgerRow[];
  readonly attempts: readonly Attempt[];
}

export class Collector {
  readonly rows = new JobRows();
  /** Charges of the replicas of each service. They are in no row of a job. */
  readonly services = new Map<string, ServiceCharges>();
  readonly uses = new Map<string, Tally>();
  /** Instances that came and went, in the order of being folded. */
  readonly changes = new InstanceChanges();
  readonly usd: Sums = { work: 0, wasted: 0, speculative: 0, moved: 0, idle: 0 };
  readonly hours: Sums = { work: 0, wasted: 0, speculative: 0, moved: 0, idle: 0 };
  onDemandUsd = 0;
  refundedUsd = 0;
  launches = 0;
  interruptions = 0;
  attempts = 0;
  moves = 0;
  lostS = 0;
  readonly #parts: CollectorParts;
  readonly #pools: ReadonlyMap<string, Pool>;
  #settled: Instance[] = [];
  /** Folded in the cycle before, with the jobs that ran there. */
  #folded: { readonly id: InstanceId; readonly jobs: ReadonlySet<JobId> }[] = [];
  /** Jobs that may have become forgettable: over now, or of an instance that was forgotten. */
  #loose = new Set<JobId>();
  /** Service of each replica that is not forgotten. */
  readonly #replicas = new Map<JobId, ServiceCharges>();

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    this.#pools = new Map(parts.pools.map((p) => [p.id as string, p]));
  }

  job(job: Job): void {
    const service = job.spec.class === 'service' ? job.spec.labels[SERVICE_LABEL] : undefined;
    if (service === undefined) this.rows.put(job);
    else this.#replicas.set(job.id, this.#chargesOf(service));
    if (isOver(job.state)) this.#loose.add(job.id);
  }

  instance(instance: Instance): void {
    if (instance.state === 'ended' && instance.costUsd !== null) this.#settled.push(instance);
  }

  async fold(): Promise<void> {
    const { store, fleet, namesJobs, onForget } = this.#parts;
    for (const { id, jobs } of this.#folded) {
      for (const job of jobs) this.#loose.add(job);
      store.forgetInstance(id);
      fleet.forget(id);
    }
    this.#folded = [];
    for (const instance of this.#settled) {
      const attempts = await store.attemptsOn(instance.id);
      this.#fold(instance, await store.ledger({ instance: instance.id }), attempts);
      if (instance.endCause === 'interrupted' && instance.endedMs !== null)
        this.refundedUsd += (await fleet.bill(instance.id, instance.endedMs)).refundedUsd ?? 0;
      this.#folded.push({ id: instance.id, jobs: new Set(attempts.map((a) => a.job)) });
    }
    this.#settled = [];
    const loose = this.#loose;
    this.#loose = new Set();
    for (const id of namesJobs ? [] : loose) {
      if (!(await this.#isGone(id))) continue;
      store.forgetJob(id);
      this.#replicas.delete(id);
      onForget(id);
    }
  }

  async #isGone(id: JobId): Promise<boolean> {
    const { store } = this.#parts;
    const job = await store.job(id);
    return job !== null && isOver(job.state) && !store.hasAttempts(id);
  }

  /** Live instances at `endMs` are charged until then, their running work as if it ended there. */
  async finish(endMs: EpochMs): Promise<void> {
    const { store, fleet } = this.#parts;
    await this.fold();
    for (const instance of (await store.loadActive()).instances) {
      const pool = this.#pools.get(instance.pool);
      if (pool === undefined || instance.launchedMs === null) continue;
      const attempts = await store.attemptsOn(instance.id);
      const bill = await fleet.bill(instance.id, endMs);
      const jobs = await store.findJobs([...jobsNamed(instance, attempts)]);
      this.#fold(instance, attribute({ instance, pool, bill, attempts, jobs, until: endMs }), attempts);
    }
  }

  #fold(instance: Instance, rows: readonly LedgerRow[], attempts: readonly Attempt[]): void {
    const hours = instanceHours(rows);
    rows.forEach((row, i) => {
      this.usd[row.kind] += row.usd;
      this.hours[row.kind] += hours[i] ?? 0;
      if (row.kind === 'work') this.onDemandUsd += row.onDemandUsd;
      const replica = row.job === null ? undefined : this.#replicas.get(row.job);
      if (replica === undefined) this.rows.charge(row);
      else charge(replica, row);
    });
    this.attempts += attempts.length;
    for (const attempt of attempts) {
      if (!this.#replicas.has(attempt.job)) this.lostS += lostS(attempt);
      if (attempt.outcome === 'moved') this.moves++;
      if (attempt.outcome === 'interrupted' && attempt.startedMs !== null) {
        const replica = this.#replicas.get(attempt.job);
        if (replica === undefined) this.rows.interrupted(attempt.job);
        else replica.interruptions++;
      }
    }
    this.#use(instance, rows, hours);
    const pool = this.#pools.get(instance.pool);
    if (pool !== undefined) this.#parts.onSettled?.({ instance, pool, rows, attempts });
  }

  #chargesOf(service: string): ServiceCharges {
    const known = this.services.get(service);
    if (known !== undefined) return known;
    const charges = { interruptions: 0, billedUsd: 0, onDemandUsd: 0 };
    this.services.set(service, charges);
    return charges;
  }

  #use(instance: Instance, rows: readonly LedgerRow[], hours: readonly number[]): void {
    const pool = this.#pools.get(instance.pool);
    if (pool === undefined) return;
    const use = this.uses.get(pool.id) ?? unused(pool);
    this.uses.set(pool.id, use);
    const { launchedMs, endedMs, endCause } = instance;
    if (launchedMs === null) {
      use.refused++;
      return;
    }
    this.launches++;
    use.launches++;
    const interrupted = Number(endCause === 'interrupted');
    this.interruptions += interrupted;
    use.interruptions += interrupted;
    for (const h of hours) use.hours += h;
    for (const row of rows) {
      use.billedUsd += row.usd;
      use.onDemandUsd += row.onDemandUsd;
    }
    this.changes.add(raw(launchedMs), 1, pool);
    if (endedMs !== null) this.changes.add(raw(endedMs), -1, pool);
  }
}

type ServiceCharges = { -readonly [K in 'interruptions' | 'billedUsd' | 'onDemandUsd']: ServiceUse[K] };

function charge(replica: ServiceCharges, { kind, usd, onDemandUsd }: LedgerRow): void {
  replica.billedUsd += usd;
  if (kind === 'work') replica.onDemandUsd += onDemandUsd;
}

export interface InstanceChange {
  readonly atMs: number;
  readonly by: 1 | -1;
  readonly pool: Pool;
}

/** Two numbers for each change. */
class InstanceChanges {
  readonly #atMs: number[] = [];
  /** Number of the pool from 1, negative where an instance went. */
  readonly #what: number[] = [];
  readonly #pools: Pool[] = [];
  readonly #numbers = new Map<Pool, number>();

  add(atMs: number, by: 1 | -1, pool: Pool): void {
    let number = this.#numbers.get(pool);
    if (number === undefined) this.#numbers.set(pool, (number = this.#pools.push(pool)));
    this.#atMs.push(atMs);
    this.#what.push(by * number);
  }

  /** Changes by time, equal ones in the order of insertion. O(changes log changes). */
  *inOrder(): Generator<InstanceChange> {
    const order = Uint32Array.from(this.#atMs.keys()).sort(
      (a, b) => (this.#atMs[a] ?? 0) - (this.#atMs[b] ?? 0) || a - b,
    );
    for (const i of order) {
      const what = this.#what[i] ?? 0;
      const pool = this.#pools[Math.abs(what) - 1];
      if (pool !== undefined) yield { atMs: this.#atMs[i] ?? 0, by: what > 0 ? 1 : -1, pool };
    }
  }
}

const unused = (pool: Pool): Tally => ({
  pool: pool.id,
  option: pool.option,
  launches: 0,
  interruptions: 0,
  refused: 0,
  hours: 0,
  billedUsd: 0,
  onDemandUsd: 0,
});

/** Running time that has to be run again, without the time of a move. */
const lostS = ({ outcome, startedMs, endedMs, leaving, keptS }: Attempt): number =>
  outcome === 'succeeded' || outcome === 'superseded' || startedMs === null || endedMs === null
    ? 0
    : Math.max(0, secondsBetween(startedMs, leaving?.sinceMs ?? endedMs) - raw(keptS));
