/**
 * Stop requests of the user, each counted once.
 *
 * A terminal sends Ctrl-C to every process of its group. bin/ebb.mjs, where it launches a newer Node, passes its own on
 * as a message. `max(direct, passed on)` counts a press once, and also a signal sent to one of the two processes only.
 *
 * A closed channel means that the launcher is gone. That is a stop request too: nothing may outlive the command that
 * the user sees. Signals within ONE_REQUEST_MS are one request: `timeout` and others signal a process and then its
 * group.
 */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** Exit codes of a program ended by a signal, as shells report them. */
export const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const satisfies Record<StopSignal, number>;

/** Time between two signals of one request; two deliberate presses are further apart. */
export const ONE_REQUEST_MS = 300;

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Part of `process` with signals and the launcher's messages. */
export interface SignalSource {
  on(event: string, listener: (message: unknown) => void): unknown;
  off(event: string, listener: (message: unknown) => void): unknown;
  /** Present if a launcher (or another parent with a channel) started this process. */
  send?: (message: unknown) => unknown;
  readonly channel?: { unref(): void } | null | undefined;
}

/** Calls `handler(n, signal)` for the n-th request, from 1. Returns a function that stops listening. */
export function onStopRequest(
  handler: (count: number, signal: StopSignal) => void,
  source: SignalSource = process,
  nowMs: () => number = () => performance.now(),
): () => void {
  const direct = new Map<StopSignal, number>();
  const passedOn = new Map<StopSignal, number>();
  let arrived = 0;
  let requests = 0;
  let requestedMs = -Infinity;
  let launcherGone = 0;

  const total = (): number =>
    SIGNALS.reduce((sum, s) => sum + Math.max(direct.get(s) ?? 0, passedOn.get(s) ?? 0), launcherGone);
  const request = (signal: StopSignal): void => {
    const isNew = arrived < total();
    arrived = total();
    if (!isNew || nowMs() - requestedMs < ONE_REQUEST_MS) return;
    requestedMs = nowMs();
    handler(++requests, signal);
  };
  const arrive = (via: Map<StopSignal, number>, signal: StopSignal): void => {
    via.set(signal, (via.get(signal) ?? 0) + 1);
    request(signal);
  };
  const onDisconnect = (): void => {
    launcherGone = 1;
    request('SIGTERM');
  };

  const listeners: [string, (message: unknown) => void][] = SIGNALS.map((s) => [s, () => arrive(direct, s)]);
  if (source.send !== undefined) {
    const onMessage = (message: unknown): void => {
      const signal = (message as { signal?: StopSignal } | null)?.signal;
      if (signal !== undefined && SIGNALS.includes(signal)) arrive(passedOn, signal);
    };
    listeners.push(['message', onMessage], ['disconnect', onDisconnect]);
    source.off('disconnect', dieQuietly);
    source.send({ handlesSignals: true });
  }
  for (const [event, listener] of listeners) source.on(event, listener);
  // The listener must not keep a finished command alive.
  source.channel?.unref();
  return () => {
    for (const [event, listener] of listeners) source.off(event, listener);
  };
}

/**
 * Work that a stop request ends: prints `said` and exits with the signal's code. Half-written files are removed at the
 * end of the process (lib/drivers/local/sudden-end.ts).
 */
export async function endedByStop<T>(
  output: { note(text: string): void },
  said: string | (() => string),
  work: () => Promise<T>,
  source: SignalSource = process,
): Promise<T> {
  const unlisten = onStopRequest((_, signal) => {
    output.note(`\n${typeof said === 'string' ? said : said()}`);
    process.exit(SIGNAL_EXIT[signal]);
  }, source);
  try {
    return await work();
  } finally {
    unlisten();
  }
}

/** Ends the process with its launcher, for commands without signal handlers. `onStopRequest` replaces this. */
export function endWithLauncher(): void {
  if (process.send === undefined) return;
  process.on('disconnect', dieQuietly);
  process.channel?.unref();
}

const dieQuietly = (): never => process.exit(143);
