import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Imported by the supervisor: node: imports only. */

/**
 * Replaces `path` as a whole: a reader sees the old text or the new one. `durable`: also after a power cut. On a full
 * disk it throws ENOSPC and leaves only the old file.
 */
export function replaceFile(path: string, text: string, durable = false): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const fd = openSync(temporary, 'w');
    try {
      writeAll(fd, Buffer.from(text));
      if (durable) fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (durable) syncFolder(dirname(path));
}

/**
 * Writes every byte, at `position` or at the present position. One write(2) may take fewer bytes than given, on a full
 * disk for instance, and reports that only by their count.
 */
export function writeAll(fd: number, bytes: Uint8Array, position: number | null = null): void {
  for (let done = 0; done < bytes.length;) {
    done += writeSync(fd, bytes, done, bytes.length - done, position === null ? null : position + done);
  }
}

/** Suffix of files that cannot be parsed. */
const BAD = '.bad';

/** Puts an unparsable file aside, for people; returns the new path. */
export function quarantine(path: string): string {
  renameSync(path, path + BAD);
  return path + BAD;
}

function syncFolder(path: string): void {
  // Windows opens no folders, and its renames need no such help.
  if (process.platform === 'win32') return;
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Text of a file; null: none. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

/** Removes a folder with its content; most are empty, which takes one system call instead of a dozen. */
export function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) rmSync(path, { recursive: true, force: true });
  }
}

export const makeFolder = (path: string): void => void mkdirSync(path, { recursive: true });

export const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes(String((error as NodeJS.ErrnoException | null)?.code));

const PROC_BYTES = 64 * 1024;
let procBuffer: Buffer | null = null;

/**
 * A file of /proc, at most 64 KiB of it. One buffer for all: supervisors read some hundred a second, and fresh buffers
 * would double their memory before a collection. Throws on errors of opening and reading.
 */
export function readProc(path: string): string {
  procBuffer ??= Buffer.allocUnsafeSlow(PROC_BYTES);
  const fd = openSync(path, 'r');
  try {
    return procBuffer.toString('latin1', 0, readSync(fd, procBuffer, 0, PROC_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}
