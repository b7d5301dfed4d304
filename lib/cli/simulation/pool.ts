import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { thrownAgain, type FromRun, type RunOrder, type RunResult, type ToRun } from './run-order.ts';

export type RunProgress = Extract<FromRun, { is: 'progress' }>;

export interface Running {
  /** Called with the progress of a run by index; null when it ends. */
  readonly onProgress: (run: number, progress: RunProgress | null) => void;
  /** Stops running simulations at their present time, and starts no more. */
  readonly signal: AbortSignal;
}

export interface Ran {
  /** Results in the order of the orders. */
  readonly results: readonly RunResult[];
  /** First error; null: none. */
  readonly failure: Error | null;
}

/**
 * Size of V8's young generation. Objects of a cycle live until the next one at most, so a generation that holds a few
 * cycles copies almost none. V8 divides the size among three spaces and takes memory as needed. With 192 MiB the
 * collector took half as long again.
 */
const YOUNG_GENERATION_MIB = 480;

const THREAD = new URL(`./thread${extname(fileURLToPath(import.meta.url))}`, import.meta.url);

/**
 * Runs each order in its own thread, as many at once as cores. An abort gives results of the simulations that had
 * begun; a failure aborts the others.
 */
export async function runAll(orders: readonly RunOrder[], running: Running): Promise<Ran> {
  const results = new Map<number, RunResult>();
  const waiting = [...orders.entries()];
  const failed = new AbortController();
  const signal = AbortSignal.any([running.signal, failed.signal]);
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      const [i, order] = next;
      try {
        results.set(i, await runOne(order, signal, (progress) => running.onProgress(i, progress)));
      } catch (error) {
        failed.abort();
        throw error;
      }
      running.onProgress(i, null);
    }
  };
  const threads = Math.min(orders.length, Math.max(1, availableParallelism()));
  const ended = await Promise.allSettled(Array.from({ length: threads }, work));
  const [failure = null] = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as Error] : []));
  return { results: [...results].sort(([a], [b]) => a - b).map(([, result]) => result), failure };
}

function runOne(order: RunOrder, signal: AbortSignal, onProgress: (progress: RunProgress) => void): Promise<RunResult> {
  const worker = new Worker(THREAD, {
    workerData: order,
    name: order.preset,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
  });
  const abort = (): void => worker.postMessage({ why: 'stopped' } satisfies ToRun);
  signal.addEventListener('abort', abort);
  return new Promise<RunResult>((resolve, reject) => {
    worker.on('message', (message: FromRun) => {
      if (message.is === 'progress') onProgress(message);
      else if (message.is === 'done') resolve(message.result);
      else reject(thrownAgain(message.error));
    });
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a simulation's thread ended with ${code}`)));
  }).finally(() => signal.removeEventListener('abort', abort));
}
