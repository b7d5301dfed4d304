/**
 * What one step of the cycle leaves for the next: values of any size behind references that are small enough for the
 * state machine, which carries 256 KiB at most (Step Functions, "Service quotas"). A small value is its own reference,
 * which spares a put and a get; a larger one lies in the bucket under `cycle/<execution>/`, where a lifecycle rule ends
 * it within days.
 *
 * Each name is written by one step of one round and read by later ones, so a step that is repeated writes what was
 * there.
 *
 * Steps are functions of their own, and a deployment replaces them one after the other: each value says what wrote it,
 * and a step reads those of its own kind alone. One that is handed another's throws `superseded`: the round ends,
 * nothing of it is done that is not recorded, and what it was to serve stays wanted or due (wake.ts).
 */
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import { EbbError } from '../../../kernel/errors.ts';
import type { Blobs } from '../store/blobs.ts';
import { SCHEMA_VERSION } from '../store/upgrades.ts';

/**
 * A step's answer holds a handful of references: with each of them below this, all of them stay far below the limit.
 */
const INLINE_BYTES = 24_576;
const INLINE = 'data:';
const STORED = 's3:';
/**
 * The form of what `serialize` writes, its second byte: a newer Node may have another, which an older one does not
 * read.
 */
const [, CLONE_FORMAT = 0] = serialize(null);
/** Ends the line that says what wrote a value. */
const LINE_END = 10;
/** A writer's line is shorter. */
const WRITER_BYTES = 400;

export class Carrier {
  readonly #blobs: Pick<Blobs, 'put' | 'get'>;
  readonly #writer: string;

  /** `code`: names the code that is deployed; other code is another one's. */
  constructor(blobs: Pick<Blobs, 'put' | 'get'>, code: string) {
    this.#blobs = blobs;
    this.#writer = `${code} schema ${SCHEMA_VERSION} clone ${CLONE_FORMAT}`;
  }

  /** `value` may hold whatever structured clone carries: Maps and typed arrays too. `name` is within `cycle/`. */
  async put(value: unknown, name: string, inlineBytes = INLINE_BYTES): Promise<string> {
    const content = Buffer.concat([Buffer.from(`${this.#writer}\n`), gzipSync(serialize(value))]);
    if (content.length <= inlineBytes) return `${INLINE}${content.toString('base64')}`;
    const key = `cycle/${name}`;
    await this.#blobs.put(key, content);
    return `${STORED}${key}`;
  }

  /**
   * The value behind a reference. Throws `superseded` where other code wrote it, `not-found` for one that is over,
   * `internal` for what is no reference.
   */
  async get<T>(reference: string): Promise<T> {
    const content = await this.#content(reference);
    const end = content.indexOf(LINE_END);
    const writer = Buffer.from(content.subarray(0, Math.max(0, end))).toString();
    if (writer === this.#writer) return deserialize(gunzipSync(content.subarray(end + 1))) as T;
    throw new EbbError('superseded', {
      what: 'a step of the cycle was handed what another version wrote; nothing was done',
      got:
        end >= 0 && end < WRITER_BYTES && /^[ -~]+$/.test(writer) ? writer : 'a value that does not say what wrote it',
      allowed: this.#writer,
      next: 'nothing: the next cycle begins anew',
    });
  }

  async #content(reference: string): Promise<Uint8Array> {
    if (reference.startsWith(INLINE)) return Buffer.from(reference.slice(INLINE.length), 'base64');
    if (reference.startsWith(STORED)) return this.#blobs.get(reference.slice(STORED.length));
    throw new EbbError('internal', { what: 'a step was given what is no reference', got: reference.slice(0, 80) });
  }
}
