import { readdirSync, realpathSync } from 'node:fs';
import { hasCode } from './files.ts';
import { layout, inside } from './layout.ts';
import { lockOwner, takeLock } from './lock.ts';
import { killByCookie, signalQuietly } from './processes.ts';
import { join } from 'node:path';

/** Time for supervisors to end their tasks in order, without an engine that waits for them. */
const PATIENCE_MS = 15_000;
const POLL_MS = 100;

/**
 * Ends every supervisor of this directory: tasks are asked to save first. For an engine that cannot go on, with a full
 * disk for instance. Supervisors that do not end in time are killed: their instances are lost, and their tasks can be
 * resumed.
 */
export async function endFleet(dir: string): Promise<void> {
  const locks = readdirSync(layout.instances(realpathSync(dir))).map((name) =>
    inside.lock(join(layout.instances(realpathSync(dir)), name)),
  );
  const living = (): number[] => locks.flatMap((lock) => lockOwner(lock) ?? []).filter((pid) => pid !== process.pid);
  for (const pid of living()) signalQuietly(pid, 'SIGTERM');
  const until = performance.now() + PATIENCE_MS;
  while (living().length > 0 && performance.now() < until) await new Promise((done) => setTimeout(done, POLL_MS));
  killFleet(dir);
}

/**
 * Ends every supervisor of this directory and all their tasks at once, without warning: for a second Ctrl-C. A
 * supervisor that is just coming up loses its lock to this process, so that it ends by itself, and its instance is lost
 * with this process.
 */
export function killFleet(dir: string): void {
  const instances = layout.instances(realpathSync(dir));
  for (const name of readdirSync(instances)) {
    const lock = inside.lock(join(instances, name));
    if (takeLockIfPossible(lock)) continue;
    const pid = lockOwner(lock);
    // Taken earlier by an engine of this very process: its supervisor never came up.
    if (pid === null || pid === process.pid) continue;
    signalQuietly(pid, 'SIGKILL');
  }
  killByCookie(instances);
}

/** On a full disk no lock can be made; then a supervisor that is just coming up cannot make one either, and ends. */
function takeLockIfPossible(lock: string): boolean {
  try {
    return takeLock(lock);
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) return false;
    throw error;
  }
}
