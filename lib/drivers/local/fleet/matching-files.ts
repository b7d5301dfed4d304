import type { Dirent } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expandBraces, GLOB_LIMITS, segmentsOf, type Segment } from '../../../domain/globs.ts';
import { hasCode } from './files.ts';

/**
 * Files below a folder that match a pattern of lib/domain/globs.ts. Each folder is read once for all alternatives of
 * the pattern, and a matching folder stands for its whole content: nothing below it is examined. `**` does not go
 * through symbolic links. Copied into the fleet's directory beside the supervisor: node: imports and
 * lib/domain/globs.ts only.
 */
export interface Search {
  readonly signal?: AbortSignal;
  /** Called for each examined entry; a throw ends the search. */
  readonly onEntry?: () => void;
}

/** The remaining segments of an alternative. */
interface State {
  readonly segments: readonly Segment[];
  readonly at: number;
  /** The pattern ends with a slash: only folders match. */
  readonly foldersOnly: boolean;
}

/**
 * Paths relative to `folder`, in no order. Throws RangeError where the pattern has more alternatives than are allowed.
 */
export async function* matchingFiles(pattern: string, folder: string, search: Search = {}): AsyncGenerator<string> {
  const alternatives = expandBraces(pattern);
  if (alternatives === null) {
    throw new RangeError(`pattern ${pattern.slice(0, 80)} stands for more than ${GLOB_LIMITS.alternatives} patterns`);
  }
  const states = alternatives.flatMap((each): State[] => {
    const segments = segmentsOf(each);
    if (segments.length === 0) return [];
    return [{ segments, at: 0, foldersOnly: each.endsWith('/') }];
  });
  yield* below(folder, '', states, search);
}

async function* below(root: string, path: string, entering: readonly State[], search: Search): AsyncGenerator<string> {
  const states = withoutFolders(entering);
  if (states.some(isAllOfIt)) {
    yield path === '' ? '.' : path;
    return;
  }
  const names = new Map<string, State[]>();
  const wild: State[] = [];
  for (const state of states) {
    const segment = state.segments[state.at];
    if (segment?.is !== 'name') wild.push(state);
    else if (names.get(segment.name)?.push(state) === undefined) names.set(segment.name, [state]);
  }
  const deeper: { readonly path: string; readonly states: readonly State[] }[] = [];
  const visit = (): void => {
    search.signal?.throwIfAborted();
    search.onEntry?.();
  };
  const all = wild.length === 0 ? named(root, path, [...names.keys()], visit) : entriesOf(join(root, path), visit);
  for await (const entry of all) {
    const next = [...(names.get(entry.name) ?? []).map(advanced), ...wild.flatMap((state) => past(state, entry))];
    if (next.length === 0) continue;
    const here = path === '' ? entry.name : `${path}/${entry.name}`;
    const isFolder = entry.isFolder ?? (await isFolderAt(join(root, here)));
    // A link to nothing.
    if (isFolder === null) continue;
    if (next.some((s) => s.at >= s.segments.length && (isFolder || !s.foldersOnly))) yield here;
    else if (isFolder) deeper.push({ path: here, states: next.filter((s) => s.at < s.segments.length) });
  }
  for (const { path: here, states: next } of deeper) yield* below(root, here, next, search);
}

const advanced = (state: State): State => ({ ...state, at: state.at + 1 });

/**
 * `**` stands for no folder as well, and several in a row for one. Each state once: a folder that can be reached in
 * several ways (`**` more than once) would double them at every level. O(states), which are no more than the segments
 * of the pattern.
 */
function withoutFolders(states: readonly State[]): readonly State[] {
  const seen = new Map<State['segments'], Set<number>>();
  const once = (state: State): boolean => {
    const places = seen.get(state.segments) ?? new Set();
    seen.set(state.segments, places);
    if (places.has(state.at)) return false;
    places.add(state.at);
    return true;
  };
  return states.flatMap((state): State[] => {
    let after = state;
    while (after.segments[after.at]?.is === 'folders' && after.at < after.segments.length - 1) after = advanced(after);
    const both = after === state || isAllOfIt(after) ? [after] : [{ ...after, at: after.at - 1 }, after];
    return both.filter(once);
  });
}

/** `**` at the end: the folder with its whole content. */
const isAllOfIt = ({ segments, at }: State): boolean => at === segments.length - 1 && segments[at]?.is === 'folders';

/** States after an entry, for a pattern that begins with a wildcard. */
function past(state: State, entry: Entry): readonly State[] {
  const segment = state.segments[state.at];
  if (segment?.is === 'wild') return segment.matches(entry.name) ? [advanced(state)] : [];
  return segment?.is === 'folders' && entry.isFolder === true && !entry.name.startsWith('.') ? [state] : [];
}

interface Entry {
  readonly name: string;
  /** Null for a symbolic link, and where the file system does not say. */
  readonly isFolder: boolean | null;
}

async function* entriesOf(folder: string, visit: () => void): AsyncGenerator<Entry> {
  try {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      visit();
      yield { name: entry.name, isFolder: kindOf(entry) };
    }
  } catch (error) {
    // Removed meanwhile, never a folder, or not ours to read, which a search passes over as shells do.
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'EPERM')) throw error;
  }
}

const kindOf = (entry: Dirent): boolean | null =>
  entry.isDirectory() ? true : entry.isSymbolicLink() || !entry.isFile() ? null : false;

/** Plain names are looked up: their folder may be large. */
async function* named(root: string, path: string, names: readonly string[], visit: () => void): AsyncGenerator<Entry> {
  for (const name of names) {
    visit();
    const isFolder = await isFolderAt(join(root, path, name));
    if (isFolder !== null) yield { name, isFolder };
  }
}

/** Null where there is nothing. */
async function isFolderAt(path: string): Promise<boolean | null> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return null;
    throw error;
  }
}
