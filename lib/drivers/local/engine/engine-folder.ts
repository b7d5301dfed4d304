import { accessSync, constants, mkdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { EbbError, messageOf } from '../../../kernel/errors.ts';
import { hasCode } from '../fleet/files.ts';

/**
 * File systems that the kernel makes up (statfs(2), linux/magic.h). `mkdir -p` below /proc never ends in some versions
 * of Node.
 */
const VIRTUAL: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x62656572, // sysfs
  0x27e0eb, // cgroup
  0x63677270, // cgroup2
  0x64626720, // debugfs
  0x74726163, // tracefs
  0x1cd1, // devpts
]);

/**
 * Makes the folder of an engine, private to its user, if it is not there; its missing parents too. Returns how to undo
 * that. Throws `usage` for a path that can be no such folder, and `store.full`; nothing is left over then.
 */
export function makeEngineFolder(path: string): { undo(): void } {
  const missing: string[] = [];
  let there = path;
  for (; kindOf(there) === 'nothing'; there = dirname(there)) missing.unshift(there);
  if (kindOf(there) !== 'folder') refuse(path, `${there} is not a folder`);
  if (VIRTUAL.has(statfsSync(there).type)) refuse(path, `${there} belongs to the kernel and keeps no files`);
  const made: string[] = [];
  const undo = (): void => made.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
  try {
    for (const folder of missing) {
      mkdirSync(folder, { mode: 0o700 });
      made.push(folder);
    }
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    undo();
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) throw error;
    refuse(path, messageOf(error));
  }
  return { undo };
}

/**
 * Rights of other users of this machine to an engine's folder, for people; null: none. New folders are private;
 * existing ones keep their mode. The folder holds values of `env`, logs, checkpoints, and orders to instances.
 */
export function rightsOfOthers(path: string): string | null {
  // Windows has other rights, which these bits do not show.
  if (process.platform === 'win32') return null;
  const { mode } = statSync(path);
  if ((mode & 0o022) !== 0) return 'change';
  return (mode & 0o055) === 0 ? null : 'read';
}

function kindOf(path: string): 'folder' | 'other' | 'nothing' {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR') && dirname(path) !== path) return 'nothing';
    // Unreadable: the caller reports it by name.
    return 'other';
  }
}

function refuse(path: string, got: string): never {
  throw new EbbError('usage', {
    what: 'this cannot be the folder of an engine',
    got: `--dir ${path}: ${got}`,
    allowed: 'a folder that you may write, or the name of a new one',
    next: 'name another with --dir',
  });
}
