import { randomUUID } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, PutObjectTaggingCommand, type S3Client } from '@aws-sdk/client-s3';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from '../errors.ts';
import { bytes, checkVersion, decode, encode, placeOf, text, textAt, type Item } from './codec.ts';
import { SUPERSEDED_TAG } from './keys.ts';
import type { Meter, Write } from './dynamo-table.ts';

/**
 * What is larger goes to S3: a put there costs as much as writing 8 KB, twice if it is changed once, and an item ends
 * at 400 KB.
 */
const INLINE_BYTES = 16_384;

type Held = Required<Pick<Write, 'set' | 'remove'>>;

/**
 * The object that an item names is not there. As a rule it was superseded after the item was read: reading the item
 * again finds its successor. When it is missing again and again, it is lost.
 */
export class ObjectMissing extends EbbError {
  constructor(name: string, cause: unknown) {
    super('store.corrupt', {
      what: 'an object that the table names is not in the bucket',
      got: name,
      next: 'restore the object from an older version, which the bucket keeps for 7 days',
      cause,
    });
  }
}

/**
 * A name that no other writer draws. Several may prepare the same commit, and only one of them makes it: its objects
 * must not be overwritten by the others.
 */
export const ownName = (name: string): string => `${name}-${randomUUID().slice(0, 8)}`;

/** Times that what names an object is read anew because the object is not there. */
const MAX_READS = 5;

/** Runs `read` again, which looks up the names of objects anew, as long as an object that it came upon is missing. */
export async function readingAnew<T>(read: () => Promise<T>): Promise<T> {
  for (let reads = 1; ; reads++) {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ObjectMissing) || reads === MAX_READS) throw error;
    }
  }
}

/**
 * Objects by name, each written once under a name of its own. Reads see every write before them. No object is deleted
 * here: one that nothing names any more is tagged, and a lifecycle rule of the bucket deletes it a day after it was
 * made at the earliest, because others may have read its name and not yet the object.
 */
export class Blobs {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #meter: Meter | undefined;

  constructor(options: { readonly client: S3Client; readonly bucket: string; readonly meter?: Meter | undefined }) {
    this.#client = options.client;
    this.#bucket = options.bucket;
    this.#meter = options.meter;
  }

  async put(name: string, content: Uint8Array): Promise<void> {
    await this.#call('PutObject', () =>
      this.#client.send(new PutObjectCommand({ Bucket: this.#bucket, Key: name, Body: content })),
    );
  }

  async get(name: string): Promise<Uint8Array> {
    const answer = await this.#call('GetObject', () =>
      this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: name })),
    );
    const content = await answer.Body?.transformToByteArray();
    if (content === undefined) {
      throw new EbbError('store.corrupt', { what: 'an object of the bucket has no content', got: name });
    }
    return content;
  }

  /**
   * Marks an object that nothing names any more. A fault is nobody's concern: what the object was superseded by is
   * stored already, and an object without its mark costs its storage only.
   */
  async supersede(name: string): Promise<void> {
    const Tagging = { TagSet: [SUPERSEDED_TAG] };
    await this.#call('PutObjectTagging', () =>
      this.#client.send(new PutObjectTaggingCommand({ Bucket: this.#bucket, Key: name, Tagging })),
    ).catch((error: unknown) => {
      if (!(error instanceof EbbError)) throw error;
    });
  }

  /** What to write to hold a value: `b` itself, or `s3` with the name of an object, which is made at once. */
  held(value: unknown, name: string): Promise<Held> {
    return this.heldBytes(encode(value), name);
  }

  /** The same for what is encoded already. */
  async heldBytes(content: Uint8Array, name: string): Promise<Held> {
    if (content.length <= INLINE_BYTES) return { set: { b: bytes(content) }, remove: ['s3'] };
    await this.put(name, content);
    return { set: { s3: text(name) }, remove: ['b'] };
  }

  /** The value that was written as `held` says. Throws ObjectMissing. */
  async valueOf<T>(item: Item): Promise<T> {
    checkVersion(item);
    return decode<T>(await this.bytesOf(item), placeOf(item, 'b'));
  }

  /** What `heldBytes` holds. Throws ObjectMissing. */
  async bytesOf(item: Item): Promise<Uint8Array> {
    const within = item['b']?.B;
    if (within !== undefined) return within;
    const name = textAt(item, 's3');
    try {
      return await this.get(name);
    } catch (error) {
      if (!(error instanceof EbbError) || error.code !== 'not-found') throw error;
      throw new ObjectMissing(name, error);
    }
  }

  async #call<T>(operation: string, send: () => Promise<T>): Promise<T> {
    this.#meter?.({ operation, units: 0, items: 1 });
    try {
      return await send();
    } catch (error) {
      throw classify(error, `s3 ${operation}`);
    }
  }
}
