import type { Service } from '../../../domain/service.ts';
import type { NewEvent } from '../../../ports/store.ts';
import type { Database } from './database.ts';
import { putEvent } from './event-log.ts';

interface Row {
  readonly body: string;
}

const serviceOf = ({ body }: Row): Service => JSON.parse(body) as Service;

export const allServices = (db: Database): readonly Service[] =>
  db.all<Row>('SELECT body FROM services ORDER BY name').map(serviceOf);

export function serviceNamed(db: Database, name: string): Service | null {
  const row = db.one<Row>('SELECT body FROM services WHERE name = ?', name);
  return row === undefined ? null : serviceOf(row);
}

/** False if the stored version is another than the one before. */
export function putService(db: Database, service: Service, events: readonly NewEvent[]): boolean {
  const body = JSON.stringify(service);
  const { name, version } = service;
  return db.write(() => {
    const changed =
      version === 1
        ? db.run('INSERT INTO services VALUES (?, 1, ?) ON CONFLICT (name) DO NOTHING', name, body)
        : db.run(
            'UPDATE services SET version = ?, body = ? WHERE name = ? AND version = ?',
            version,
            body,
            name,
            version - 1,
          );
    if (changed === 0) return false;
    for (const event of events) putEvent(event)(db);
    return true;
  });
}

export const dropService = (
  db: Database,
  { name, version }: Pick<Service, 'name' | 'version'>,
  events: readonly NewEvent[],
): boolean =>
  db.write(() => {
    if (db.run('DELETE FROM services WHERE name = ? AND version = ?', name, version) === 0) return false;
    for (const event of events) putEvent(event)(db);
    return true;
  });
