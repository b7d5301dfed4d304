import type { Clock, ClockAnchor } from '../../../kernel/clock.ts';
import { epochMs, raw } from '../../../kernel/units.ts';

/**
 * Clock of a Lambda: wall time, or that of a rehearsal with `speed` engine seconds per wall second. Read anew each
 * time, because a process and its monotonic time freeze between invocations. Only waits and prices depend on it;
 * fencing tokens decide which cycle may act.
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
