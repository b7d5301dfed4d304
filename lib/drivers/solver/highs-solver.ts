/**
 * HiGHS behind the Solver port, in a worker thread.
 * Lifecycle: the thread starts at the first call, serves calls one after another, and ends by itself after `idleS`
 * without one, so that an idle engine stays small (WebAssembly memory grows and is only returned with its thread). A
 * thread that dies fails the call it was working on; the next call starts a new one. The thread never keeps the process
 * alive by itself. HiGHS reads its clock only between steps, so a call far past its time limit is ended together with
 * the thread: it answers `no-solution`, limit `time`.
 */
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { EbbError } from '../../kernel/errors.ts';
import type { Milp, SolveLimits, Solver } from '../../policy/solver.ts';
import type { HighsReply, HighsRequest, ModelNumbers } from './highs-protocol.ts';

export interface HighsOptions {
  /** Seconds without a call after which the thread ends. */
  readonly idleS?: number;
  /** Seconds past its own limit after which a call is given up. */
  readonly graceS?: number;
  /** File of the worker; for tests of crashes. */
  readonly worker?: URL;
}

/** Longer than a cycle of a minute, because a new thread runs unoptimised code and is 3 to 5 times slower at first. */
const DEFAULT_IDLE_S = 90;
const DEFAULT_GRACE_S = 2;

/** `highs-worker.ts` beside this file in the repository, `highs-worker.js` in a build. */
function workerUrl(): URL {
  return new URL(`./highs-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
}

type Ended = { readonly kind: 'crashed'; readonly detail: string } | { readonly kind: 'overdue' };

export function highsSolver(options: HighsOptions = {}): Solver {
  return new HighsSolver(options);
}

class HighsSolver implements Solver {
  readonly #idleMs: number;
  readonly #graceMs: number;
  readonly #url: URL;
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;
  #queue: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(options: HighsOptions) {
    this.#idleMs = (options.idleS ?? DEFAULT_IDLE_S) * 1000;
    this.#graceMs = (options.graceS ?? DEFAULT_GRACE_S) * 1000;
    this.#url = options.worker ?? workerUrl();
  }

  async solve(...[model, limits, start]: Parameters<Solver['solve']>): ReturnType<Solver['solve']> {
    const reply = await this.#call({ kind: 'solve', model: numbersOf(model), limits, start }, limits);
    if (reply.kind === 'solve') return reply.outcome;
    if (reply.kind === 'overdue') return { status: 'no-solution', bound: null, limit: 'time' };
    return { status: 'failed', detail: detailOf(reply) };
  }

  async relax(...[model, limits]: Parameters<Solver['relax']>): ReturnType<Solver['relax']> {
    const reply = await this.#call({ kind: 'relax', model: numbersOf(model), limits }, limits);
    return reply.kind === 'relax' ? reply.relaxed : null;
  }

  async write(model: Milp, format: 'lp' | 'mps'): Promise<string> {
    const columnNames = Array.from({ length: model.columns }, (_, column) => model.columnName(column));
    const rowNames = Array.from({ length: model.rows }, (_, row) => model.rowName(row));
    const reply = await this.#call({ kind: 'write', model: numbersOf(model), format, columnNames, rowNames }, null);
    if (reply.kind === 'write') return reply.text;
    throw new EbbError('internal', { what: 'the model could not be written', got: detailOf(reply) });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#end();
  }

  /** Calls run one after another: one thread, one model at a time. */
  #call(request: HighsRequest, limits: SolveLimits | null): Promise<HighsReply | Ended> {
    const exchange = this.#queue.then(() => this.#exchange(request, limits));
    this.#queue = exchange;
    return exchange;
  }

  #exchange(request: HighsRequest, limits: SolveLimits | null): Promise<HighsReply | Ended> {
    if (this.#closed) return Promise.resolve({ kind: 'crashed', detail: 'the solver is closed' });
    if (this.#idle !== null) clearTimeout(this.#idle);
    const worker = (this.#worker ??= new Worker(this.#url, { name: 'highs' }));
    worker.ref();
    return new Promise((resolve) => {
      const maxMs = limits === null || limits.maxSeconds === null ? null : limits.maxSeconds * 1000 + this.#graceMs;
      const overdue = maxMs === null ? null : setTimeout(() => end({ kind: 'overdue' }), maxMs);
      const end = (reply: HighsReply | Ended): void => {
        if (overdue !== null) clearTimeout(overdue);
        worker.off('message', end).off('error', onError).off('exit', onExit);
        if (reply.kind === 'overdue' || reply.kind === 'crashed') {
          this.#worker = null;
          worker.on('error', () => undefined);
          void worker.terminate();
        } else this.#rest(worker);
        resolve(reply);
      };
      const onError = (error: Error): void => end({ kind: 'crashed', detail: error.message });
      const onExit = (code: number): void => end({ kind: 'crashed', detail: `the solver's thread ended with ${code}` });
      worker.on('message', end).on('error', onError).on('exit', onExit);
      worker.postMessage(request);
    });
  }

  #rest(worker: Worker): void {
    worker.unref();
    this.#idle = setTimeout(() => void this.#end(), this.#idleMs).unref();
  }

  async #end(): Promise<void> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}

function numbersOf(model: Milp): ModelNumbers {
  const { columnName: _c, rowName: _r, ...numbers } = model;
  return numbers;
}

const detailOf = (reply: HighsReply | Ended): string =>
  'detail' in reply ? reply.detail : `unexpected answer ${reply.kind}`;
