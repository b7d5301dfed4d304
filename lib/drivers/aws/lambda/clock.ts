import type { Clock, ClockAnchor } from '../../../kernel/clock.ts';
import { epochMs, raw } from '../../../kernel/units.ts';

/**
 * The clock of a Lambda: the wall's, or that of a rehearsal, where one wall second is `speed` engine seconds. Read anew
 * each time: between two invocations a process is frozen, and its monotonic time with it. Nothing but waits and prices
 * hangs on it: which cycle may act is decided by fencing tokens alone.
 */
export function lambdaClock(anchor: ClockAnchor | undefined, wallMs: () => number = () => Date.now()): Clock {
  const { wallMs: fromMs, engineMs, speed } = anchor ?? { wallMs: 0, engineMs: 0, speed: 1 };
  return {
    now: () => epochMs(engineMs + (wallMs() - fromMs) * speed),
    sleep: (d, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) {
          resolve();
          return;
        }
        const done = (): void => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          resolve();
        };
        const timer = setTimeout(done, (raw(d) * 1000) / speed);
        signal?.addEventListener('abort', done, { once: true });
      }),
  };
}
