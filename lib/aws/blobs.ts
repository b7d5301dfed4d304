/**
 * What one step of the cycle leaves for the next: values of any size behind references that are small enough for the
 * state machine, which carries 256 KiB at most (Step Functions, "Service quotas"). A small value is its own reference, which
 * spares a put and a get; a larger one lies in the bucket under `cycle/<execution>/`, where a lifecycle rule ends it within days.
 *
 * Each name is written by one step of one round and read by later ones, so a step that is repeated writes what was there.
 */
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import { EbbError } from '../kernel/errors.ts';
import type { Blobs } from './store/blobs.ts';

/** A step's answer holds a handful of references: with each of them below this, all of them stay far below the limit. */
const INLINE_BYTES = 24_576;
const INLINE = 'data:';
const STORED = 's3:';

export class Carrier {
  readonly #blobs: Pick<Blobs, 'put' | 'get'>;

  constructor(blobs: Pick<Blobs, 'put' | 'get'>) {
    this.#blobs = blobs;
  }

  /** `value` may hold whatever structured clone carries: Maps and typed arrays too. `name` is within `cycle/`. */
  async put(value: unknown, name: string, inlineBytes = INLINE_BYTES): Promise<string> {
    const content = gzipSync(serialize(value));
    if (content.length <= inlineBytes) return `${INLINE}${content.toString('base64')}`;
    const key = `cycle/${name}`;
    await this.#blobs.put(key, content);
    return `${STORED}${key}`;
  }

  /** The value behind a reference. Throws `not-found` for one that is over, `internal` for what is no reference. */
  async get<T>(reference: string): Promise<T> {
    return deserialize(gunzipSync(await this.#content(reference))) as T;
  }

  async #content(reference: string): Promise<Uint8Array> {
    if (reference.startsWith(INLINE)) return Buffer.from(reference.slice(INLINE.length), 'base64');
    if (reference.startsWith(STORED)) return this.#blobs.get(reference.slice(STORED.length));
    throw new EbbError('internal', { what: 'a step was given what is no reference', got: reference.slice(0, 80) });
  }
}
