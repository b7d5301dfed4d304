import { unreachable } from '../../../kernel/errors.ts';
import { raw } from '../../../kernel/units.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import { isOver, type Attempt, type Job, type Task } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { Plan } from '../../../domain/plan.ts';
import type { Change, EffectRecord, Retention } from '../../../ports/store.ts';
import { ageOut } from './ageing.ts';
import type { Database } from './database.ts';
import { asFlag, bodyOf, isOpenAttempt, isOpenTask } from './sqlite-rows.ts';
import { forgetEvents, putEvent } from './event-log.ts';
import { insertJob } from './submissions.ts';

/** A change with its text made: the remaining work under the write lock. */
type Write = (db: Database) => void;

/**
 * Prepares a list of changes. Making text of entities is most of the work of a large commit and is done here, before
 * the transaction, so that submissions of other connections do not wait for it.
 */
/** `nowMs`: wall time. */
export function prepare(changes: readonly Change[], retention: Retention, nowMs: number): Write {
  const writes = changes.map((change) => writeOf(change, nowMs));
  if (changes.some((c) => c.put === 'plan')) writes.push(forgetPlans(retention.plans));
  const closed = changes.flatMap((c) => (c.put === 'effect' && c.value.outcome !== null ? [c.value] : []));
  if (closed.length > 0) writes.push(forgetEffects(closed));
  if (changes.some((c) => c.put === 'event')) writes.push(forgetEvents(retention.events));
  writes.push((db) => ageOut(db, retention, nowMs));
  return (db) => {
    for (const write of writes) write(db);
  };
}

function writeOf(change: Change, nowMs: number): Write {
  switch (change.put) {
    case 'job':
      return putJob(change.value, nowMs);
    case 'task':
      return putTask(change.value);
    case 'attempt':
      return putAttempt(change.value);
    case 'instance':
      return putInstance(change.value, nowMs);
    case 'plan':
      return putPlan(change.value);
    case 'effect':
      return putEffect(change.value);
    case 'ledger':
      return putLedger(change.instance, change.value);
    case 'event':
      return putEvent(change.value);
    case 'cursor':
      return (db) => db.run('INSERT OR REPLACE INTO cursors VALUES (?, ?)', change.instance, change.sequence);
    case 'memory':
      return (db) => db.run('INSERT OR REPLACE INTO memory VALUES (?, ?)', change.key, change.value);
    default:
      return unreachable(change, 'store commit');
  }
}

function putTask(task: Task): Write {
  const { job, stage, index } = task;
  const open = asFlag(isOpenTask(task));
  const body = JSON.stringify(task);
  return (db) =>
    db.run(
      `INSERT INTO tasks VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (job, stage, idx) DO UPDATE SET open = excluded.open, body = excluded.body`,
      job,
      stage,
      index,
      open,
      body,
    );
}

function putAttempt(attempt: Attempt): Write {
  const { id, job, instance } = attempt;
  const open = asFlag(isOpenAttempt(attempt));
  const body = JSON.stringify(attempt);
  return (db) =>
    db.run(
      `INSERT INTO attempts (id, job, instance, open, body) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET
         job = excluded.job, instance = excluded.instance, open = excluded.open, body = excluded.body`,
      id,
      job,
      instance,
      open,
      body,
    );
}

function putInstance(instance: Instance, nowMs: number): Write {
  const open = asFlag(isLive(instance));
  const isSettled = instance.state === 'ended' && instance.costUsd !== null;
  const body = JSON.stringify(instance);
  return (db) =>
    db.run(
      `INSERT INTO instances (id, open, body, settled_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body, settled_ms = excluded.settled_ms`,
      instance.id,
      open,
      body,
      isSettled ? nowMs : null,
    );
}

function putEffect(effect: EffectRecord): Write {
  const { key, plan, outcome } = effect;
  const body = JSON.stringify(effect);
  return (db) =>
    db.run(
      `INSERT INTO effects (key, plan, open, body) VALUES (?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET plan = excluded.plan, open = excluded.open, body = excluded.body`,
      key,
      plan,
      asFlag(outcome === null),
      body,
    );
}

/** The specification stays as submitted, and a cancel request stays, whatever copy the engine puts. */
function putJob(job: Job, nowMs: number): Write {
  const body = JSON.stringify(bodyOf(job));
  const overMs = isOver(job.state) ? nowMs : null;
  return (db) => {
    const update = (): number =>
      db.run(
        'UPDATE jobs SET state = ?, body = ?, over_ms = ?, cancel_requested = max(cancel_requested, ?) WHERE id = ?',
        job.state,
        body,
        overMs,
        asFlag(job.cancelRequested),
        job.id,
      );
    if (update() > 0) return;
    insertJob(db, job);
    if (overMs !== null) update();
  };
}

function putPlan(plan: Plan): Write {
  const { explanations, ...rest } = plan;
  const body = JSON.stringify(rest);
  const texts = explanations.map((e) => [e.job, JSON.stringify(e)] as const);
  return (db) => {
    db.run(
      'INSERT INTO plans (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body',
      plan.id,
      body,
    );
    texts.forEach(([job, text], ordinal) => {
      db.run('INSERT OR REPLACE INTO explanations VALUES (?, ?, ?, ?)', job, plan.id, ordinal, text);
    });
  };
}

function putLedger(instance: string, rows: readonly LedgerRow[]): Write {
  return (db) => {
    db.run('DELETE FROM ledger WHERE instance = ?', instance);
    rows.forEach((r, ordinal) => {
      db.run(
        'INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        instance,
        ordinal,
        r.pool,
        r.kind,
        r.attempt,
        r.job,
        r.owner,
        r.template,
        raw(r.fromMs),
        raw(r.toMs),
        r.usd,
        r.onDemandUsd,
        r.caller,
      );
    });
  };
}

/** Plans beyond the newest `keep`, with the outcomes of their effects. */
const forgetPlans =
  (keep: number): Write =>
  (db) => {
    const old = db.all<{ arrival: number; id: string }>(
      'SELECT arrival, id FROM plans ORDER BY arrival DESC LIMIT -1 OFFSET ?',
      keep,
    );
    for (const { arrival, id } of old) {
      db.run('DELETE FROM effects WHERE plan = ? AND open = 0', id);
      db.run('DELETE FROM plans WHERE arrival = ?', arrival);
    }
  };

/** An effect that is confirmed after its plan was forgotten goes after it. */
const forgetEffects =
  (closed: readonly EffectRecord[]): Write =>
  (db) => {
    for (const { key } of closed) {
      db.run('DELETE FROM effects WHERE key = ? AND open = 0 AND plan NOT IN (SELECT id FROM plans)', key);
    }
  };
