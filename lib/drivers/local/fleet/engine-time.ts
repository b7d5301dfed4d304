import type { SharedClock } from './messages.ts';

/**
 * Engine time inside a supervisor. Built on the machine's monotonic clock, which all processes of one boot share, and
 * which ignores changes of the system's time. Imported by the supervisor: node: imports only.
 */

/** Milliseconds on the clock that processes of this boot share. */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;

export const engineNow = (clock: SharedClock): number =>
  clock.engineMs + (monotonicMs() - clock.monotonicMs) * clock.speed;

/** Timers take at most 2^31 - 1 ms; longer waits are made of pieces. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `then` once engine time has reached `atMs`. Returns how to call it off. */
export function whenEngineTime(clock: SharedClock, atMs: number, then: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const leftMs = (atMs - engineNow(clock)) / clock.speed;
    if (leftMs <= 0) then();
    else timer = setTimeout(wait, Math.min(Math.ceil(leftMs), LONGEST_MS));
  };
  timer = setTimeout(wait, Math.min(Math.max(0, Math.ceil((atMs - engineNow(clock)) / clock.speed)), LONGEST_MS));
  return () => clearTimeout(timer);
}
