import type { AttemptId, InstanceId, JobId } from '../../../kernel/ids.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { epochMs } from '../../../kernel/units.ts';
import type { Instance } from '../../../domain/instance.ts';
import type { Attempt, Job, JobSpec, Task } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Explanation, Plan } from '../../../domain/plan.ts';
import type { Service } from '../../../domain/service.ts';
import type {
  ActiveState,
  Cancelling,
  Change,
  EffectRecord,
  EventRecord,
  JobFilter,
  NewEvent,
  Page,
  Retention,
  Store,
  Submission,
  SubmitOutcome,
  Submitted,
} from '../../../ports/store.ts';
import { prepare } from './commit.ts';
import { costsBy } from './ledger-costs.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { classify } from './faults.ts';
import { filteredJobs, jobById, newestNamed, openJobs, OPEN_STATES, specOf } from './job-queries.ts';
import { jobOf, type JobRow } from './sqlite-rows.ts';
import { allServices, dropService, putService, serviceNamed } from './services.ts';
import { cancelOne, GroupCommit, submittedUnder } from './submissions.ts';
import type { By, CostRow } from '../../../domain/costs.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';
import { decodeCursor, pageOf } from '../../stores/paging.ts';

export interface SqliteStoreOptions extends DatabaseOptions {
  readonly retention?: Retention;
  /** Wall time, for ageing. */
  readonly nowMs?: () => number;
}

interface Bodied {
  readonly body: string;
}
const parse = <T>(row: Bodied): T => JSON.parse(row.body) as T;

/**
 * The store of local mode: one SQLite file, opened by any number of threads and processes, each through a store of its
 * own. Lifecycle: open -> use -> close; every method fails with an EbbError afterwards. Invariants: a resolved write is
 * on the disk; writes of several connections are serialised by SQLite's write lock, which is held for milliseconds.
 * Errors: `store.corrupt`, `store.full`, `store.newer` (only when opening), `too-many-requests` (lock not had in 5 s).
 */
export class SqliteStore implements Store {
  readonly #db: Database;
  readonly #group: GroupCommit;
  readonly #retention: Retention;
  readonly #nowMs: () => number;
  /**
   * Parsed specifications of the jobs that were active when last loaded, by job id: they never change, and ids are
   * drawn at random.
   */
  #specs = new Map<string, JobSpec>();

  constructor(options: SqliteStoreOptions) {
    this.#db = new Database(options);
    this.#retention = options.retention ?? DEFAULT_RETENTION;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#group = new GroupCommit(this.#db, this.#retention, this.#nowMs);
  }

  /** Cleans up after a call of the thread was ended from outside. */
  abandon(): void {
    this.#db.abandon();
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return this.#group.submit(submissions);
  }

  submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>> {
    return this.#reply(() =>
      this.#db.read(() => {
        const found = new Map<string, Submitted>();
        for (const key of keys) {
          const known = submittedUnder(this.#db, key);
          if (known !== null) found.set(key, known);
        }
        return found;
      }),
    );
  }

  requestCancel(job: JobId, by?: Cancelling): Promise<boolean> {
    return this.#reply(() => cancelOne(this.#db, job, by));
  }

  requestRelease(job: JobId): Promise<boolean> {
    return this.#reply(
      () =>
        this.#db.run(
          `UPDATE jobs SET released_hold_ms = json_extract(body, '$.held.sinceMs') WHERE id = ? AND state = 'held'`,
          job,
        ) > 0,
    );
  }

  takeLease(holder: string): Promise<number> {
    return this.#reply(() =>
      this.#db.write(() => {
        const token = this.#leaseToken() + 1;
        this.#db.run(
          `INSERT OR REPLACE INTO meta VALUES ('lease-token', ?), ('lease-holder', ?)`,
          String(token),
          holder,
        );
        return token;
      }),
    );
  }

  commit(token: number, changes: readonly Change[]): Promise<void> {
    return this.#reply(() => {
      const apply = prepare(changes, this.#retention, this.#nowMs());
      this.#db.write(() => {
        const newest = this.#leaseToken();
        if (token !== newest) {
          throw new EbbError('fenced', {
            what: 'another engine has taken over; nothing was written',
            got: `token ${token}`,
            allowed: `token ${newest}`,
            next: 'stop this engine',
          });
        }
        apply(this.#db);
      });
    });
  }

  loadActive(): Promise<ActiveState> {
    return this.#reply(() => this.#db.read(() => this.#loadActive()));
  }

  #loadActive(): ActiveState {
    const db = this.#db;
    const specs = new Map<string, JobSpec>();
    const jobs = openJobs(db).map((row) => {
      const spec = this.#specs.get(row.id) ?? specOf(db, row.arrival);
      specs.set(row.id, spec);
      return jobOf(row, spec);
    });
    this.#specs = specs;
    return {
      jobs,
      tasks: db
        .all<Bodied>(
          `SELECT t.body FROM tasks t JOIN jobs j ON j.id = t.job
           WHERE t.open = 1 AND j.state IN ${OPEN_STATES}`,
        )
        .map(parse<Task>),
      attempts: db.all<Bodied>('SELECT body FROM attempts WHERE open = 1 ORDER BY arrival').map(parse<Attempt>),
      instances: db.all<Bodied>('SELECT body FROM instances WHERE open = 1 ORDER BY arrival').map(parse<Instance>),
      openEffects: db.all<Bodied>('SELECT body FROM effects WHERE open = 1 ORDER BY arrival').map(parse<EffectRecord>),
      cursors: new Map(
        db
          .all<{ instance: InstanceId; sequence: number }>('SELECT instance, sequence FROM cursors')
          .map((c) => [c.instance, c.sequence]),
      ),
    };
  }

  job(id: JobId): Promise<Job | null> {
    return this.#reply(() => this.#job(jobById(this.#db, id)));
  }

  jobs(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>> {
    return this.#reply(() => {
      const before = after === null ? null : decodeCursor('jobs', after);
      const rows = filteredJobs(this.#db, filter, { limit: limit + 1, before });
      return pageOf(rows, { list: 'jobs', limit, value: (row) => this.#jobOf(row) });
    });
  }

  findJobs(refs: readonly string[]): Promise<ReadonlyMap<string, Job>> {
    return this.#reply(() =>
      this.#db.read(() => {
        const found = new Map<string, Job>();
        for (const ref of refs) {
          const job = this.#job(jobById(this.#db, ref) ?? newestNamed(this.#db, ref));
          if (job !== null) found.set(ref, job);
        }
        return found;
      }),
    );
  }

  tasks(job: JobId): Promise<readonly Task[]> {
    return this.#bodies<Task>('SELECT body FROM tasks WHERE job = ? ORDER BY stage, idx', job);
  }

  attempts(job: JobId): Promise<readonly Attempt[]> {
    return this.#bodies<Attempt>('SELECT body FROM attempts WHERE job = ? ORDER BY arrival', job);
  }

  attemptsOn(instance: InstanceId): Promise<readonly Attempt[]> {
    return this.#bodies<Attempt>('SELECT body FROM attempts WHERE instance = ? ORDER BY arrival', instance);
  }

  async attempt(id: AttemptId): Promise<Attempt | null> {
    return (await this.#bodies<Attempt>('SELECT body FROM attempts WHERE id = ?', id))[0] ?? null;
  }

  instances(live: boolean | null, limit: number, after: string | null): Promise<Page<Instance>> {
    return this.#reply(() => {
      const before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('instances', after);
      const rows = this.#db.all<Bodied & { arrival: number }>(
        `SELECT arrival, body FROM instances WHERE arrival < ? ${live === null ? '' : `AND open = ${live ? 1 : 0}`}
         ORDER BY arrival DESC LIMIT ?`,
        before,
        limit + 1,
      );
      return pageOf(rows, { list: 'instances', limit, value: parse<Instance> });
    });
  }

  plans(limit: number, after: string | null): Promise<Page<Plan>> {
    return this.#reply(() =>
      this.#db.read(() => {
        const before = after === null ? Number.MAX_SAFE_INTEGER : decodeCursor('plans', after);
        const rows = this.#db.all<Bodied & { arrival: number; id: string }>(
          'SELECT arrival, id, body FROM plans WHERE arrival < ? ORDER BY arrival DESC LIMIT ?',
          before,
          limit + 1,
        );
        const value = (row: Bodied & { id: string }): Plan => ({
          ...parse<Omit<Plan, 'explanations'>>(row),
          explanations: this.#db
            .all<Bodied>('SELECT body FROM explanations WHERE plan = ? ORDER BY ordinal, job', row.id)
            .map(parse<Explanation>),
        });
        return pageOf(rows, { list: 'plans', limit, value });
      }),
    );
  }

  async explanation(job: JobId): Promise<Explanation | null> {
    return (await this.#bodies<Explanation>('SELECT body FROM explanations WHERE job = ?', job))[0] ?? null;
  }

  ledger(of: { readonly job: JobId } | { readonly instance: InstanceId } | 'all'): Promise<readonly LedgerRow[]> {
    const columns = `instance, pool, kind, attempt, job, owner, template,
      from_ms AS fromMs, to_ms AS toMs, usd, on_demand_usd AS onDemandUsd, caller`;
    const [where, values] =
      of === 'all' ? ['', []] : 'job' in of ? ['WHERE job = ?', [of.job]] : ['WHERE instance = ?', [of.instance]];
    return this.#reply(() =>
      this.#db
        .all<LedgerRow>(`SELECT ${columns} FROM ledger ${where} ORDER BY instance, ordinal`, ...values)
        .map((row) => ({ ...row })),
    );
  }

  costs(by: By): Promise<readonly CostRow[]> {
    return this.#reply(() => costsBy(this.#db, by).map((row) => ({ ...row })));
  }

  events(after: number, limit: number): Promise<readonly EventRecord[]> {
    interface Row extends Omit<EventRecord, 'atMs' | 'data'> {
      readonly at_ms: number;
      readonly data: string;
    }
    return this.#reply(() =>
      this.#db
        .all<Row>('SELECT * FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?', after, limit)
        .map(({ at_ms, data, ...row }) => ({
          ...row,
          atMs: epochMs(at_ms),
          data: JSON.parse(data) as EventRecord['data'],
        })),
    );
  }

  services(): Promise<readonly Service[]> {
    return this.#reply(() => allServices(this.#db));
  }

  service(name: string): Promise<Service | null> {
    return this.#reply(() => serviceNamed(this.#db, name));
  }

  putService(service: Service, events: readonly NewEvent[]): Promise<boolean> {
    return this.#reply(() => putService(this.#db, service, events));
  }

  dropService(service: Pick<Service, 'name' | 'version'>, events: readonly NewEvent[]): Promise<boolean> {
    return this.#reply(() => dropService(this.#db, service, events));
  }

  memory(prefix: string): Promise<ReadonlyMap<string, string>> {
    return this.#reply(
      () =>
        new Map(
          this.#db
            // The last code point there is: keys that begin with the prefix lie in this range of the index.
            .all<{ key: string; value: string }>(
              'SELECT key, value FROM memory WHERE key >= ? AND key < ? ORDER BY key',
              prefix,
              `${prefix}\u{10ffff}`,
            )
            .map((m) => [m.key, m.value]),
        ),
    );
  }

  /** Writes due submissions, then closes the file. */
  async close(): Promise<void> {
    this.#group.flush();
    this.#db.close();
  }

  #leaseToken(): number {
    return Number(this.#db.one<{ value: string }>(`SELECT value FROM meta WHERE key = 'lease-token'`)?.value ?? 0);
  }

  #job(row: JobRow | undefined): Job | null {
    return row === undefined ? null : this.#jobOf(row);
  }

  #jobOf(row: JobRow): Job {
    return jobOf(row, this.#specs.get(row.id) ?? (JSON.parse(row.spec) as JobSpec));
  }

  #bodies<T>(sql: string, key: string): Promise<readonly T[]> {
    return this.#reply(() => this.#db.all<Bodied>(sql, key).map(parse<T>));
  }

  /** SQLite answers at once; the port is asynchronous because other stores are not. */
  async #reply<T>(work: () => T): Promise<T> {
    try {
      return work();
    } catch (error) {
      throw classify(error, this.#db.path);
    }
  }
}

/** Opens or creates the database and brings it to the current version. Errors as of the class. */
export const openSqliteStore = (options: SqliteStoreOptions): SqliteStore => new SqliteStore(options);
