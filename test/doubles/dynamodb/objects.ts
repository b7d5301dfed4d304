import { NoSuchKey, NotFound, type S3Client } from '@aws-sdk/client-s3';

interface Asked {
  readonly Bucket: string;
  readonly Key: string;
  readonly Body?: Uint8Array | string;
  readonly Tagging?: { readonly TagSet: readonly { readonly Key: string; readonly Value: string }[] };
}

interface Kept {
  readonly content: Uint8Array;
  readonly atMs: number;
  readonly tags: readonly string[];
}

/** Double of S3's objects, in memory: put, tag, get, head and delete. Other calls are refused. */
export class ObjectsDouble {
  readonly #objects = new Map<string, Kept>();

  client(): S3Client {
    const send = async (command: { readonly input: unknown }): Promise<unknown> => {
      await Promise.resolve();
      return this.#answer(command.constructor.name, command.input as Asked);
    };
    return { send, destroy: () => undefined } as unknown as S3Client;
  }

  /** Double with these objects, by `bucket/name`. */
  static of(contents: Readonly<Record<string, Uint8Array>>): ObjectsDouble {
    const double = new ObjectsDouble();
    for (const [key, content] of Object.entries(contents)) double.#objects.set(key, { content, atMs: 0, tags: [] });
    return double;
  }

  get contents(): Readonly<Record<string, Uint8Array>> {
    return Object.fromEntries([...this.#objects].map(([key, { content }]) => [key, content]));
  }

  /** Names of all objects of all buckets. */
  get names(): readonly string[] {
    return [...this.#objects.keys()].map((name) => name.slice(name.indexOf('/') + 1));
  }

  /** Names of objects with this tag, `key=value`. */
  tagged(tag: string): readonly string[] {
    return [...this.#objects]
      .filter(([, { tags }]) => tags.includes(tag))
      .map(([name]) => name.slice(name.indexOf('/') + 1));
  }

  /** Deletes an object of the bucket `bucket`. */
  lose(name: string): void {
    this.#objects.delete(`bucket/${name}`);
  }

  /** Applies the lifecycle rule for this tag at the earliest possible time. */
  expire(tag: string): void {
    for (const [name, { tags }] of this.#objects) if (tags.includes(tag)) this.#objects.delete(name);
  }

  #answer(name: string, { Bucket, Key, Body = '', Tagging }: Asked): unknown {
    const known = this.#objects.get(`${Bucket}/${Key}`);
    switch (name) {
      case 'PutObjectCommand':
        this.#objects.set(`${Bucket}/${Key}`, { content: Buffer.from(Body), atMs: Date.now(), tags: [] });
        return {};
      case 'PutObjectTaggingCommand':
        if (known === undefined) throw new NoSuchKey({ message: Key, $metadata: { httpStatusCode: 404 } });
        this.#objects.set(`${Bucket}/${Key}`, {
          ...known,
          tags: (Tagging?.TagSet ?? []).map((tag) => `${tag.Key}=${tag.Value}`),
        });
        return {};
      case 'GetObjectCommand':
        if (known === undefined) throw new NoSuchKey({ message: Key, $metadata: { httpStatusCode: 404 } });
        return { Body: { transformToByteArray: async () => Uint8Array.from(known.content) } };
      case 'HeadObjectCommand':
        if (known === undefined) throw new NotFound({ message: Key, $metadata: { httpStatusCode: 404 } });
        return { LastModified: new Date(known.atMs) };
      case 'DeleteObjectCommand':
        this.#objects.delete(`${Bucket}/${Key}`);
        return {};
      default:
        throw new Error(`the S3 double does not play ${name}`);
    }
  }
}
