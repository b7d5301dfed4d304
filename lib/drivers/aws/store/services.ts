import type { Service } from '../../../domain/service.ts';
import type { NewEvent } from '../../../ports/store.ts';
import { body, bodyOf, number, numberOf } from './codec.ts';
import type { Write } from './dynamo-table.ts';
import { eventWrites } from './event-items.ts';
import type { Batch, Head } from './journal.ts';
import { SERVICES, serviceKey } from './keys.ts';
import type { Reader } from './view.ts';

export const allServices = async (view: Reader): Promise<readonly Service[]> =>
  (await view.range({ pk: SERVICES })).map((item) => bodyOf<Service>(item));

export async function serviceNamed(view: Reader, name: string): Promise<Service | null> {
  const item = await view.get(serviceKey(name));
  return item === undefined ? null : bodyOf<Service>(item);
}

/** Version of the stored service; 0: there is none. */
export const versionOf = async (view: Reader, name: string): Promise<number> =>
  numberOf(await view.get(serviceKey(name)), 'n');

export const putWrite = (service: Service): Write => ({
  key: serviceKey(service.name),
  set: { n: number(service.version), b: body(service) },
});

export const dropWrite = (name: string): Write => ({ key: serviceKey(name), isDeleted: true });

/** A write of a service with its events, as one commit. */
export const serviceBatch = (write: Write, events: readonly NewEvent[], head: Head): Batch => ({
  writes: [write, ...(events.length === 0 ? [] : eventWrites(head.events + 1, events))],
  head: { ...head, events: head.events + events.length },
});
