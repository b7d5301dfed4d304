/** Files that a simulation writes: refused before hours are spent on results that cannot be written. */
import { accessSync, constants, lstatSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { EbbError, messageOf } from '../../kernel/errors.ts';
import { hasCode } from '../../drivers/local/fleet/files.ts';

export interface Targets {
  readonly report: string | null;
  readonly log: string | null;
}

/**
 * Absolute paths of the files, links resolved. The report replaces or creates a plain file. The log may also go to a
 * device or a pipe. Throws EbbError `usage`.
 */
export function targetsOf({ report, log }: Targets): Targets {
  const found = {
    report: report === null ? null : targetOf('--report', report, true),
    log: log === null ? null : targetOf('--log', log, false),
  };
  if (found.report !== null && found.report === found.log) {
    throw new EbbError('usage', {
      what: '--report and --log name the same file',
      got: `${report ?? ''} and ${log ?? ''}`,
      next: 'give each a file of its own',
    });
  }
  return found;
}

/** Absolute path of one file, likewise. `plainOnly`: no device or pipe. */
export function targetOf(flag: string, path: string, plainOnly: boolean): string {
  const refuse = (what: string, next: string): never => {
    throw new EbbError('usage', { what: `${flag} cannot be written: ${what}`, got: path, next });
  };
  const there = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const stat = statSync(path, { throwIfNoEntry: false });
  if (there && stat === undefined) refuse('it is a link to nothing', 'name the file itself');
  if (stat?.isDirectory() === true) refuse('it is a folder', 'name a file in it');
  if (plainOnly && stat !== undefined && !stat.isFile()) refuse('it is no plain file', 'name a new file');
  const folder = dirname(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    refuse('its folder does not exist', `create it with: mkdir -p ${folder}`);
  const target = there ? realpathSync(path) : join(realpathSync(folder), basename(path));
  try {
    // A report is written beside its target and renamed. A log is written in place if it exists.
    accessSync(plainOnly || !there ? dirname(target) : target, constants.W_OK);
  } catch {
    refuse('it is not yours to write', 'name a file in another folder');
  }
  return target;
}

/** Writes the file whole or not at all. Throws the EbbError of `unwritten`. */
export function writeWhole(path: string, text: string, flag = '--report'): void {
  const temporary = `${path}.part`;
  try {
    writeFileSync(temporary, text);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw unwritten(flag, path, error);
  }
}

/** Error for a file that has become unwritable since the start. */
export const unwritten = (flag: string, path: string, cause: unknown): EbbError =>
  new EbbError(hasCode(cause, 'ENOSPC', 'EDQUOT', 'EFBIG') ? 'store.full' : 'usage', {
    what: `${flag} could not be written`,
    got: `${path}: ${messageOf(cause)}`,
    next: 'the same command makes the same file: name one in a folder with room that you may write',
    cause,
  });
