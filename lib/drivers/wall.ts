import type { WallTime } from '../kernel/clock.ts';

/** The machine's clocks and timers. */
export const wallTime: WallTime = {
  epochMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (ms, fire) => {
    // Longer than 2^31-1 ms would fire at once; a long wait is woken early instead, which every caller tolerates.
    const timer = setTimeout(fire, Math.min(ms, 2 ** 31 - 1));
    return () => {
      clearTimeout(timer);
    };
  },
};
