import { constants, rmSync } from 'node:fs';
import { copyFile, cp, lstat, mkdir, opendir, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import { globFault, isPlainPath } from '../../../domain/globs.ts';
import { hasCode } from './files.ts';
import { matchingFiles } from './matching-files.ts';

/**
 * Brings a task's inputs into its own directory and its outputs back. Patterns (lib/domain/globs.ts) are relative to
 * the job's working directory and never lead out of it, neither by `..` nor by a symbolic link. Runs in a process of
 * its own (stager.ts). Copied into the fleet's directory: node: imports and lib/domain/globs.ts only.
 */

/** Fault of the job's files, for people; the attempt has failed. */
export class StagingError extends Error {}

/** Copy-on-write where the file system can, else a copy. */
const CLONE = constants.COPYFILE_FICLONE;

export interface Places {
  /** The job's working directory. */
  readonly workdir: string;
  /** The attempt's own directory. */
  readonly scratch: string;
  /** Never an input: the fleet's directory, which may lie below `workdir`. */
  readonly fleetDir: string;
}

/**
 * Copies matches of `patterns` below `workdir` to the same places below `scratch`. Each pattern must match something.
 */
export async function bringInputs(patterns: readonly string[], places: Places, signal?: AbortSignal): Promise<void> {
  const { workdir } = places;
  const root = await resolved(workdir);
  for (const pattern of patterns) {
    let isMatched = false;
    for await (const path of matches(pattern, { folder: workdir, what: 'input', signal })) {
      isMatched = true;
      await copy(path, { ...places, root, signal });
    }
    if (!isMatched) throw new StagingError(`input pattern ${pattern} matches nothing in ${workdir}`);
  }
}

/** Declared outputs that are plain paths and are missing: a program that succeeds must have made them. */
export async function missingOutputs(patterns: readonly string[], scratch: string): Promise<string[]> {
  const missing: string[] = [];
  for (const pattern of patterns) {
    if (isPlainPath(pattern) && !(await exists(join(scratch, pattern)))) missing.push(pattern);
  }
  return missing;
}

/**
 * Moves matches of `patterns` below `scratch` to the same places below `workdir`, each file whole or not at all. A
 * pattern without wildcards must match; unmatched patterns with wildcards are returned.
 */
export async function putOutputs(patterns: readonly string[], places: Places): Promise<readonly string[]> {
  const { workdir, scratch } = places;
  const root = await resolved(workdir);
  for (const pattern of patterns) mustStayInside(pattern, 'output');
  const missing = await missingOutputs(patterns, scratch);
  if (missing.length > 0) throw new StagingError(`output ${missing.join(', ')} was not made`);
  const from = await realpath(scratch);
  const unmatched: string[] = [];
  for (const pattern of patterns) {
    let isMatched = false;
    for await (const path of matches(pattern, { folder: scratch, what: 'output' })) {
      isMatched = true;
      await mustBeWithin(join(scratch, path), from, `output ${path}`);
      await putOne(join(scratch, path), { to: join(workdir, path), root });
    }
    if (!isMatched) unmatched.push(pattern);
  }
  return unmatched;
}

async function putOne(from: string, target: { readonly to: string; readonly root: string }): Promise<void> {
  const found = await stat(from);
  // Opening a pipe without a writer would wait for ever, and hold up the files of all other tasks.
  if (!found.isFile() && !found.isDirectory()) {
    throw new StagingError(`output ${target.to} is a pipe, a socket or a device: only files and folders are put back`);
  }
  if (found.isDirectory()) {
    for await (const path of plainFiles(from)) {
      await putOne(path, { to: join(target.to, relative(from, path)), root: target.root });
    }
    return;
  }
  await makeFolderWithin(dirname(target.to), target.root, `output ${target.to}`);
  // A random name: tasks that write the same path at the same time, from any machine or container, never share a
  // temporary file.
  const temporary = join(dirname(target.to), `.ebb-${crypto.randomUUID()}.tmp`);
  temporaries.add(temporary);
  try {
    await copyFile(from, temporary, CLONE);
    await rename(temporary, target.to);
  } finally {
    await rm(temporary, { force: true });
    temporaries.delete(temporary);
  }
}

/** Files that are being written beside their targets. */
const temporaries = new Set<string>();

/** Removes the temporaries of interrupted copies from users' folders. */
export function removeTemporaries(): void {
  for (const path of temporaries) rmSync(path, { force: true });
}

/** Files in a folder and its folders. Hidden ones, links and devices are left out. */
async function* plainFiles(folder: string): AsyncGenerator<string> {
  const folders: string[] = [];
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name);
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) folders.push(path);
    else if (entry.isFile()) yield path;
  }
  for (const each of folders) yield* plainFiles(each);
}

interface Asked {
  readonly folder: string;
  readonly what: 'input' | 'output';
  readonly signal?: AbortSignal | undefined;
}

/** Matches relative to the folder; a directory stands for its whole content. */
async function* matches(pattern: string, { folder, what, signal }: Asked): AsyncGenerator<string> {
  mustStayInside(pattern, what);
  if (!isPlainPath(pattern)) yield* matchingFiles(pattern, folder, signal === undefined ? {} : { signal });
  else if (await exists(join(folder, pattern))) yield normalize(pattern);
}

/** Submission has refused such patterns already, unless an index that now stands in them made them so. */
function mustStayInside(pattern: string, what: 'input' | 'output'): void {
  if (isAbsolute(pattern) || normalize(pattern).split(sep).includes('..')) {
    throw new StagingError(`${what} pattern ${pattern} leads out of the working directory`);
  }
  const fault = globFault(pattern);
  if (fault !== null) throw new StagingError(`${what} pattern ${pattern.slice(0, 200)} ${fault}`);
}

async function copy(
  path: string,
  places: Places & { readonly root: string; readonly signal: AbortSignal | undefined },
): Promise<void> {
  const { workdir, scratch, root, signal } = places;
  const own = await realpath(places.fleetDir);
  await mkdir(dirname(join(scratch, path)), { recursive: true });
  await cp(join(workdir, path), join(scratch, path), {
    recursive: true,
    dereference: true,
    mode: CLONE,
    filter: async (source) => {
      signal?.throwIfAborted();
      await mustBeWithin(source, root, `input ${source}`);
      return (await realpath(source)) !== own;
    },
  });
}

/** Makes a folder below `root`. The part of the path that exists is checked first: a link in it may lead out. */
async function makeFolderWithin(folder: string, root: string, what: string): Promise<void> {
  let existing = folder;
  while (!(await isThere(existing, lstat))) existing = dirname(existing);
  if (!(await isThere(existing, stat))) throw new StagingError(`${what} leads through a link to nothing, ${existing}`);
  await mustBeWithin(existing, root, what);
  await mkdir(folder, { recursive: true });
  // Tasks run meanwhile and may have put a link there.
  await mustBeWithin(folder, root, what);
}

async function mustBeWithin(path: string, root: string, what: string): Promise<void> {
  const real = await realpath(path);
  const away = relative(root, real);
  if (away === '..' || away.startsWith(`..${sep}`) || isAbsolute(away)) {
    throw new StagingError(`${what} leads out of the working directory, to ${real}`);
  }
}

async function resolved(workdir: string): Promise<string> {
  try {
    return await realpath(workdir);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) throw new StagingError(`working directory ${workdir} does not exist`);
    throw error;
  }
}

const exists = (path: string): Promise<boolean> => isThere(path, stat);

/** `statOf`: `lstat` also finds broken links. */
async function isThere(path: string, statOf: typeof stat | typeof lstat): Promise<boolean> {
  try {
    await statOf(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
