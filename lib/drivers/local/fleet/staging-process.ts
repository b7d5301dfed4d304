import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FromStager, StagingOrder, ToStager } from './stager.ts';

/**
 * The process that copies files for this supervisor (stager.ts): started on demand, ended after some seconds without
 * work. When it dies, its orders fail, and the next order starts another one. Imported by the supervisor: node: imports
 * only.
 */
const STAGER = fileURLToPath(new URL(`./stager${extname(import.meta.url)}`, import.meta.url));
/** Tasks follow one another on an instance: starting the process takes longer than most copies. */
const IDLE_MS = 10_000;
/** A cancelled order has this long to end, so that nothing more is written into a folder that is being removed. */
const CANCEL_PATIENCE_MS = 1000;

interface Waiting {
  readonly resolve: (paths: readonly string[]) => void;
  readonly reject: (error: Error) => void;
}

export class StagingProcess {
  readonly #onExit: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcess | null = null;
  #lastId = 0;
  #idle: NodeJS.Timeout | undefined;

  /** `onExit`: a child of this process has ended that was no task. */
  constructor(onExit: () => void) {
    this.#onExit = onExit;
  }

  /**
   * Resolves to the missing or unmatched patterns of the order; rejects with a sentence for people, soon after a
   * cancellation at the latest.
   */
  async ask(order: StagingOrder, signal?: AbortSignal): Promise<readonly string[]> {
    if (order.patterns.length === 0) return [];
    signal?.throwIfAborted();
    clearTimeout(this.#idle);
    const id = ++this.#lastId;
    let patience: NodeJS.Timeout | undefined;
    const cancel = (): void => {
      this.#send({ cancel: id });
      patience = setTimeout(() => this.#waiting.get(id)?.reject(new Error('cancelled')), CANCEL_PATIENCE_MS);
    };
    try {
      return await new Promise<readonly string[]>((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject });
        signal?.addEventListener('abort', cancel, { once: true });
        this.#send({ id, order });
      });
    } finally {
      clearTimeout(patience);
      signal?.removeEventListener('abort', cancel);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
    }
  }

  #send(message: ToStager): void {
    this.#child ??= this.#start();
    this.#child.send(message, (error) => {
      if (error !== null) this.#fail(error.message);
    });
  }

  #start(): ChildProcess {
    const child = fork(STAGER, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    child.on('message', (answer: FromStager) => {
      const waiting = this.#waiting.get(answer.id);
      if ('fault' in answer) waiting?.reject(new Error(answer.fault));
      else waiting?.resolve(answer.paths);
    });
    const gone = (why: string): void => {
      if (this.#child !== child) return;
      this.#child = null;
      this.#fail(why);
    };
    child.once('error', (error) => gone(error.message));
    child.once('exit', (code, signal) => {
      this.#onExit();
      gone(signal === null ? `exit code ${code}` : signal);
    });
    return child;
  }

  #fail(why: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(`files could not be copied: ${why}`));
  }

  #end(): void {
    const child = this.#child;
    this.#child = null;
    if (child?.connected === true) child.disconnect();
  }
}
