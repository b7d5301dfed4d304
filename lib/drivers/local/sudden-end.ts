const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Has `discard` done when the process ends before its work is: by an exit, or by a signal that nobody else listens to,
 * of which the process then dies as it would have. Where somebody does listen, it is for them to end it. Returns how to
 * stop watching.
 */
export function onSuddenEnd(discard: () => void): () => void {
  const onSignal = (signal: (typeof SIGNALS)[number]): void => {
    if (process.listenerCount(signal) > 1) return;
    unwatch();
    discard();
    process.kill(process.pid, signal);
  };
  const unwatch = (): void => {
    process.off('exit', discard);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  process.on('exit', discard);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return unwatch;
}
