import { constants } from 'node:fs';
import { copyFile, cp, glob, mkdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import { hasCode } from './files.ts';

/**
 * Brings a task's inputs into its own directory and its outputs back. Patterns are relative to the job's working
 * directory and never lead out of it, neither by `..` nor by a symbolic link.
 * Imported by the supervisor: node: imports only.
 */

/** What is wrong with the job's files, for people; the attempt has failed. */
export class StagingError extends Error {}

/** Copy-on-write where the file system can, else a copy. */
const CLONE = constants.COPYFILE_FICLONE;
const MAGIC = /[*?[\]{}()!]/;

export interface Places {
  /** The job's working directory. */
  readonly workdir: string;
  /** The attempt's own directory. */
  readonly scratch: string;
  /** Never an input: the fleet's directory, which may lie below `workdir`. */
  readonly fleetDir: string;
}

/** Copies what `patterns` match below `workdir` to the same places below `scratch`. Each pattern must match something. */
export async function bringInputs(patterns: readonly string[], places: Places): Promise<void> {
  if (patterns.length === 0) return;
  const { workdir } = places;
  const root = await resolved(workdir);
  for (const pattern of patterns) {
    const found = await matches(pattern, workdir, 'input');
    if (found.length === 0) throw new StagingError(`input pattern ${pattern} matches nothing in ${workdir}`);
    for (const path of found) {
      await copy(path, { ...places, root });
    }
  }
}

/** Declared outputs that are plain paths and are not there: what a program that says it is done must have made. */
export async function missingOutputs(patterns: readonly string[], scratch: string): Promise<string[]> {
  const missing: string[] = [];
  for (const pattern of patterns) {
    if (!MAGIC.test(pattern) && !(await exists(join(scratch, pattern)))) missing.push(pattern);
  }
  return missing;
}

/**
 * Puts what `patterns` match below `scratch` to the same places below `workdir`, each file whole or not at all. A pattern
 * without wildcards must match; one with wildcards may match nothing.
 */
export async function putOutputs(patterns: readonly string[], places: Places): Promise<void> {
  if (patterns.length === 0) return;
  const { workdir, scratch } = places;
  const root = await resolved(workdir);
  for (const pattern of patterns) mustStayInside(pattern, 'output');
  const missing = await missingOutputs(patterns, scratch);
  if (missing.length > 0) throw new StagingError(`output ${missing.join(', ')} was not made`);
  for (const pattern of patterns) {
    for (const path of await matches(pattern, scratch, 'output')) {
      await mustBeWithin(join(scratch, path), await realpath(scratch), `output ${path}`);
      await putOne(join(scratch, path), { to: join(workdir, path), root });
    }
  }
}

async function putOne(from: string, target: { readonly to: string; readonly root: string }): Promise<void> {
  if ((await stat(from)).isDirectory()) {
    for await (const entry of glob('**', { cwd: from, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      await putOne(path, { to: join(target.to, relative(from, path)), root: target.root });
    }
    return;
  }
  await mkdir(dirname(target.to), { recursive: true });
  await mustBeWithin(dirname(target.to), target.root, `output ${target.to}`);
  const temporary = join(dirname(target.to), `.${basename(target.to)}.${process.pid}.ebb`);
  try {
    await copyFile(from, temporary, CLONE);
    await rename(temporary, target.to);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Matches relative to `folder`, sorted; a directory stands for all that is in it. */
async function matches(pattern: string, folder: string, what: 'input' | 'output'): Promise<string[]> {
  mustStayInside(pattern, what);
  if (!MAGIC.test(pattern)) return (await exists(join(folder, pattern))) ? [normalize(pattern)] : [];
  const found: string[] = [];
  for await (const path of glob(pattern, { cwd: folder })) found.push(path);
  // `**` matches a directory and what is in it: the directory is enough.
  const kept = new Set<string>();
  for (const path of found.sort((a, b) => a.length - b.length)) {
    if (!ancestors(path).some((a) => kept.has(a))) kept.add(path);
  }
  return [...kept].sort();
}

function mustStayInside(pattern: string, what: 'input' | 'output'): void {
  if (isAbsolute(pattern) || normalize(pattern).split(sep).includes('..')) {
    throw new StagingError(`${what} pattern ${pattern} leads out of the working directory`);
  }
}

function ancestors(path: string): string[] {
  const parts = path.split(sep);
  return ['.', ...parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join(sep))].filter((a) => a !== path);
}

async function copy(path: string, places: Places & { readonly root: string }): Promise<void> {
  const { workdir, scratch, root } = places;
  const own = await realpath(places.fleetDir);
  await mkdir(dirname(join(scratch, path)), { recursive: true });
  await cp(join(workdir, path), join(scratch, path), {
    recursive: true,
    dereference: true,
    mode: CLONE,
    filter: async (source) => {
      await mustBeWithin(source, root, `input ${source}`);
      return (await realpath(source)) !== own;
    },
  });
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

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}
