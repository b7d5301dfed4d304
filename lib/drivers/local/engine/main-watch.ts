/**
 * Keeps the main thread from hanging for ever, because it serves the API and is the only one to hear signals.
 * The main thread gives a sign of life each second (`Heart`), the engine's thread listens (`watchMain`). After STUCK_S
 * without one it ends the main thread's present call, by way of V8's inspector: an endless request, for example. The
 * event loop then goes on with other work: other requests, a SIGTERM. The ended call never comes back, so the main
 * thread is told, to clean up. Silence is counted in ticks of the engine's thread, so that a sleeping machine, or a
 * long decision, does not look like a hung main thread. A single call of native code is not ended; it comes back by
 * itself.
 */

/**
 * Silence after which the main thread is interrupted, s. The longest of its own work, pages of large stores, takes some
 * seconds.
 */
const STUCK_S = 20;
const BEAT_MS = 1000;

/** The main thread's side. */
export class Heart {
  /** One Int32, for both threads: changes with each sign of life. */
  readonly beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #timer: NodeJS.Timeout;

  constructor() {
    const counter = new Int32Array(this.beats);
    this.#timer = setInterval(() => Atomics.add(counter, 0, 1), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** The other thread's side. `onInterrupted` is called after each time. Returns how to stop watching. */
export function watchMain(beats: SharedArrayBuffer, onInterrupted: (afterS: number) => void): () => void {
  const counter = new Int32Array(beats);
  let last = Atomics.load(counter, 0);
  let silentS = 0;
  const timer = setInterval(() => {
    const now = Atomics.load(counter, 0);
    silentS = now === last ? silentS + BEAT_MS / 1000 : 0;
    last = now;
    if (silentS < STUCK_S) return;
    silentS = 0;
    void interruptMain().then(() => onInterrupted(STUCK_S));
  }, BEAT_MS).unref();
  return () => clearInterval(timer);
}

async function interruptMain(): Promise<void> {
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connectToMainThread();
  await new Promise<void>((resolve) => session.post('Runtime.terminateExecution', () => resolve()));
  session.disconnect();
}
