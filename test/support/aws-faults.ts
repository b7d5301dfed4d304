/** Calls of the store that change something. */
const WRITES = new Set([
  'TransactWriteItemsCommand',
  'UpdateItemCommand',
  'DeleteItemCommand',
  'PutObjectCommand',
  'PutObjectTaggingCommand',
  'DeleteObjectCommand',
]);

export class Died extends Error {}

/** What happens around a call. `perform` sends it. */
export type AtCall = (call: {
  /** From 1, over all clients of one `Faults`. */
  readonly ordinal: number;
  readonly name: string;
  readonly perform: () => Promise<unknown>;
  /** The process ends here. */
  readonly die: () => never;
}) => Promise<unknown>;

/** A connection that breaks: it is not known whether the request was carried out. */
export const brokenConnection = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

/**
 * Clients of one process whose calls go through a hand that may fail, delay or kill: writes of the store, or all calls.
 */
export class Faults {
  readonly calls: string[] = [];
  readonly #atCall: AtCall;
  readonly #isMet: (name: string) => boolean;
  #isDead = false;

  constructor(atCall: AtCall, meets: 'writes' | 'all' = 'writes') {
    this.#atCall = atCall;
    this.#isMet = meets === 'all' ? () => true : (name) => WRITES.has(name);
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** From now on nothing is sent. */
  die(): never {
    this.#isDead = true;
    throw new Died('this process has died');
  }

  #alive<T>(value: T): T {
    if (this.#isDead) throw new Died('this process has died');
    return value;
  }

  around<C extends object>(client: C): C {
    const send = (...args: unknown[]): Promise<unknown> => this.#send(client, args);
    return new Proxy(client, {
      get: (target, name): unknown => (name === 'send' ? send : Reflect.get(target, name)),
    });
  }

  async #send(client: object, args: unknown[]): Promise<unknown> {
    this.#alive(null);
    const perform = (): Promise<unknown> => (client as { send(...a: unknown[]): Promise<unknown> }).send(...args);
    const name = (args[0] as object).constructor.name;
    if (!this.#isMet(name)) return perform();
    this.calls.push(name);
    const answer = await this.#atCall({ ordinal: this.calls.length, name, perform, die: () => this.die() });
    // One that dies while others of its calls are on their way hears of none of them.
    return this.#alive(answer);
  }
}
