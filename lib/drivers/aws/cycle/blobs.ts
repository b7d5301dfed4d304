/**
 * Values that one step of the cycle passes to the next, of any size, behind references. The state machine holds at most
 * 256 KiB (Step Functions, "Service quotas"). A small value is its own reference, which saves a put and a get. A larger
 * one is in the bucket under `cycle/<execution>/`, where a lifecycle rule deletes it within days.
 *
 * One step of one round writes each name, so a repeated step writes the same value again.
 *
 * A deployment replaces the functions of the steps one after the other. Each value therefore names its writer, and a
 * step reads only values of its own version. Other values throw `superseded`: the round ends, nothing unrecorded is
 * done, and the next cycle serves its triggers (wake.ts).
 */
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import { EbbError } from '../../../kernel/errors.ts';
import type { Blobs } from '../store/blobs.ts';
import { SCHEMA_VERSION } from '../store/upgrades.ts';

/** Largest inline value. A step's answer has a few references, so the sum stays far below the limit. */
const INLINE_BYTES = 24_576;
const INLINE = 'data:';
const STORED = 's3:';
/** Format version of `serialize`, its second byte. An older Node may not read the format of a newer one. */
const [, CLONE_FORMAT = 0] = serialize(null);
/** End of the writer's line. */
const LINE_END = 10;
/** Upper bound of the writer's line. */
const WRITER_BYTES = 400;

export class Carrier {
  readonly #blobs: Pick<Blobs, 'put' | 'get'>;
  readonly #writer: string;

  /** `code`: version of the deployed code. */
  constructor(blobs: Pick<Blobs, 'put' | 'get'>, code: string) {
    this.#blobs = blobs;
    this.#writer = `${code} schema ${SCHEMA_VERSION} clone ${CLONE_FORMAT}`;
  }

  /** `value`: anything that structured clone accepts, including Maps and typed arrays. `name`: relative to `cycle/`. */
  async put(value: unknown, name: string, inlineBytes = INLINE_BYTES): Promise<string> {
    const content = Buffer.concat([Buffer.from(`${this.#writer}\n`), gzipSync(serialize(value))]);
    if (content.length <= inlineBytes) return `${INLINE}${content.toString('base64')}`;
    const key = `cycle/${name}`;
    await this.#blobs.put(key, content);
    return `${STORED}${key}`;
  }

  /**
   * Value behind a reference. Throws `superseded` if other code wrote it, `not-found` if it was deleted, `internal` if
   * the reference is malformed.
   */
  async get<T>(reference: string): Promise<T> {
    const content = await this.#content(reference);
    const end = content.indexOf(LINE_END);
    const writer = Buffer.from(content.subarray(0, Math.max(0, end))).toString();
    if (writer === this.#writer) return deserialize(gunzipSync(content.subarray(end + 1))) as T;
    throw new EbbError('superseded', {
      what: 'a step of the cycle received data of another version; nothing was done',
      got: end >= 0 && end < WRITER_BYTES && /^[ -~]+$/.test(writer) ? writer : 'a value without its version',
      allowed: this.#writer,
      next: 'nothing: the next cycle begins anew',
    });
  }

  async #content(reference: string): Promise<Uint8Array> {
    if (reference.startsWith(INLINE)) return Buffer.from(reference.slice(INLINE.length), 'base64');
    if (reference.startsWith(STORED)) return this.#blobs.get(reference.slice(STORED.length));
    throw new EbbError('internal', { what: 'a step received a malformed reference', got: reference.slice(0, 80) });
  }
}
