import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { EbbError } from '../../kernel/errors.ts';
import { DICTIONARY } from './dictionary.ts';
import { SCHEMA_VERSION } from './keys.ts';

export type Item = Record<string, AttributeValue>;

/** Shorter texts do not become shorter by compression. */
const COMPRESS_FROM_BYTES = 48;
const PLAIN = 0;
const DEFLATED = 1;

/** A value as bytes: JSON, compressed where that helps. The first byte says which. */
export function encode(value: unknown): Uint8Array {
  const text = Buffer.from(JSON.stringify(value));
  if (text.length >= COMPRESS_FROM_BYTES) {
    const packed = deflateRawSync(text, { dictionary: DICTIONARY });
    if (packed.length < text.length) return Buffer.concat([Buffer.of(DEFLATED), packed]);
  }
  return Buffer.concat([Buffer.of(PLAIN), text]);
}

export function decode<T>(bytes: Uint8Array): T {
  const [form] = bytes;
  return JSON.parse(Buffer.from(plainOf(form, bytes.subarray(1))).toString()) as T;
}

function plainOf(form: number | undefined, body: Uint8Array): Uint8Array {
  switch (form) {
    case PLAIN:
      return body;
    case DEFLATED:
      return inflateRawSync(body, { dictionary: DICTIONARY });
    default:
      throw new EbbError('store.corrupt', { what: 'a stored value is of an unknown form', got: `form ${form}` });
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

/** The body of an item. Throws `store.newer` for an item that a later version wrote, `store.corrupt` for one of an earlier one, which was never released. */
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
  return decode<T>(value);
}

export function checkVersion(item: Item): void {
  const version = numberOf(item, 'v');
  if (version === SCHEMA_VERSION) return;
  const isNewer = version > SCHEMA_VERSION;
  throw new EbbError(isNewer ? 'store.newer' : 'store.corrupt', {
    what: `the table was written by ${isNewer ? 'a newer' : 'an unreleased'} version of Ebbtide`,
    got: `${textAt(item, 'pk')} of version ${version}`,
    allowed: `version ${SCHEMA_VERSION}`,
    next: isNewer ? 'deploy the newer version' : 'deploy a stack of another name, which has a table of its own',
  });
}
