import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from './faults.ts';
import { MIGRATIONS } from './sqlite-schema.ts';

/** Longest wait for another writer. Commits take milliseconds; a wait of seconds means that one hangs. */
const BUSY_TIMEOUT_MS = 5000;
/**
 * Time for which SQLite itself waits on a busy database, before it is asked again. Its own waits grow to 100 ms, so
 * under a stream of submissions a commit would miss the free moments between them.
 */
const BUSY_POLL_MS = 1;
const SQLITE_BUSY = 5;
/** Smaller databases are checked whole when opened (some 100 MB/s); of larger ones only the parts that are read. */
const CHECK_BELOW_BYTES = 32 * 2 ** 20;

export interface DatabaseOptions {
  readonly path: string;
  /** The database is full at this size, as if the disk were. Default: SQLite's own limit. */
  readonly maxBytes?: number;
  /** Longest wait for another connection's write, wall milliseconds. */
  readonly patienceMs?: number;
  readonly migrations?: readonly string[];
}

/**
 * One connection. Lifecycle: open (creates or migrates) -> statements -> close. Invariant: outside of `write` and
 * `read` no transaction is open. Every fault leaves as an EbbError. Crash points: SQLite's own; a transaction is
 * complete after COMMIT has returned (journal WAL, synchronous FULL: the log is on the disk by then) and not at all
 * before.
 */
export class Database {
  readonly path: string;
  readonly #db: DatabaseSync;
  readonly #patienceMs: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(options: DatabaseOptions) {
    this.path = options.path;
    this.#patienceMs = options.patienceMs ?? BUSY_TIMEOUT_MS;
    try {
      this.#db = new DatabaseSync(options.path, { timeout: BUSY_TIMEOUT_MS });
    } catch (error) {
      throw classify(error, options.path);
    }
    try {
      this.#configure(options);
      migrate(this, options.migrations ?? MIGRATIONS);
      this.#db.exec(`PRAGMA busy_timeout = ${BUSY_POLL_MS}`);
    } catch (error) {
      this.#db.close();
      throw classify(error, options.path);
    }
  }

  #configure(options: DatabaseOptions): void {
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    const pageBytes = this.#pragma('page_size');
    if (this.#pragma('page_count') * pageBytes < CHECK_BELOW_BYTES) {
      const finding = this.#db.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
      if (finding !== 'ok') {
        throw new EbbError('store.corrupt', {
          what: 'the database is damaged',
          got: `${this.path}: ${String(finding)}`,
          next: 'move the folder away, and make it again from a backup: `ebb restore FILE --dir DIR` (docs/local-mode.md)',
        });
      }
    }
    if (options.maxBytes !== undefined) {
      this.#db.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(options.maxBytes / pageBytes))}`);
    }
  }

  #pragma(name: string): number {
    return Number(this.#db.prepare(`PRAGMA ${name}`).get()?.[name]);
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** Runs a statement that writes; returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#patiently(() => this.#prepared(sql).run(...values)).changes);
  }

  /** Inserts one row; its rowid, or null when a conflict clause left it out. */
  insert(sql: string, ...values: SQLInputValue[]): number | null {
    const { changes, lastInsertRowid } = this.#patiently(() => this.#prepared(sql).run(...values));
    return Number(changes) === 0 ? null : Number(lastInsertRowid);
  }

  one<T>(sql: string, ...values: SQLInputValue[]): T | undefined {
    return this.#patiently(() => this.#prepared(sql).get(...values)) as T | undefined;
  }

  all<T>(sql: string, ...values: SQLInputValue[]): T[] {
    return this.#patiently(() => this.#prepared(sql).all(...values)) as T[];
  }

  /**
   * One write transaction: all of it or nothing. Takes the write lock at once, so that it never fails half-way for it.
   */
  write<T>(work: () => T): T {
    return this.#transaction('BEGIN IMMEDIATE', work);
  }

  /** Several reads of one state. */
  read<T>(work: () => T): T {
    return this.#transaction('BEGIN', work);
  }

  /** Keeps or undoes a part of a write transaction. */
  part<T>(work: () => T): T {
    this.#db.exec('SAVEPOINT part');
    try {
      const result = work();
      this.#db.exec('RELEASE part');
      return result;
    } catch (error) {
      // A full disk may have rolled back everything already; then there is no savepoint any more.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK TO part; RELEASE part');
      throw error;
    }
  }

  /** Undoes a transaction whose call was ended from outside, so that it could neither commit nor roll back. */
  abandon(): void {
    if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('ROLLBACK');
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  #transaction<T>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T {
    try {
      this.#patiently(() => this.#db.exec(begin));
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#db.isOpen && this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw classify(error, this.path);
    }
  }

  /** Repeats a statement refused for another connection's write: a refused statement has done nothing. */
  #patiently<T>(work: () => T): T {
    const patience = performance.now() + this.#patienceMs;
    for (;;) {
      try {
        return work();
      } catch (error) {
        const { errcode } = error as { errcode?: number };
        if (errcode === undefined || (errcode & 0xff) !== SQLITE_BUSY || performance.now() > patience) throw error;
      }
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Brings the database to the newest version. Two openers at once: the second finds the work done. */
function migrate(db: Database, migrations: readonly string[]): void {
  if (versionOf(db) === migrations.length) return;
  db.write(() => {
    const version = versionOf(db);
    if (version > migrations.length) {
      throw new EbbError('store.newer', {
        what: 'the database was written by a newer version of Ebbtide',
        got: `${db.path}: version ${version}`,
        allowed: `up to version ${migrations.length}`,
        next: 'install the newer version, or name another folder',
      });
    }
    if (version === 0) db.exec('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID');
    for (const step of migrations.slice(version)) db.exec(step);
    db.run(`INSERT OR REPLACE INTO meta VALUES ('schema-version', ?)`, String(migrations.length));
  });
}

/** 0 for an empty file. */
function versionOf(db: Database): number {
  const tables = db.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table'`).map((t) => t.name);
  if (tables.length === 0) return 0;
  const stored = tables.includes('meta')
    ? db.one<{ value: string }>(`SELECT value FROM meta WHERE key = 'schema-version'`)?.value
    : undefined;
  const version = Number(stored);
  if (stored === undefined || !Number.isInteger(version) || version < 1) {
    throw new EbbError('store.corrupt', {
      what: 'this is a database of another program',
      got: `${db.path}: tables ${tables.slice(0, 5).join(', ')}`,
      next: 'move it away, or name another folder',
    });
  }
  return version;
}
