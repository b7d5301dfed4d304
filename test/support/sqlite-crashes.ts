/**
 * Processes that die on a SQLite file, without any process: what kill -9 leaves is the file and its log as they are at
 * that moment. So they are copied then, and whoever comes next opens the copy.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../lib/drivers/local/store/sqlite-store.ts';
import type { Store } from '../../lib/ports/store.ts';
import type { CrashWorld, StoreProcess } from '../contract/store-crashes.ts';
import { Died } from './aws-faults.ts';

/** Told of each statement that writes, before it is made and after it. */
interface Watching {
  before(): void;
  after(): void;
}
let watching: Watching | null = null;

/** Whichever connection makes them: there is one at a time that writes. `isWrite`: of the call with these arguments. */
function watch(prototype: object, method: string, isWrite: (args: readonly unknown[]) => boolean): void {
  const original = Reflect.get(prototype, method) as (...args: unknown[]) => unknown;
  const watched = function (this: unknown, ...args: unknown[]): unknown {
    if (!isWrite(args)) return Reflect.apply(original, this, args);
    watching?.before();
    const answer: unknown = Reflect.apply(original, this, args);
    watching?.after();
    return answer;
  };
  Reflect.set(prototype, method, watched);
}
let isWatched = false;

export class SqliteCrashes implements CrashWorld {
  readonly #dir = mkdtempSync(join(tmpdir(), 'ebb-store-dies-'));
  #path = join(this.#dir, '0.db');
  #copies = 0;
  readonly #open: Store[] = [];

  constructor() {
    if (isWatched) return;
    isWatched = true;
    watch(StatementSync.prototype, 'run', () => true);
    watch(DatabaseSync.prototype, 'exec', ([sql]) => sql === 'COMMIT');
  }

  async process(diesAfter = Infinity): Promise<StoreProcess> {
    watching = null;
    for (const store of this.#open.splice(0)) await store.close();
    const store = openSqliteStore({ path: this.#path });
    this.#open.push(store);
    let steps = 0;
    let isDead = false;
    const die = (): never => {
      if (!isDead) this.#copy();
      isDead = true;
      throw new Died('this process has died');
    };
    watching = {
      before: () => {
        if (steps >= diesAfter) die();
      },
      after: () => {
        if (++steps >= diesAfter) die();
      },
    };
    return { store, steps: () => steps, isDead: () => isDead };
  }

  #copy(): void {
    const copy = join(this.#dir, `${++this.#copies}.db`);
    for (const suffix of ['', '-wal']) {
      if (existsSync(`${this.#path}${suffix}`)) copyFileSync(`${this.#path}${suffix}`, `${copy}${suffix}`);
    }
    this.#path = copy;
  }

  async close(): Promise<void> {
    watching = null;
    for (const store of this.#open) await store.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
