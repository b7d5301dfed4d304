import { closeSync, fstatSync, openSync, readSync, truncateSync, writeSync } from 'node:fs';
import { hasCode } from './files.ts';
import type { Fact, JournalLine } from './messages.ts';

/**
 * Append-only, one JSON object per line. A line counts once its newline is there, so a line torn by a crash is not
 * read. Imported by the supervisor: node: imports only.
 */
export class JournalWriter {
  readonly #fd: number;
  readonly #rung: () => void;
  #sequence: number;
  /** Bytes for which the disk had no room, to be written first. */
  #pending: Buffer = Buffer.alloc(0);
  /** Lines of a `together` that is under way. */
  #held: string[] | null = null;

  /** `rung` is called after each write. `sequence` is the last one that the file holds. */
  constructor(path: string, sequence: number, rung: () => void) {
    this.#fd = openSync(path, 'a');
    this.#sequence = sequence;
    this.#rung = rung;
  }

  observe(fact: Fact): void {
    this.#append({ sequence: ++this.#sequence, ...fact });
  }

  taken(key: string, attempt: string | null, checkpointDir: string | null): void {
    this.#append({ taken: key, attempt, checkpointDir });
  }

  /** Writes the lines that `work` leads to at once, when it is done. */
  together(work: () => void): void {
    if (this.#held !== null) {
      work();
      return;
    }
    const held: string[] = (this.#held = []);
    try {
      work();
    } finally {
      this.#held = null;
      if (held.length > 0) this.#write(held.join(''));
    }
  }

  #append(line: JournalLine): void {
    const text = `${JSON.stringify(line)}\n`;
    if (this.#held === null) this.#write(text);
    else this.#held.push(text);
  }

  #write(text: string): void {
    this.#pending = Buffer.concat([this.#pending, Buffer.from(text)]);
    this.flush();
  }

  /** True if everything is in the file; on a full disk the remaining bytes wait in memory for the next call. */
  flush(): boolean {
    try {
      while (this.#pending.length > 0) this.#pending = this.#pending.subarray(writeSync(this.#fd, this.#pending));
      this.#rung();
    } catch (error) {
      if (!hasCode(error, 'ENOSPC', 'EDQUOT', 'EIO', 'EAGAIN')) throw error;
    }
    return this.#pending.length === 0;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** Reads a journal as it grows: each call returns the lines that were completed since the last one. */
export class JournalReader {
  readonly #path: string;
  readonly #onBad: (line: string) => void;
  #offset = 0;

  /** `onBad` is told of a complete line that a damaged disk made unreadable; reading goes on after it. */
  constructor(path: string, onBad: (line: string) => void = () => undefined) {
    this.#path = path;
    this.#onBad = onBad;
  }

  /** Bytes read so far. */
  get offset(): number {
    return this.#offset;
  }

  read(): JournalLine[] {
    let fd: number;
    try {
      fd = openSync(this.#path, 'r');
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    }
    try {
      const size = fstatSync(fd).size;
      if (size <= this.#offset) return [];
      const bytes = Buffer.alloc(size - this.#offset);
      const got = readSync(fd, bytes, 0, bytes.length, this.#offset);
      const end = bytes.subarray(0, got).lastIndexOf(0x0a) + 1;
      this.#offset += end;
      return bytes
        .subarray(0, end)
        .toString('utf8')
        .split('\n')
        .filter((line) => line !== '')
        .flatMap((line) => this.#parsed(line));
    } finally {
      closeSync(fd);
    }
  }

  #parsed(line: string): JournalLine[] {
    try {
      return [JSON.parse(line) as JournalLine];
    } catch {
      this.#onBad(line);
      return [];
    }
  }

  /** Cuts off a torn last line. Only for a journal whose writer has died. */
  dropTornLine(): void {
    try {
      truncateSync(this.#path, this.#offset);
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
    }
  }
}
