import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { EbbError } from '../../../kernel/errors.ts';
import { DICTIONARY } from './dictionary.ts';
import { FIRST_VERSION, SCHEMA_VERSION, upgraded, type Place } from './upgrades.ts';

export type Item = Record<string, AttributeValue>;

/** Text length from which compression helps. */
const COMPRESS_FROM_BYTES = 48;
/** Encodings. Those of version 5 have no version; later ones are followed by it. */
const PLAIN_OF_5 = 0;
const DEFLATED_OF_5 = 1;
const PLAIN = 2;
const DEFLATED = 3;

/** Value as bytes: encoding, version of the writer, and JSON, compressed if that helps. */
export function encode(value: unknown): Uint8Array {
  const text = Buffer.from(JSON.stringify(value));
  if (text.length >= COMPRESS_FROM_BYTES) {
    const packed = deflateRawSync(text, { dictionary: DICTIONARY });
    if (packed.length < text.length) return Buffer.concat([Buffer.of(DEFLATED, SCHEMA_VERSION), packed]);
  }
  return Buffer.concat([Buffer.of(PLAIN, SCHEMA_VERSION), text]);
}

/** Value in the form of this version. `at`: its place. */
export function decode<T>(bytes: Uint8Array, at: Place): T {
  const { value, version } = decoded(bytes);
  return upgraded(value, at, version) as T;
}

/** Value as written, and the version of its writer. Throws `store.newer`, `store.corrupt`. */
export function decoded(bytes: Uint8Array): { readonly value: unknown; readonly version: number } {
  const [form, second = 0] = bytes;
  const isVersioned = form === PLAIN || form === DEFLATED;
  const version = isVersioned ? second : FIRST_VERSION;
  expectReadable(version, 'a stored value');
  const text = plainOf(form, bytes.subarray(isVersioned ? 2 : 1));
  return { value: JSON.parse(Buffer.from(text).toString()), version };
}

function plainOf(form: number | undefined, body: Uint8Array): Uint8Array {
  switch (form) {
    case PLAIN_OF_5:
    case PLAIN:
      return body;
    case DEFLATED_OF_5:
    case DEFLATED:
      return inflateRawSync(body, { dictionary: DICTIONARY });
    default:
      throw new EbbError('store.corrupt', {
        what: 'a stored value is of an unknown form',
        got: `form ${form}`,
        next: 'deploy the newest version; if it says the same, restore the table from its point-in-time backup',
      });
  }
}

export const text = (value: string): AttributeValue => ({ S: value });
export const number = (value: number): AttributeValue => ({ N: String(value) });
export const flag = (value: boolean): AttributeValue => ({ BOOL: value });
export const bytes = (value: Uint8Array): AttributeValue => ({ B: value });
export const body = (value: unknown): AttributeValue => bytes(encode(value));

export const numberOf = (item: Item | undefined, name: string): number => Number(item?.[name]?.N ?? 0);
export const flagOf = (item: Item | undefined, name: string): boolean => item?.[name]?.BOOL === true;
export const textAt = (item: Item | undefined, name: string): string => item?.[name]?.S ?? '';

export const placeOf = (item: Item, attribute: string): Place => ({
  pk: textAt(item, 'pk'),
  sk: textAt(item, 'sk'),
  attribute,
});

/**
 * Value of an item in the form of this version. Throws `store.newer` for a later version, `store.corrupt` for an
 * unreleased one.
 */
export function bodyOf<T>(item: Item, name = 'b'): T {
  checkVersion(item);
  const value = item[name]?.B;
  if (value === undefined) {
    throw new EbbError('store.corrupt', {
      what: 'an item of the table has no content',
      got: `${textAt(item, 'pk')} ${textAt(item, 'sk')}`,
      next: 'restore the table from its point-in-time backup',
    });
  }
  return decode<T>(value, placeOf(item, name));
}

export const checkVersion = (item: Item): void => expectReadable(numberOf(item, 'v'), textAt(item, 'pk'));

function expectReadable(version: number, what: string): void {
  if (version >= FIRST_VERSION && version <= SCHEMA_VERSION) return;
  const isNewer = version > SCHEMA_VERSION;
  throw new EbbError(isNewer ? 'store.newer' : 'store.corrupt', {
    what: `the table was written by ${isNewer ? 'a newer' : 'an unreleased'} version of Ebbtide`,
    got: `${what} of version ${version}`,
    allowed: `versions ${FIRST_VERSION} to ${SCHEMA_VERSION}`,
    next: isNewer ? 'deploy the newer version' : 'deploy a stack of another name, which has a table of its own',
  });
}
