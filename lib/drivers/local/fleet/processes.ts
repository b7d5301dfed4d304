import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { readProc } from './files.ts';

/**
 * Identity of processes. Pids are reused, so a process is named by its pid and its start time; a process group is named
 * by its leader's pid and searched for by a cookie in the environment that its members inherit. Imported by the
 * supervisor: node: imports only.
 */
const LINUX = process.platform === 'linux';

/** Environment variable that marks the processes of an attempt, also those that left its group. */
export const COOKIE = 'EBB_SCRATCH_DIR';

/**
 * Fields of /proc/<pid>/stat after the command's name, which may hold spaces; index 0 is the state (proc(5), field 3).
 */
function statFields(pid: number): string[] | null {
  try {
    const text = readProc(`/proc/${pid}/stat`);
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
const STATE = 0;
const GROUP = 2;
const STARTED = 19;

/** Something that no later process with the same pid shares; null when there is no such (living) process. */
export function processStart(pid: number): string | null {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (LINUX) {
    const fields = statFields(pid);
    // A zombie has ended; only its parent has not noticed.
    if (!isAlive(fields)) return null;
    return `${bootId()}:${fields[STARTED] ?? ''}`;
  }
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return started === '' ? null : started;
  } catch {
    return null;
  }
}

let boot: string | null = null;
function bootId(): string {
  boot ??= readProc('/proc/sys/kernel/random/boot_id').trim();
  return boot;
}

/** True if any process of the group is left. */
export function groupExists(group: number): boolean {
  if (LINUX) return pids().some((pid) => isLiveMember(pid, group));
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

/** Zombies count as gone: a signal does nothing to them, and a machine without an init may keep them for ever. */
function isLiveMember(pid: number, group: number): boolean {
  const fields = statFields(pid);
  return isAlive(fields) && fields[GROUP] === String(group);
}

const isAlive = (fields: string[] | null): fields is string[] =>
  fields !== null && fields[STATE] !== 'Z' && fields[STATE] !== 'X';

/** Sends to every process of the group. A group that is gone is not an error. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  if (group > 1) signalQuietly(-group, signal);
}

/** A process that is gone, or somebody else's, is not an error. */
export function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH: it ended by itself. EPERM: it became somebody else's. Neither is ours to kill any more.
  }
}

/**
 * Sends a checkpoint signal to the processes of the group that handle it, and to no other: its default action would end
 * a program, or the shell around it, without checkpoints. Returns their number.
 */
export function signalHandlers(group: number, signal: NodeJS.Signals, number: number): number {
  if (!LINUX) {
    signalQuietly(-group, signal);
    return 1;
  }
  const handlers = pids().filter((pid) => isLiveMember(pid, group) && handles(pid, number));
  for (const pid of handlers) signalQuietly(pid, signal);
  return handlers.length;
}

/** proc(5): SigCgt is the mask of signals that the process catches; bit n - 1 stands for signal n. */
function handles(pid: number, number: number): boolean {
  try {
    const mask = /^SigCgt:\s*([0-9a-f]+)/m.exec(readProc(`/proc/${pid}/status`))?.[1];
    return mask !== undefined && ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
  } catch {
    return false;
  }
}

/**
 * SIGKILL to every process whose environment says that it works in `folder` or below. Returns how many there were.
 * O(processes that came since the last call) within REMEMBERED_MS, O(processes of the machine) else.
 */
export function killByCookie(folder: string): number {
  if (!LINUX) return 0;
  const found = bearers.now().filter((pid) => worksIn(pid, folder));
  for (const pid of found) signalQuietly(pid, 'SIGKILL');
  return found.length;
}

/** Time that the processes of a task have to be gone after SIGKILL, and between two tries. */
const PATIENCE_MS = 2000;
const POLL_MS = 20;

/**
 * SIGKILL to the groups and to all processes that work in `folder`, also to those that come meanwhile. Resolves when
 * they are gone, or will not go.
 */
export async function endProcesses(folder: string, groups: readonly number[]): Promise<void> {
  for (const group of groups) signalGroup(group, 'SIGKILL');
  const until = performance.now() + PATIENCE_MS;
  // Programs that left their group, and groups whose leader has ended, are found by their environment.
  while (killByCookie(folder) > 0 || groups.some(groupExists)) {
    if (performance.now() > until) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function worksIn(pid: number, folder: string): boolean {
  const wanted = Buffer.from(`${COOKIE}=${folder}`).toString('latin1');
  return cookiesOf(settledEnvironOf(pid)).some((entry) => entry === wanted || entry.startsWith(`${wanted}/`));
}

/** Time for which a process between two programs is waited for. It is for a fraction of a millisecond, if it runs. */
const BETWEEN_MS = 50;
const nobody = new Int32Array(new SharedArrayBuffer(4));

/** The environment; of a process between two programs that of the second. */
function settledEnvironOf(pid: number): string {
  const until = performance.now() + BETWEEN_MS;
  let environ = environOf(pid);
  while (environ === '' && isBetweenPrograms(pid) && performance.now() < until) {
    Atomics.wait(nobody, 0, 0, 1);
    environ = environOf(pid);
  }
  // The second program may have begun just before its arguments were read.
  if (environ === '') environ = environOf(pid);
  return environ ?? '';
}

/** A program may have an empty environment or no arguments; a process without both has none, and may be anybody's. */
function isBetweenPrograms(pid: number): boolean {
  try {
    return isAlive(statFields(pid)) && readProc(`/proc/${pid}/cmdline`) === '';
  } catch {
    return false;
  }
}

const cookiesOf = (environ: string): string[] => environ.split('\0').filter((entry) => entry.startsWith(`${COOKIE}=`));

/**
 * Null for a process that has ended meanwhile, or is another user's. Empty for a kernel thread, a zombie, and while one
 * executes.
 */
function environOf(pid: number): string | null {
  try {
    return readProc(`/proc/${pid}/environ`);
  } catch {
    return null;
  }
}

/**
 * Time for which a process without a cookie is remembered. Its pid cannot be reused within it: the kernel gives out all
 * others first.
 */
const REMEMBERED_MS = 1000;
/** proc(5), field 9: PF_KTHREAD of include/linux/sched.h. */
const FLAGS = 6;
const KERNEL_THREAD = 0x00200000;

/**
 * Processes with a cookie. Tasks end by the hundred a second, and nearly all processes of a machine are no task. Their
 * lack of a cookie is cached: cookies are inherited, never acquired, and our own children bear theirs before `spawn`
 * returns.
 */
class Bearers {
  #others = new Set<number>();
  #sinceMs = -Infinity;

  /** Processes that may bear one; their environment is to be read anew. */
  now(): number[] {
    const nowMs = performance.now();
    if (nowMs - this.#sinceMs > REMEMBERED_MS) {
      this.#others = new Set([process.pid]);
      this.#sinceMs = nowMs;
    }
    const others = new Set<number>();
    const found = pids().filter((pid) => {
      const isOther = this.#others.has(pid) || isNobodys(pid);
      if (isOther) others.add(pid);
      return !isOther;
    });
    this.#others = others;
    return found;
  }
}

const bearers = new Bearers();

function isNobodys(pid: number): boolean {
  const environ = environOf(pid);
  if (environ === null) return true;
  if (environ !== '') return cookiesOf(environ).length === 0;
  return (Number(statFields(pid)?.[FLAGS]) & KERNEL_THREAD) !== 0;
}

function pids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((n) => n > 0);
}

/**
 * Shell text before the program of a task: it writes its pid and, on Linux, its stat line, by which an orphan can be
 * told from a process with a reused pid. Then it enters its control group, if it has one.
 */
export const BEFORE_PROGRAM =
  'p=$1; g=$2; shift 2; { echo $$; if read -r s 2>/dev/null </proc/$$/stat; then echo "$s"; fi; } >"$p"; ' +
  'if [ -n "$g" ]; then echo $$ >"$g"; fi 2>/dev/null; exec "$@"';

/** Elsewhere a process that started within this of the file's writing is the one that wrote it. */
const PID_FILE_SLACK_MS = 10_000;

/**
 * The group that a pid file, written at `writtenMs`, names, if its leader is still that very process; null otherwise.
 */
export function leaderOf(pidFile: string, writtenMs: number): number | null {
  const [first = '', stat = ''] = pidFile.split('\n');
  const pid = Number(first);
  const now = processStart(pid);
  if (now === null) return null;
  if (!LINUX) return Math.abs(Date.parse(now) - writtenMs) <= PID_FILE_SLACK_MS ? pid : null;
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[STARTED];
  return now === `${bootId()}:${started ?? ''}` ? pid : null;
}
