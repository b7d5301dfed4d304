const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs `discard` when the process ends before its work is done: by an exit, or by a signal without another listener, of
 * which the process then dies as usual. With another listener, ending is that listener's task. Returns a function that
 * stops watching.
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
