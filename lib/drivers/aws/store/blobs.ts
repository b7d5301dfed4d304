import { randomUUID } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, PutObjectTaggingCommand, type S3Client } from '@aws-sdk/client-s3';
import { EbbError } from '../../../kernel/errors.ts';
import { classify } from '../errors.ts';
import { bytes, checkVersion, decode, encode, placeOf, text, textAt, type Item } from './codec.ts';
import { SUPERSEDED_TAG } from './keys.ts';
import type { Meter, Write } from './dynamo-table.ts';

/**
 * Largest value in an item. A put to S3 costs as much as writing 8 KB, or 16 KB if it changes once, and an item ends at
 * 400 KB.
 */
const INLINE_BYTES = 16_384;

type Held = Required<Pick<Write, 'set' | 'remove'>>;

/**
 * Missing object. Usually it was superseded after its item was read, so reading the item again finds its successor. An
 * object that is missing repeatedly is lost.
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
 * Unique name of an object. Several processes may prepare the same commit and only one makes it, so they must not
 * overwrite each other's objects.
 */
export const ownName = (name: string): string => `${name}-${randomUUID().slice(0, 8)}`;

/** Reads of a name whose object is missing. */
const MAX_READS = 5;

/** Repeats `read`, which looks up names of objects anew, while an object is missing. */
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
 * Objects, each written once under its own name. Reads see every earlier write. Nothing is deleted here: superseded
 * objects get a tag, and a lifecycle rule deletes them after a day at the earliest. Readers may have the name before
 * they read the object.
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
   * Tags a superseded object. Faults are ignored: its successor is stored, and an untagged object only costs its
   * storage.
   */
  async supersede(name: string): Promise<void> {
    const Tagging = { TagSet: [SUPERSEDED_TAG] };
    await this.#call('PutObjectTagging', () =>
      this.#client.send(new PutObjectTaggingCommand({ Bucket: this.#bucket, Key: name, Tagging })),
    ).catch((error: unknown) => {
      if (!(error instanceof EbbError)) throw error;
    });
  }

  /** Attributes that hold a value: `b` itself, or `s3` with the name of a new object. */
  held(value: unknown, name: string): Promise<Held> {
    return this.heldBytes(encode(value), name);
  }

  /** The same for encoded content. */
  async heldBytes(content: Uint8Array, name: string): Promise<Held> {
    if (content.length <= INLINE_BYTES) return { set: { b: bytes(content) }, remove: ['s3'] };
    await this.put(name, content);
    return { set: { s3: text(name) }, remove: ['b'] };
  }

  /** Value behind attributes of `held`. Throws ObjectMissing. */
  async valueOf<T>(item: Item): Promise<T> {
    checkVersion(item);
    return decode<T>(await this.bytesOf(item), placeOf(item, 'b'));
  }

  /** Content behind attributes of `heldBytes`. Throws ObjectMissing. */
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
