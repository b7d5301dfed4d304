import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** Imported by the supervisor: node: imports only. */

/** Replaces `path` as a whole: a reader sees the old text or the new one. `durable`: also after a power cut. */
export function replaceFile(path: string, text: string, durable = false): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const fd = openSync(temporary, 'w');
  try {
    writeSync(fd, text);
    if (durable) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
  if (durable) syncFolder(dirname(path));
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

/** Text of a file, null when there is none. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

export const makeFolder = (path: string): void => void mkdirSync(path, { recursive: true });

export const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes(String((error as NodeJS.ErrnoException | null)?.code));

const PROC_BYTES = 64 * 1024;
let procBuffer: Buffer | null = null;

/**
 * A file of /proc, at most 64 KiB of it. Into one buffer for all: supervisors read some hundred a second, and fresh
 * buffers would double their memory before anything is collected. Throws what opening and reading throw.
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
