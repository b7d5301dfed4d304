import { readdirSync, realpathSync } from 'node:fs';
import { hasCode } from './files.ts';
import { layout, inside } from './layout.ts';
import { lockOwner, takeLock } from './lock.ts';
import { killByCookie, signalQuietly } from './processes.ts';
import { join } from 'node:path';

/** How long supervisors have to end their tasks in an orderly way when there is no engine that waits for them. */
const PATIENCE_MS = 15_000;
const POLL_MS = 100;

/**
 * Ends every supervisor of this directory: tasks are asked to save first. For an engine that cannot go on, with a full
 * disk for instance. Supervisors that are still there after a while are killed: their instances are lost, and can be
 * gone on from.
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
 * Ends every supervisor of this directory and all their tasks at once, without warning: for a second Ctrl-C. One that
 * is only just coming up loses its lock to this process, so that it ends by itself, and its instance is lost with this
 * process.
 */
export function killFleet(dir: string): void {
  const instances = layout.instances(realpathSync(dir));
  for (const name of readdirSync(instances)) {
    const lock = inside.lock(join(instances, name));
    if (takeLockIfPossible(lock)) continue;
    const pid = lockOwner(lock);
    // Taken by an engine of this very process before: its supervisor never came up.
    if (pid === null || pid === process.pid) continue;
    signalQuietly(pid, 'SIGKILL');
  }
  killByCookie(instances);
}

/** On a full disk no lock can be made; a supervisor that is just coming up can make none either, and ends. */
function takeLockIfPossible(lock: string): boolean {
  try {
    return takeLock(lock);
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) return false;
    throw error;
  }
}
