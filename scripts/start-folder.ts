/**
 * Makes a new folder below the one named and prints it. Folders of earlier starts go: what a killed one left running is
 * ended first; one whose engine still runs is left alone.
 *
 *   node scripts/start-folder.ts FOLDER
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../lib/kernel/errors.ts';
import { killFleet } from '../lib/local/fleet/kill.ts';
import { lockDirectory } from '../lib/local/lock.ts';

const [, , base] = process.argv;
if (base === undefined) throw new EbbError('usage', { what: 'no folder was named', next: 'name one' });
mkdirSync(base, { recursive: true });
for (const name of readdirSync(base)) clear(join(base, name));
process.stdout.write(mkdtempSync(join(base, 'run-')));

function clear(dir: string): void {
  try {
    const lock = lockDirectory(join(dir, 'engine.lock'));
    if (existsSync(join(dir, 'instances'))) killFleet(dir);
    lock.release();
  } catch (error) {
    if (error instanceof EbbError && error.code === 'engine.running') return;
    throw error;
  }
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
}
