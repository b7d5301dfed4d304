/**
 * Stop requests of the user, each counted once.
 *
 * A terminal delivers Ctrl-C to every process of its group, and bin/ebb.mjs, where it stands in for an older Node,
 * also passes on what it got as a message. `max(direct, passed on)` counts a press once whichever way it came; a signal
 * sent to only one of the two processes counts as well. When the launcher is gone (the channel closed) that is a stop
 * request too: nothing may outlive the command that the user sees.
 */
export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** `handler(n, signal)` is called for the n-th request, n from 1. Returns how to stop listening. */
export function onStopRequest(handler: (count: number, signal: StopSignal) => void): () => void {
  const direct = new Map<StopSignal, number>();
  const passedOn = new Map<StopSignal, number>();
  let handled = 0;

  const total = (): number => SIGNALS.reduce((sum, s) => sum + Math.max(direct.get(s) ?? 0, passedOn.get(s) ?? 0), 0);
  const arrive = (via: Map<StopSignal, number>, signal: StopSignal): void => {
    via.set(signal, (via.get(signal) ?? 0) + 1);
    while (handled < total()) handler(++handled, signal);
  };

  const listeners = SIGNALS.map((signal) => [signal, () => arrive(direct, signal)] as const);
  for (const [signal, listener] of listeners) process.on(signal, listener);
  const onMessage = (message: unknown): void => {
    const signal = (message as { signal?: StopSignal } | null)?.signal;
    if (signal !== undefined && SIGNALS.includes(signal)) arrive(passedOn, signal);
  };
  const onDisconnect = (): void => arrive(passedOn, 'SIGTERM');
  if (process.send !== undefined) {
    process.on('message', onMessage);
    process.off('disconnect', dieQuietly);
    process.once('disconnect', onDisconnect);
    process.send({ handlesSignals: true });
    // Listening must not keep a finished command alive.
    process.channel?.unref();
  }
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener);
    process.off('message', onMessage);
    process.off('disconnect', onDisconnect);
  };
}

/** For commands that handle no signals: end when the launcher is gone. `onStopRequest` takes over from this. */
export function endWithLauncher(): void {
  if (process.send === undefined) return;
  process.once('disconnect', dieQuietly);
  process.channel?.unref();
}

const dieQuietly = (): never => process.exit(143);
