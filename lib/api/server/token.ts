/**
 * Tokens of engines on one machine. An engine makes its token at its first start and keeps it in its folder, readable
 * by its user only. Readers of that file may submit jobs, which run as that user.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, lstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { hasCode } from '../../drivers/local/fleet/files.ts';

/** File name in an engine's folder. */
export const TOKEN_FILE = 'token';
const TOKEN_BYTES = 32;
/** Most bytes read of a token file; JSON Web Tokens have some kilobytes. */
const MAX_FILE_BYTES = 16_384;
/** Characters allowed in a header after `Bearer`. */
const USABLE = /^[\x21-\x7e]+$/;
const OTHERS_RIGHTS = 0o077;

/** Path of the engine's token, made if absent. Throws `usage` for a file that others can read. */
export function keptToken(dir: string): string {
  const path = join(dir, TOKEN_FILE);
  if (!isThere(path)) make(path);
  checkPrivate(path);
  return path;
}

/** Token in a file, trimmed. Throws `usage`. */
export function tokenIn(path: string): string {
  const token = contentOf(path).trim();
  if (USABLE.test(token)) return token;
  throw new EbbError('usage', {
    what: 'the token file holds no token',
    got: token === '' ? `${path}, which is empty` : `${path}, whose text has blanks or other characters`,
    allowed: 'one line of visible ASCII characters',
    next: 'make one with `openssl rand -hex 32`',
  });
}

function contentOf(path: string): string {
  try {
    const fd = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(MAX_FILE_BYTES);
      let length = 0;
      // Pipes, as shells make of `<(...)`, arrive in pieces.
      for (let read = -1; read !== 0 && length < MAX_FILE_BYTES; length += read) {
        read = readSync(fd, buffer, length, MAX_FILE_BYTES - length, null);
      }
      return buffer.toString('utf8', 0, length);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new EbbError('usage', {
      what: 'the token file cannot be read',
      got: cause instanceof Error ? cause.message : path,
      allowed: 'a file that holds the token, e.g. .ebb/token of the engine’s folder',
      next: 'correct --token-file, or set EBB_TOKEN',
      cause,
    });
  }
}

/** Creates the file with its whole content, so that a killed engine leaves none or a valid one. */
function make(path: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const fd = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(fd, `${randomBytes(TOKEN_BYTES).toString('hex')}\n`);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(temporary, path);
}

/** Refuses a token file that others can read or have made. */
function checkPrivate(path: string): void {
  // Windows rights do not show in these bits.
  if (process.platform === 'win32') return;
  const fd = openSync(path, 'r');
  const { mode, uid } = fstatSync(fd);
  closeSync(fd);
  const owner = process.getuid?.() ?? uid;
  if ((mode & OTHERS_RIGHTS) === 0 && uid === owner) return;
  throw new EbbError('usage', {
    what: 'the engine’s token can be read or changed by other users',
    got: `${path}, mode ${(mode & 0o777).toString(8).padStart(4, '0')}, of user ${uid}`,
    allowed: `mode 0600, of user ${owner}`,
    next: `make a new one: \`rm ${path}\`, then start again`,
  });
}

function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
