/**
 * `work/JOB-ID`: folders that the engine makes for jobs that name no working directory. They go with their jobs
 * (old-files.ts), unless a user has named one as the working directory of another job: `work/.named/JOB-ID` says so,
 * for good.
 */
import { access, mkdir, realpath, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { timeOfText } from '../../../kernel/ids.ts';

export const ownFolders = (dir: string): string => join(dir, 'work');
export const ownFolder = (dir: string, job: string): string => join(ownFolders(dir), job);

const marks = (dir: string): string => join(ownFolders(dir), '.named');
/** Name part of the folder of all of them. */
const ALL = '.all';

/** True for names that the engine gives to folders. */
export const isOwnName = (name: string): boolean => name.startsWith('j-') && timeOfText(name.slice(2)) !== null;

/** Working directories remembered, so that jobs that name the same one cost nothing. */
const MOST_KNOWN = 1000;

export class NamedFolders {
  readonly #dir: string;
  readonly #known = new Set<string>();

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** A user's working directory. Writes down which of the engine's folders it lies in, if in any. */
  async note(workdir: string): Promise<void> {
    if (this.#known.has(workdir)) return;
    const root = await realpath(ownFolders(this.#dir)).catch(() => null);
    const real = await realpath(workdir).catch(() => null);
    if (real === null) return;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.add(workdir);
    const below = root === null ? '..' : relative(root, real);
    const [name = ''] = below.split(sep);
    if (name === '..' || isAbsolute(below)) return;
    await mkdir(marks(this.#dir), { recursive: true, mode: 0o700 });
    await writeFile(join(marks(this.#dir), name === '' ? ALL : name), '');
  }
}

export async function isNamed(dir: string, name: string): Promise<boolean> {
  return (await exists(join(marks(dir), name))) || (await exists(join(marks(dir), ALL)));
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
