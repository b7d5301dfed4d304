/**
 * Tokens of engines on one machine. An engine makes its own at its first start and keeps it in its folder, in a file
 * that only its user can read. Whoever can read that file may submit jobs, which run as that user.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, lstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { hasCode } from '../../drivers/local/fleet/files.ts';

/** Name of the file in an engine's folder. */
export const TOKEN_FILE = 'token';
const TOKEN_BYTES = 32;
/** Largest token file that is read; JSON Web Tokens have some kilobytes. */
const MAX_FILE_BYTES = 16_384;
/** Characters that a header can carry after `Bearer`. */
const USABLE = /^[\x21-\x7e]+$/;
const OTHERS_RIGHTS = 0o077;

/**
 * Path of the token that an engine keeps in its folder; made if there is none. Throws `usage` for a file that others
 * can read.
 */
export function keptToken(dir: string): string {
  const path = join(dir, TOKEN_FILE);
  if (!isThere(path)) make(path);
  checkPrivate(path);
  return path;
}

/** The token in a file, without line ends and blanks around it. Throws `usage`. */
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
      // Pipes, which shells make of `<(...)`, come in pieces.
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

/** The file appears with its whole content, so that an engine killed meanwhile leaves none or a good one. */
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

/** A token that others can read, or have put there, keeps nobody out. */
function checkPrivate(path: string): void {
  // Windows has other rights, which these bits do not show.
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
