import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { hasCode, readProc } from './files.ts';

/**
 * Resource usage of the processes of a task together. On Linux it is read from /proc by process group, which costs no
 * process; elsewhere pidtree and pidusage ask `ps`. Imported by the supervisor: node: imports only; the two packages
 * are loaded on use.
 */
export interface Sample {
  readonly rssBytes: number;
  /** User and system time so far, with that of children that have ended. */
  readonly cpuMs: number;
  /** Bytes of the disk so far, of processes that live; absent where the kernel does not tell. */
  readonly io?: { readonly read: number; readonly written: number };
  /** True if one of them was waiting for a device just then. */
  readonly isWaiting?: boolean;
}

/** One reading per group, in order; null for a group that is gone. `requireFrom`: base for resolving packages. */
export async function sampleGroups(groups: readonly number[], requireFrom: string): Promise<(Sample | null)[]> {
  if (groups.length === 0) return [];
  return process.platform === 'linux' ? sampleProc(groups) : Promise.all(groups.map((g) => sampleTree(g, requireFrom)));
}

/**
 * proc(5): times are in clock ticks, which the kernel shows as 1/100 s (USER_HZ) on every architecture that Node runs
 * on.
 */
const TICK_MS = 10;

/**
 * Page size, 4 to 64 KiB: the resident set is in pages, so it is derived from this process's own, in bytes over in
 * pages.
 */
let pageBytes: number | null = null;
function pageSize(): number {
  pageBytes ??= 2 ** Math.round(Math.log2(process.memoryUsage.rss() / Number(statOf('self')[21])));
  return pageBytes;
}

export function sampleProc(groups: readonly number[]): (Sample | null)[] {
  const sums = new Map(
    groups.map((g) => [
      String(g),
      { rssBytes: 0, cpuMs: 0, isWaiting: false, io: null as NonNullable<Sample['io']> | null, seen: false },
    ]),
  );
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    const sum = sums.get(fields[2] ?? '');
    if (sum === undefined) continue;
    sum.seen = true;
    sum.rssBytes += Number(fields[21]) * pageSize();
    // utime, stime, cutime, cstime: a child's time is its parent's only once it has been waited for, so none counts
    // twice.
    for (let i = 11; i <= 14; i++) sum.cpuMs += Number(fields[i]) * TICK_MS;
    // Uninterruptible sleep: mostly for a disk.
    if (fields[0] === 'D') sum.isWaiting = true;
    const io = ioOf(name);
    if (io !== null) sum.io = { read: (sum.io?.read ?? 0) + io.read, written: (sum.io?.written ?? 0) + io.written };
  }
  return [...sums.values()].map(({ seen, io, ...of }) => (seen ? { ...of, ...(io === null ? {} : { io }) } : null));
}

/**
 * Memory of a group with shared pages divided among their users (Pss, proc(5)), so that forked workers' shared pages
 * count once. Null if the kernel does not tell. Dearer than a sample: for groups that a sample finds too large.
 */
export function sharedOutBytes(group: number): number | null {
  if (process.platform !== 'linux') return null;
  let sum = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || statOf(name)[2] !== String(group)) continue;
    try {
      const kib = /^Pss:\s+(\d+) kB/m.exec(readProc(`/proc/${name}/smaps_rollup`))?.[1];
      sum += Number(kib ?? 0) * 1024;
    } catch (error) {
      // Without memory: it has ended, and its parent has not been told yet.
      if (hasCode(error, 'ESRCH')) continue;
      // Gone meanwhile; else the kernel has no such file, or denies it.
      if (!hasCode(error, 'ENOENT') || existsSync(`/proc/${name}`)) return null;
    }
  }
  return sum;
}

/** CPU time of all children of this process that have ended and been waited for, ms; null if unknown. */
export function endedChildrenCpuMs(): number | null {
  if (process.platform !== 'linux') return null;
  const fields = statOf('self');
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}

/** Bytes that a process made a disk read and write (proc_pid_io(5)); null where that is not told. */
function ioOf(pid: string): NonNullable<Sample['io']> | null {
  try {
    const text = readProc(`/proc/${pid}/io`);
    const bytes = (name: string): number => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(text)?.[1]);
    const [read, written] = [bytes('read_bytes'), bytes('write_bytes')];
    return Number.isFinite(read) && Number.isFinite(written) ? { read, written } : null;
  } catch {
    return null;
  }
}

function statOf(pid: string): string[] {
  try {
    const text = readProc(`/proc/${pid}/stat`);
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

type PidTree = (pid: number, options: { root: boolean }) => Promise<number[]>;
type PidUsage = (pids: number[]) => Promise<Record<string, { memory: number; ctime: number } | null>>;

export async function sampleTree(root: number, requireFrom: string): Promise<Sample | null> {
  try {
    const require = createRequire(requireFrom);
    const { pidtree } = require('pidtree') as { pidtree: PidTree };
    const pidusage = require('pidusage') as PidUsage;
    const found = Object.values(await pidusage(await pidtree(root, { root: true }))).filter((u) => u !== null);
    return {
      rssBytes: found.reduce((sum, u) => sum + u.memory, 0),
      cpuMs: found.reduce((sum, u) => sum + u.ctime, 0),
    };
  } catch {
    // The tree ended meanwhile.
    return null;
  }
}
