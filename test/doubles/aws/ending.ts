import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { inside, layout } from '../../../lib/local/fleet/layout.ts';
import { lockOwner, takeLock } from '../../../lib/local/fleet/lock.ts';
import { killByCookie } from '../../../lib/local/fleet/processes.ts';

/**
 * Ends every instance of the folder and its tasks at once. An instance whose supervisor is only just coming up loses its
 * lock to this process, so that it ends by itself.
 */
export function endAll(fleetDir: string): void {
  const instances = layout.instances(fleetDir);
  for (const name of readdirSync(instances)) {
    const lock = inside.lock(join(instances, name));
    if (takeLock(lock)) continue;
    const pid = lockOwner(lock);
    if (pid === null) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone between the look and the signal.
    }
  }
  killByCookie(instances);
}
