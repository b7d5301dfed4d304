import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileName } from './layout.ts';

/**
 * Memory limits: a task that uses more memory than its job asked for is ended, as ECS does on AWS. If the system
 * allows, the kernel enforces it: a control group (cgroup v2) per attempt with `memory.max`. Elsewhere, and in
 * addition, readings of its memory are watched. Imported by the supervisor: node: imports only.
 */

/** Reason for the end of a task, with the remedy for its owner. */
export function overLimit(limitMib: number, used: { readonly bytes: number } | 'kernel'): string {
  const how = used === 'kernel' ? 'the kernel ended it' : `it used ${Math.ceil(used.bytes / 2 ** 20)} MiB`;
  return `out of memory: ${how}, and its job asks for ${limitMib} MiB; ask for more with resources.memory`;
}

/** Interface to the system; tests give their own. */
export interface CgroupSystem {
  /** `/proc/self/cgroup` and `/proc/self/mountinfo`. */
  readonly own: string;
  readonly mounts: string;
  readonly makeFolder: (path: string) => void;
}

/** Folder of control groups below which one per task may be made; null without one with a memory controller. */
export function delegatedFolder(system: CgroupSystem): string | null {
  const path = /^0::(.*)$/m.exec(system.own)?.[1];
  // mountinfo (proc(5)): id, parent, device, root, mount point, options, optional fields, a dash, type.
  const [, root, mounted] = /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(system.mounts) ?? [];
  if (path === undefined || root === undefined || mounted === undefined) return null;
  const inside = root === '/' ? path : path.startsWith(root) ? path.slice(root.length) : null;
  if (inside === null) return null;
  const own = resolve(mounted, `.${inside}`);
  // A group with processes cannot have child groups; then ours go beside it, as systemd does for its units.
  const candidates = own === mounted ? [own] : [own, dirname(own)];
  return candidates.find((folder) => canLimit(folder, system)) ?? null;
}

function canLimit(folder: string, { makeFolder }: CgroupSystem): boolean {
  const probe = join(folder, `ebb-probe-${process.pid}`);
  try {
    makeFolder(probe);
  } catch {
    return false;
  }
  try {
    return existsSync(join(probe, 'memory.max'));
  } finally {
    removeQuietly(probe);
  }
}

let folderHere: string | null | undefined;
function folderOfThisSystem(): string | null {
  if (folderHere === undefined) {
    try {
      folderHere = delegatedFolder({
        own: readFileSync('/proc/self/cgroup', 'utf8'),
        mounts: readFileSync('/proc/self/mountinfo', 'utf8'),
        makeFolder: (path) => mkdirSync(path),
      });
    } catch {
      // No /proc: not Linux.
      folderHere = null;
    }
  }
  return folderHere;
}

/**
 * The control group of one attempt. Lifecycle: `open` -> the task's first process writes itself into `procs` ->
 * `oomKilled` -> `close` once no process of the task is left.
 */
export class MemoryCage {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Null where the kernel cannot be asked: the task's memory is watched only. */
  static open(attempt: string, limitMib: number, below = folderOfThisSystem()): MemoryCage | null {
    if (below === null) return null;
    const folder = join(below, `ebb-${fileName(attempt)}`);
    try {
      if (!existsSync(folder)) mkdirSync(folder);
      writeFileSync(join(folder, 'memory.max'), String(Math.round(limitMib * 2 ** 20)));
      // All of the task ends, not one of its processes; and memory that is swapped out is memory.
      writeWhereThere(join(folder, 'memory.oom.group'), '1');
      writeWhereThere(join(folder, 'memory.swap.max'), '0');
      return new MemoryCage(folder);
    } catch {
      removeQuietly(folder);
      return null;
    }
  }

  get procs(): string {
    return join(this.#folder, 'cgroup.procs');
  }

  get oomKilled(): boolean {
    try {
      const events = readFileSync(join(this.#folder, 'memory.events'), 'utf8');
      return Number(/^oom_kill (\d+)/m.exec(events)?.[1] ?? 0) > 0;
    } catch {
      return false;
    }
  }

  /** Ends all remaining processes, also those in a session of their own. */
  close(): void {
    writeWhereThere(join(this.#folder, 'cgroup.kill'), '1');
    removeQuietly(this.#folder);
  }
}

function writeWhereThere(path: string, text: string): void {
  try {
    if (existsSync(path)) writeFileSync(path, text);
  } catch {
    // Without it the limit still holds.
  }
}

/** A group in which a process is still ending cannot be removed yet; an empty one costs nothing. */
function removeQuietly(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Left.
  }
}
