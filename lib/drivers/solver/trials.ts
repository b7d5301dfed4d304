/**
 * Decisions on trial, in a thread that can be ended: for a cycle whose decision threw or never came back
 * (lib/cycle/decide/isolate.ts). The thread starts at the first trial, serves trials one after another, and ends with a
 * trial that outlasts its limit, or with the last one. It gets plain data, and writes nothing.
 */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { ObservedState } from '../../cycle/decide/decision.ts';
import type { Tried, TrialOutcome, Trials } from '../../cycle/decide/isolate.ts';
import { asData } from '../../cycle/steps.ts';
import { EbbError } from '../../kernel/errors.ts';
import type { ForecastTable } from '../../market/forecast/forecast-data.ts';
import { wallTime } from '../wall.ts';

/** Input of a trial thread. */
export interface TrialData {
  readonly kind: typeof TRIAL;
  readonly observed: ObservedState;
  readonly market: ForecastTable;
  /** Rows of beliefs that a decision reads. */
  readonly learned: ReadonlyMap<string, string>;
  readonly preset: string;
  readonly config: SchedulerConfig;
}
/** Tells a thread for trials from others that run the same file: a bundle is its own worker. */
export const TRIAL = 'ebb-trial';

export type TrialRequest = Tried;
export type TrialReply =
  | { readonly is: 'ready' }
  | { readonly is: 'outcome'; readonly outcome: Exclude<TrialOutcome, { status: 'stuck' }> };

/** A thread loads some hundred files before its first trial, which takes a machine under load some seconds. */
const START_MS = 45_000;

export function openTrials(of: Omit<TrialData, 'kind'>, worker: URL = workerUrl()): Trials {
  const trials = new ThreadedTrials(
    { ...of, observed: { ...of.observed, snapshot: asData(of.observed.snapshot) } },
    worker,
  );
  return {
    trial: (tried, limitMs) => trials.try(tried, limitMs),
    nowMs: () => wallTime.monotonicMs(),
    close: () => trials.close(),
  };
}

/** `trial-worker.ts` beside this file in the repository, `trial-worker.js` in a build. */
function workerUrl(): URL {
  return new URL(`./trial-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
}

class ThreadedTrials {
  readonly #data: TrialData;
  readonly #url: URL;
  #worker: Worker | null = null;

  constructor(of: Omit<TrialData, 'kind'>, url: URL) {
    this.#data = { ...of, kind: TRIAL };
    this.#url = url;
  }

  async try(tried: Tried, limitMs: number): Promise<TrialOutcome> {
    const worker = await this.#started();
    const reply = this.#reply(worker, limitMs);
    worker.postMessage(tried satisfies TrialRequest);
    const answer = await reply;
    if (answer === 'late') {
      await this.close();
      return { status: 'stuck', afterMs: limitMs };
    }
    if (answer instanceof Error) {
      // Out of memory, say: the job is to blame as much as for a loop.
      await this.close();
      return { status: 'threw', error: answer.message };
    }
    return answer.is === 'outcome' ? answer.outcome : { status: 'threw', error: 'a trial gave no outcome' };
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  async #started(): Promise<Worker> {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(this.#url, { name: 'trial', workerData: this.#data });
    // An error event without a listener would end the process.
    worker.on('error', () => undefined);
    this.#worker = worker;
    const answer = await this.#reply(worker, START_MS);
    if (answer !== 'late' && !(answer instanceof Error)) return worker;
    await this.close();
    throw new EbbError('internal', {
      what: 'no thread could be started for the trials of a decision',
      got: answer === 'late' ? `nothing within ${START_MS / 1000} s` : answer.message,
    });
  }

  /** The next message of the thread, its fault, or `late`. */
  #reply(worker: Worker, limitMs: number): Promise<TrialReply | Error | 'late'> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => done('late'), limitMs);
      const done = (answer: TrialReply | Error | 'late'): void => {
        clearTimeout(timer);
        worker.off('message', done).off('error', done).off('exit', onExit);
        resolve(answer);
      };
      const onExit = (code: number): void => done(new Error(`the thread ended with ${code}`));
      worker.on('message', done).on('error', done).on('exit', onExit);
    });
  }
}
