import { readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { inside, layout } from '../../../lib/drivers/local/fleet/layout.ts';
import { leaderOf, signalGroup } from '../../../lib/drivers/local/fleet/processes.ts';

/** A task's process, as the agent of its instance would reach it. */
export interface TaskProcess {
  readonly fleetDir: string;
  readonly instance: string;
  readonly attempt: string;
}

/** Pid of the container's main process; null before it runs and after it has ended. */
function mainPid(of: TaskProcess): number | null {
  const file = inside.pid(layout.instance(of.fleetDir, of.instance), of.attempt);
  try {
    return leaderOf(readFileSync(file, 'utf8'), statSync(file).mtimeMs);
  } catch {
    return null;
  }
}

/**
 * SIGTERM to the main process alone, as `docker stop` sends it. Like every process with id 1 it ignores a signal that
 * it does not handle, unless an init process runs in the container and passes it on.
 * https://docs.docker.com/reference/cli/docker/container/stop/ and kill(2), NOTES. False when there is no such process
 * yet, or any more.
 */
export function terminate(of: TaskProcess, hasInit: boolean): boolean {
  const pid = mainPid(of);
  if (pid === null) return false;
  if (!hasInit && !handles(pid, constants.signals.SIGTERM)) return true;
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It ended between the look and the signal.
  }
  return true;
}

/** SIGKILL to all that runs in the container. */
export function kill(of: TaskProcess): boolean {
  const pid = mainPid(of);
  if (pid !== null) signalGroup(pid, 'SIGKILL');
  return pid !== null;
}

/** proc(5): SigCgt has bit n - 1 for a handled signal n. Where there is no /proc a process is taken to handle it. */
function handles(pid: number, signal: number): boolean {
  try {
    const mask = /^SigCgt:\s*([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return mask === undefined || ((BigInt(`0x${mask}`) >> BigInt(signal - 1)) & 1n) === 1n;
  } catch {
    return true;
  }
}
