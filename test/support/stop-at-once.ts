import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { ONE_REQUEST_MS } from '../../lib/cli/signals.ts';

/** Ends an engine without asking its tasks: by a second Ctrl-C. */
export async function stopAtOnce(engine: ChildProcess): Promise<void> {
  if (engine.exitCode !== null) return;
  const ended = new Promise((resolve) => engine.once('exit', resolve));
  engine.kill('SIGINT');
  await Promise.race([ended, delay(ONE_REQUEST_MS)]);
  engine.kill('SIGINT');
  await ended;
}
