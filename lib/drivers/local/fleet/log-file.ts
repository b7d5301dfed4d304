import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Output of a task, in a file of bounded size. The task writes into a pipe that is always emptied, so neither a full
 * log nor a full disk stops or kills it; lost bytes are counted and marked in their place: `[ebb: log ends here, its
 * limit is N bytes]`, `[ebb: N bytes lost, <error code>]`. Imported by the supervisor: node: imports only.
 */
export class LogFile {
  readonly #path: string;
  readonly #limit: number;
  #fd: number | null = null;
  #kept = 0;
  #lost = 0;
  #trouble = '';
  #ended = false;

  /** The file is made with the first byte: most short tasks print nothing. */
  constructor(path: string, limitBytes: number) {
    this.#path = path;
    this.#limit = limitBytes;
  }

  #open(): number {
    mkdirSync(dirname(this.#path), { recursive: true });
    return openSync(this.#path, 'a');
  }

  write(chunk: Buffer): void {
    if (this.#ended) return;
    const room = this.#limit - this.#kept;
    const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
    if (this.#lost > 0) this.#put(Buffer.from(this.#gap()), () => (this.#lost = 0));
    this.#put(part, null);
    if (part.length < chunk.length) {
      this.#ended = true;
      this.#put(Buffer.from(`\n[ebb: log ends here, its limit is ${this.#limit} bytes]\n`), () => undefined);
    }
  }

  close(): void {
    if (this.#lost > 0) this.#put(Buffer.from(this.#gap()), () => (this.#lost = 0));
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #gap(): string {
    return `\n[ebb: ${this.#lost} bytes lost, ${this.#trouble}]\n`;
  }

  /**
   * Writes bytes of the task (`marker` null) or a marker, which counts towards nothing and is tried again when it
   * fails.
   */
  #put(bytes: Buffer, marker: (() => void) | null): void {
    let done = 0;
    try {
      const fd = (this.#fd ??= this.#open());
      while (done < bytes.length) done += writeSync(fd, bytes, done);
      marker?.();
    } catch (error) {
      this.#trouble = codeOf(error);
      if (marker === null) this.#lost += bytes.length - done;
    }
    if (marker === null) this.#kept += done;
  }
}

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code ?? 'unknown error');
