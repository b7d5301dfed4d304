/**
 * The tables. `body` columns hold an entity as JSON; columns beside it serve queries. Immutable job specifications, the
 * largest part of a job, lie apart so that a change of a job's state rewrites a short row. Partial indexes over
 * unfinished entities make a cycle's load depend on these alone, whatever the history. Rows are ordered by `arrival`, a
 * rowid. Numbers of jobs and instances are never reused (AUTOINCREMENT), also not after a deletion, so that cursors and
 * references of other rows stay true.
 */
const INITIAL = `
CREATE TABLE jobs (
  arrival INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  cancel_requested INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, arrival);
CREATE INDEX jobs_by_owner ON jobs (owner, state, arrival);
CREATE INDEX jobs_by_name ON jobs (name, state, arrival);

CREATE TABLE job_specs (job INTEGER PRIMARY KEY, spec TEXT NOT NULL) STRICT;

CREATE TABLE job_labels (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  job INTEGER NOT NULL,
  PRIMARY KEY (key, value, job)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  key TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  job INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  job TEXT NOT NULL,
  stage TEXT NOT NULL,
  idx INTEGER NOT NULL,
  open INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (job, stage, idx)
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_open ON tasks (job) WHERE open = 1;

CREATE TABLE attempts (
  arrival INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  job TEXT NOT NULL,
  instance TEXT NOT NULL,
  open INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX attempts_by_job ON attempts (job, arrival);
CREATE INDEX attempts_by_instance ON attempts (instance, arrival);
CREATE INDEX attempts_open ON attempts (arrival) WHERE open = 1;

CREATE TABLE instances (
  arrival INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  open INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX instances_open ON instances (open, arrival);

CREATE TABLE plans (arrival INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;

CREATE TABLE explanations (
  job TEXT PRIMARY KEY,
  plan TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX explanations_by_plan ON explanations (plan, ordinal);

CREATE TABLE effects (
  arrival INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  plan TEXT NOT NULL,
  open INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX effects_open ON effects (arrival) WHERE open = 1;
CREATE INDEX effects_by_plan ON effects (plan) WHERE open = 0;

CREATE TABLE ledger (
  instance TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  pool TEXT NOT NULL,
  kind TEXT NOT NULL,
  attempt TEXT,
  job TEXT,
  owner TEXT,
  template TEXT,
  from_ms REAL NOT NULL,
  to_ms REAL NOT NULL,
  usd REAL NOT NULL,
  on_demand_usd REAL NOT NULL,
  PRIMARY KEY (instance, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_job ON ledger (job);

CREATE TABLE events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms REAL NOT NULL,
  type TEXT NOT NULL,
  job TEXT,
  text TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE TABLE cursors (instance TEXT PRIMARY KEY, sequence INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Time from which an entity is final, wall time, and the cost of aged-out ones (ageing.ts). */
const AGEING = `
ALTER TABLE jobs ADD COLUMN over_ms REAL;
CREATE INDEX jobs_over ON jobs (over_ms) WHERE over_ms IS NOT NULL;
ALTER TABLE instances ADD COLUMN settled_ms REAL;
CREATE INDEX instances_settled ON instances (settled_ms) WHERE settled_ms IS NOT NULL;
ALTER TABLE idempotency ADD COLUMN at_ms REAL;
CREATE INDEX idempotency_at ON idempotency (at_ms);

CREATE TABLE aged_costs (
  by TEXT NOT NULL,
  key TEXT NOT NULL,
  work_usd REAL NOT NULL,
  wasted_usd REAL NOT NULL,
  idle_usd REAL NOT NULL,
  on_demand_usd REAL NOT NULL,
  hours REAL NOT NULL,
  PRIMARY KEY (by, key)
) STRICT, WITHOUT ROWID;
`;

/**
 * Jobs and instances get numbers that are never reused, also where the newest rows have aged out (SQLite,
 * "Autoincrement").
 */
const LASTING_NUMBERS = `
CREATE TABLE numbered_jobs (
  arrival INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL,
  cancel_requested INTEGER NOT NULL,
  body TEXT NOT NULL,
  over_ms REAL
) STRICT;
INSERT INTO numbered_jobs SELECT arrival, id, name, owner, state, cancel_requested, body, over_ms FROM jobs;
DROP TABLE jobs;
ALTER TABLE numbered_jobs RENAME TO jobs;
CREATE INDEX jobs_by_state ON jobs (state, arrival);
CREATE INDEX jobs_by_owner ON jobs (owner, state, arrival);
CREATE INDEX jobs_by_name ON jobs (name, state, arrival);
CREATE INDEX jobs_over ON jobs (over_ms) WHERE over_ms IS NOT NULL;

CREATE TABLE numbered_instances (
  arrival INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  open INTEGER NOT NULL,
  body TEXT NOT NULL,
  settled_ms REAL
) STRICT;
INSERT INTO numbered_instances SELECT arrival, id, open, body, settled_ms FROM instances;
DROP TABLE instances;
ALTER TABLE numbered_instances RENAME TO instances;
CREATE INDEX instances_open ON instances (open, arrival);
CREATE INDEX instances_settled ON instances (settled_ms) WHERE settled_ms IS NOT NULL;
`;

/** Idle hours of aged-out entities. Before this version idle time had a row of its own. */
const IDLE_HOURS = `
ALTER TABLE aged_costs ADD COLUMN idle_hours REAL NOT NULL DEFAULT 0;
UPDATE aged_costs SET idle_hours = hours WHERE key = '(idle)';
`;

/** First caller who asked for a job's cancellation, as JSON. Like the flag it is not written by the engine. */
const CANCELLED_BY = `
ALTER TABLE jobs ADD COLUMN cancelled_by TEXT;
`;

/** The hold that a person asked to end, by the time at which it began. */
const RELEASES = `ALTER TABLE jobs ADD COLUMN released_hold_ms REAL;`;

/** Submitter of a row's job, a key of cost sums. */
const CALLERS = `
ALTER TABLE ledger ADD COLUMN caller TEXT;
UPDATE ledger SET caller = (SELECT json_extract(jobs.body, '$.submittedBy.id') FROM jobs WHERE jobs.id = ledger.job);
`;

/** Aged-out cost of superseded running, which earlier versions called work. */
const SPECULATION = `
ALTER TABLE aged_costs ADD COLUMN speculative_usd REAL NOT NULL DEFAULT 0;
`;

/** Aged-out cost of moves, which earlier versions called work or wasted. */
const MOVES = `
ALTER TABLE aged_costs ADD COLUMN moved_usd REAL NOT NULL DEFAULT 0;
`;

/** Services, each as one record that is replaced as a whole (lib/domain/service.ts). */
const SERVICES = `
CREATE TABLE services (name TEXT PRIMARY KEY, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Step i takes a database from version i to i + 1. Steps are only ever appended: a released one never changes. */
export const MIGRATIONS: readonly string[] = [
  INITIAL,
  AGEING,
  LASTING_NUMBERS,
  IDLE_HOURS,
  CANCELLED_BY,
  RELEASES,
  CALLERS,
  SPECULATION,
  MOVES,
  SERVICES,
];
