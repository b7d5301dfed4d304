import { raw } from '../../../kernel/units.ts';
import type { EventRecord } from '../../../ports/store.ts';
import type { Database } from './database.ts';

/** Appends an event; its text is made before the write lock is held. */
export function putEvent({ atMs, type, job, text, data }: Omit<EventRecord, 'sequence'>): (db: Database) => void {
  const json = JSON.stringify(data);
  return (db) =>
    db.run(
      'INSERT INTO events (at_ms, type, job, text, data) VALUES (?, ?, ?, ?, ?)',
      raw(atMs),
      type,
      job,
      text,
      json,
    );
}

/** Events older than the newest `keep`. */
export const forgetEvents =
  (keep: number) =>
  (db: Database): void => {
    db.run('DELETE FROM events WHERE sequence <= (SELECT max(sequence) FROM events) - ?', keep);
  };
