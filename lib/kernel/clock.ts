import { epochMs, raw, type EpochMs, type Seconds } from './units.ts';

/**
 * Engine time. The scheduling core reads time from a snapshot only; drivers own a Clock. With `--speed N` one wall
 * second is N engine seconds, and a simulator advances a virtual clock by hand: nothing may wait on real time except
 * through `sleep`.
 */
export interface Clock {
  now(): EpochMs;
  /** Resolves when engine time has moved on by `d`, or when `signal` aborts (never rejects). */
  sleep(d: Seconds, signal?: AbortSignal): Promise<void>;
}

/** Time source of a scaled clock, injected so that the kernel itself reads no real time. */
export interface WallTime {
  /** Milliseconds since the epoch; may jump. */
  epochMs(): number;
  /** Milliseconds on a clock that never jumps. */
  monotonicMs(): number;
  setTimer(ms: number, fire: () => void): () => void;
}

/** Anchor of engine time: `engine = engineMs + (wall - wallMs) * speed`. Stored, so a restart resumes it. */
export interface ClockAnchor {
  readonly wallMs: number;
  readonly engineMs: number;
  readonly speed: number;
}

/**
 * A clock at `speed` times the wall. Reads the wall once (at creation) and then a monotonic source, so a jump of the
 * system's clock moves neither deadlines nor bills. `speed` 1 with anchor at the wall is the wall clock.
 */
export function scaledClock(wall: WallTime, anchor: ClockAnchor): Clock {
  if (!(anchor.speed > 0)) throw new RangeError(`clock speed must be > 0, got ${anchor.speed}`);
  const startedMonotonic = wall.monotonicMs();
  const startedEngine = anchor.engineMs + Math.max(0, wall.epochMs() - anchor.wallMs) * anchor.speed;
  return {
    now: () => epochMs(startedEngine + (wall.monotonicMs() - startedMonotonic) * anchor.speed),
    sleep: (d, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) {
          resolve();
          return;
        }
        const cancel = wall.setTimer((raw(d) * 1000) / anchor.speed, done);
        function done(): void {
          cancel();
          signal?.removeEventListener('abort', done);
          resolve();
        }
        signal?.addEventListener('abort', done, { once: true });
      }),
  };
}

interface Sleeper {
  readonly wakeMs: number;
  readonly sequence: number;
  readonly wake: () => void;
}

/** A clock that stands still until told. Sleepers wake in the order (time, sequence), each at its own time. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #sequence = 0;
  #sleepers: Sleeper[] = [];

  constructor(startMs: EpochMs) {
    this.#nowMs = raw(startMs);
  }

  now(): EpochMs {
    return epochMs(this.#nowMs);
  }

  sleep(d: Seconds, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = { wakeMs: this.#nowMs + raw(d) * 1000, sequence: this.#sequence++, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener(
        'abort',
        () => {
          this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
          resolve();
        },
        { once: true },
      );
    });
  }

  /** Moves time to `t`, waking who sleeps until then on the way. Lets woken code run between two wakes. */
  async advanceTo(t: EpochMs): Promise<void> {
    for (;;) {
      const next = this.#sleepers
        .filter((s) => s.wakeMs <= raw(t))
        .sort((a, b) => a.wakeMs - b.wakeMs || a.sequence - b.sequence)[0];
      if (next === undefined) break;
      this.#sleepers = this.#sleepers.filter((s) => s !== next);
      this.#nowMs = Math.max(this.#nowMs, next.wakeMs);
      next.wake();
      await Promise.resolve();
    }
    this.#nowMs = Math.max(this.#nowMs, raw(t));
  }
}
