import { readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { inside, layout } from '../../../lib/drivers/local/fleet/layout.ts';
import { leaderOf, signalGroup } from '../../../lib/drivers/local/fleet/processes.ts';

/** Process of a task, as its instance's agent would reach it. */
export interface TaskProcess {
  readonly fleetDir: string;
  readonly instance: string;
  readonly attempt: string;
}

/** Pid of the container's main process; null before its start and after its end. */
function mainPid(of: TaskProcess): number | null {
  const file = inside.pid(layout.instance(of.fleetDir, of.instance), of.attempt);
  try {
    return leaderOf(readFileSync(file, 'utf8'), statSync(file).mtimeMs);
  } catch {
    return null;
  }
}

/**
 * Sends SIGTERM to the main process alone, like `docker stop`. As a process with id 1 it ignores unhandled signals,
 * unless an init process in the container passes them on. https://docs.docker.com/reference/cli/docker/container/stop/
 * and kill(2), NOTES. False if the process does not exist.
 */
export function terminate(of: TaskProcess, hasInit: boolean): boolean {
  const pid = mainPid(of);
  if (pid === null) return false;
  if (!hasInit && !handles(pid, constants.signals.SIGTERM)) return true;
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // Process ended before the signal.
  }
  return true;
}

/** Sends SIGKILL to all processes of the container. */
export function kill(of: TaskProcess): boolean {
  const pid = mainPid(of);
  if (pid !== null) signalGroup(pid, 'SIGKILL');
  return pid !== null;
}

/** True if the process handles the signal: in proc(5), SigCgt has bit n - 1 for signal n. Without /proc: true. */
function handles(pid: number, signal: number): boolean {
  try {
    const mask = /^SigCgt:\s*([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return mask === undefined || ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n;
  } catch {
    return true;
  }
}
