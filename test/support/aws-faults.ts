import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { S3Client } from '@aws-sdk/client-s3';

/** Calls that change something. */
const WRITES = new Set(['TransactWriteItemsCommand', 'UpdateItemCommand', 'PutObjectCommand', 'DeleteObjectCommand']);

export class Died extends Error {}

/** What happens around a write. `perform` sends it. */
export type AtWrite = (write: {
  /** From 1, over all clients of one `Faults`. */
  readonly ordinal: number;
  readonly name: string;
  readonly perform: () => Promise<unknown>;
}) => Promise<unknown>;

/** A connection that breaks: it is not known whether the request was carried out. */
export const brokenConnection = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

/** Clients of one process whose writes go through a hand that may fail, delay or kill. */
export class Faults {
  readonly writes: string[] = [];
  readonly #atWrite: AtWrite;
  #isDead = false;

  constructor(atWrite: AtWrite) {
    this.#atWrite = atWrite;
  }

  /** From now on nothing is sent. */
  die(): never {
    this.#isDead = true;
    throw new Died('this process has died');
  }

  around<C extends DynamoDBClient | S3Client>(client: C): C {
    const send = (...args: unknown[]): Promise<unknown> => this.#send(client, args);
    return new Proxy(client, {
      get: (target, name): unknown => (name === 'send' ? send : Reflect.get(target, name)),
    });
  }

  async #send(client: DynamoDBClient | S3Client, args: unknown[]): Promise<unknown> {
    if (this.#isDead) throw new Died('this process has died');
    const perform = (): Promise<unknown> => (client as { send(...a: unknown[]): Promise<unknown> }).send(...args);
    const name = (args[0] as object).constructor.name;
    if (!WRITES.has(name)) return perform();
    this.writes.push(name);
    const answer = await this.#atWrite({ ordinal: this.writes.length, name, perform });
    return answer;
  }
}
