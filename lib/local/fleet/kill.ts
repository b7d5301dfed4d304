import { readdirSync, realpathSync } from 'node:fs';
import { layout, inside } from './layout.ts';
import { lockOwner, takeLock } from './lock.ts';
import { killByCookie } from './processes.ts';
import { join } from 'node:path';

/**
 * Ends every supervisor of this directory and all their tasks at once, without warning: for a second Ctrl-C. One that is only
 * just coming up loses its lock to this process, so that it ends by itself, and its instance is lost with this process.
 */
export function killFleet(dir: string): void {
  const instances = layout.instances(realpathSync(dir));
  for (const name of readdirSync(instances)) {
    const lock = inside.lock(join(instances, name));
    if (takeLock(lock)) continue;
    const pid = lockOwner(lock);
    // Taken by an engine of this very process before: its supervisor never came up.
    if (pid === null || pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone between the look and the signal.
    }
  }
  killByCookie(instances);
}
