import type { Stats } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

/** Entries examined without a pause of the event loop: some 5 ms. */
export const ENTRIES_AT_ONCE = 256;

export interface FolderSize {
  readonly bytes: number;
  readonly entries: number;
}

export interface Pacing {
  /** Awaited after each ENTRIES_AT_ONCE entries, so that other work can run. */
  readonly pause: () => Promise<void>;
  readonly signal?: AbortSignal;
}

/**
 * Disk use of a folder, as `du` counts it: blocks, not lengths; a file with several names once; links are not followed.
 * Entries that come, go or are unreadable meanwhile are skipped. O(entries), 11 microseconds of processor time each;
 * memory for unread folders, and for files with several names. Rejects when aborted.
 */
export async function folderSize(path: string, { pause, signal }: Pacing): Promise<FolderSize> {
  const folders = [path];
  const linked = new Set<string>();
  let bytes = 0;
  let entries = 0;
  let waiting: string[] = [path];
  const take = async (): Promise<void> => {
    const found = await Promise.all(waiting.map(statsOf));
    waiting = [];
    for (const stats of found) {
      if (stats === null || isKnown(stats, linked)) continue;
      entries++;
      bytes += sizeOf(stats);
    }
    await pause();
    signal?.throwIfAborted();
  };
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of entriesOf(folder)) {
      const at = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(at);
      waiting.push(at);
      if (waiting.length >= ENTRIES_AT_ONCE) await take();
    }
  }
  await take();
  return { bytes, entries };
}

/** Systems without blocks (Windows) tell lengths alone. */
const sizeOf = ({ blocks, size }: Stats): number =>
  Number.isFinite(blocks) && process.platform !== 'win32' ? blocks * 512 : size;

function isKnown(stats: Stats, linked: Set<string>): boolean {
  if (stats.nlink < 2 || stats.isDirectory()) return false;
  const id = `${stats.dev}:${stats.ino}`;
  if (linked.has(id)) return true;
  linked.add(id);
  return false;
}

const statsOf = (path: string): Promise<Stats | null> => lstat(path).catch(() => null);

async function* entriesOf(folder: string) {
  try {
    yield* await opendir(folder, { bufferSize: ENTRIES_AT_ONCE });
  } catch {
    // Gone, or unreadable; its content counts once it can be read.
  }
}
