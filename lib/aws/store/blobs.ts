import { DeleteObjectCommand, GetObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { EbbError } from '../../kernel/errors.ts';
import { classify } from '../errors.ts';
import { bytes, checkVersion, decode, encode, placeOf, text, textAt, type Item } from './codec.ts';
import type { Meter, Write } from './table.ts';

/** What is larger goes to S3: a put there costs as much as writing 8 KB, twice if it is changed once, and an item ends at 400 KB. */
const INLINE_BYTES = 16_384;

type Held = Required<Pick<Write, 'set' | 'remove'>>;

/** Objects by name, each written once under a name of its own. Reads see every write before them. */
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

  async delete(name: string): Promise<void> {
    await this.#call('DeleteObject', () =>
      this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: name })),
    );
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

  /** The value that was written as `held` says. */
  async valueOf<T>(item: Item): Promise<T> {
    checkVersion(item);
    return decode<T>(await this.bytesOf(item), placeOf(item, 'b'));
  }

  /** What `heldBytes` holds. */
  async bytesOf(item: Item): Promise<Uint8Array> {
    return item['b']?.B ?? this.get(textAt(item, 's3'));
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
