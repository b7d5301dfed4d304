/** Thread of one simulation: its order comes as worker data; it sends progress, then a result or an error. */
import { parentPort, workerData } from 'node:worker_threads';
import { invariant } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import { runOrder } from './compose-simulation.ts';
import { plainError, type FromRun, type RunOrder, type ToRun } from './run-order.ts';

const port = invariant(parentPort, 'a simulation runs in a thread of its own');
const tell = (message: FromRun): void => port.postMessage(message);
const abort = new AbortController();
port.on('message', (message: ToRun) => {
  abort.abort(message.why);
});

/** Least wall time between two progress messages: each one is copied between threads. */
const TELL_EVERY_MS = 100;
let toldMs = -Infinity;

try {
  const result = await runOrder(workerData as RunOrder, {
    signal: abort.signal,
    onProgress: ({ nowMs, fromMs, toMs, ...counts }) => {
      if (performance.now() < toldMs + TELL_EVERY_MS) return;
      toldMs = performance.now();
      tell({ is: 'progress', nowMs: raw(nowMs), fromMs: raw(fromMs), toMs: raw(toMs), ...counts });
    },
  });
  tell({ is: 'done', result });
} catch (error) {
  tell({ is: 'failed', error: plainError(error) });
}
port.close();
