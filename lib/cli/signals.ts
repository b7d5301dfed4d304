/**
 * Stop requests of the user, each counted once.
 *
 * A terminal delivers Ctrl-C to every process of its group, and bin/ebb.mjs, where it stands in for an older Node,
 * also passes on what it got as a message. `max(direct, passed on)` counts a press once whichever way it came; a signal
 * sent to only one of the two processes counts as well. When the launcher is gone (the channel closed) that is a stop
 * request too: nothing may outlive the command that the user sees. What comes within ONE_REQUEST_MS of a request
 * belongs to it: `timeout` and others signal a process and then its group.
 */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** Exit codes of a program ended by a signal, as shells report them. */
export const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const satisfies Record<StopSignal, number>;

/** Shorter than two presses that are meant as two. */
export const ONE_REQUEST_MS = 300;

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The part of `process` that signals and the launcher's messages come from. */
export interface SignalSource {
  on(event: string, listener: (message: unknown) => void): unknown;
  off(event: string, listener: (message: unknown) => void): unknown;
  /** Only there when a launcher (or another parent with a channel) started this process. */
  send?: (message: unknown) => unknown;
  readonly channel?: { unref(): void } | null | undefined;
}

/** `handler(n, signal)` is called for the n-th request, n from 1. Returns how to stop listening. */
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
  // Listening must not keep a finished command alive.
  source.channel?.unref();
  return () => {
    for (const [event, listener] of listeners) source.off(event, listener);
  };
}

/**
 * Does work that a stop request ends: `said` is noted, and the process ends with the signal's exit code. What is
 * half-written is discarded at the end of the process (lib/drivers/local/sudden-end.ts).
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

/** For commands that handle no signals: end when the launcher is gone. `onStopRequest` takes over from this. */
export function endWithLauncher(): void {
  if (process.send === undefined) return;
  process.on('disconnect', dieQuietly);
  process.channel?.unref();
}

const dieQuietly = (): never => process.exit(143);
