import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Wall time without work after which memory is given back. Longer than the pause between two cycles of a busy engine.
 */
const QUIET_MS = 3000;

type Collect = (options: {
  readonly type: 'major';
  readonly execution: 'sync';
  readonly flavor: 'last-resort';
}) => void;

/**
 * Returns the memory of a busy time to the machine once a thread is idle. V8 collects only on allocation, so an idle
 * process would keep its young generations and its garbage.
 * Each thread has its own heap and so its own instance of this. `quiet` (repeating is harmless) arms it, `busy` disarms
 * it; the collection takes 10 to 50 ms, once per quiet time. Never keeps a process alive.
 */
export class IdleMemory {
  #timer: NodeJS.Timeout | null = null;
  #collected = false;

  quiet(): void {
    if (this.#collected || this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#collected = true;
      collector()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    }, QUIET_MS).unref();
  }

  busy(): void {
    this.#collected = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** V8's own collector, which a fresh context shows once the flag is set: there is no call for it in node:v8. */
function collector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}
