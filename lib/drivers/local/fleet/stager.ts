/**
 * Copies files for one supervisor, in a separate process: a search through millions of files or a slow disk never
 * delays the supervisor's heartbeat and signals, and running out of memory here fails an attempt, not an instance.
 * Lifecycle: started by staging-process.ts with the first task that has files; works on several requests at once; ends
 * when the supervisor closes the channel or dies. It ends by SIGKILL, because an ordinary exit waits for system calls
 * that have begun.
 */
import { messageOf } from '../../../kernel/errors.ts';
import type { Places } from './staging.ts';
import { bringInputs, missingOutputs, putOutputs, removeTemporaries } from './staging.ts';

/** bring: inputs into the scratch folder; put: outputs back; missing: plain output paths that were not made. */
export interface StagingOrder {
  readonly do: 'bring' | 'put' | 'missing';
  readonly patterns: readonly string[];
  readonly places: Places;
}
export type ToStager = { readonly id: number; readonly order: StagingOrder } | { readonly cancel: number };
/** `paths`: missing outputs, or patterns that matched nothing. */
export type FromStager = { readonly id: number } & ({ readonly paths: readonly string[] } | { readonly fault: string });

const running = new Map<number, AbortController>();

async function carryOut({ do: what, patterns, places }: StagingOrder, signal: AbortSignal): Promise<readonly string[]> {
  switch (what) {
    case 'bring':
      await bringInputs(patterns, places, signal);
      return [];
    case 'put':
      return putOutputs(patterns, places);
    case 'missing':
      return missingOutputs(patterns, places.scratch);
  }
}

async function take(id: number, order: StagingOrder): Promise<FromStager> {
  const cancel = new AbortController();
  running.set(id, cancel);
  try {
    return { id, paths: await carryOut(order, cancel.signal) };
  } catch (error) {
    return { id, fault: messageOf(error) };
  } finally {
    running.delete(id);
  }
}

// The supervisor decides when files are no longer wanted.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => {
  removeTemporaries();
  process.kill(process.pid, 'SIGKILL');
});
process.on('message', (message: ToStager) => {
  if ('cancel' in message) running.get(message.cancel)?.abort();
  // The channel may be closed by now.
  else void take(message.id, message.order).then((answer) => process.send?.(answer, () => undefined));
});
