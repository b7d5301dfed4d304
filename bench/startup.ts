/**
 * Time of `ebb --help` from a cold process to its end.
 *
 *   node bench/startup.ts [--runs 20] [--old PATH_OF_AN_OLDER_NODE] [--json]
 *
 * Measured as a package and as a checkout, by this Node and by an older one, which starts the packaged Node. The older
 * one is the first other `node` on the PATH unless named. The first run of each fills Node's compile cache and is
 * printed separately. `--json` prints records for bench/results, and everything else on standard error.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { asMs, machine, percentile } from './figures.ts';
import { FORMS, productAs } from './product.ts';
import { type Measured, printRecords } from './record.ts';

const { values: args } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    old: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const say = args.json ? console.error : console.log;
const TARGET_MS = 250;
const measured: Measured[] = [];

/** Older Node and its version; null without one. */
function olderNode(): { readonly path: string; readonly version: string } | null {
  const candidates = [args.old ?? [], (process.env['PATH'] ?? '').split(delimiter).map((f) => join(f, 'node'))].flat();
  for (const path of candidates) {
    if (!existsSync(path) || realpathSync(path) === realpathSync(process.execPath)) continue;
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.trim();
    if (version !== '' && version !== process.version) return { path, version };
  }
  return null;
}

function once(node: string, launcher: string): number {
  const began = performance.now();
  const { status, stdout } = spawnSync(node, [launcher, '--help'], { encoding: 'utf8' });
  if (status !== 0 || !stdout.includes('Usage: ebb')) throw new Error(`ebb --help ended with ${status}`);
  return performance.now() - began;
}

say(`startup: ${machine()}\n  ebb --help, ${args.runs} runs`);
const older = olderNode();
const nodes = [{ path: process.execPath, version: process.version }, ...(older === null ? [] : [older])];
if (older === null) say('  no other Node on the PATH: starting over with the packaged one is not measured');
for (const form of FORMS) {
  const product = productAs(form);
  try {
    for (const { path, version } of nodes) {
      const first = once(path, product.launcher);
      const runs = Array.from({ length: Number(args.runs) }, () => once(path, product.launcher));
      const [p50, most] = [percentile(runs, 0.5), percentile(runs, 1)];
      say(
        `  ${form.padEnd(9)} ${version.padEnd(9)} p50 ${asMs(p50)}, max ${asMs(most)}; the run before them ${asMs(first)}`,
      );
      measured.push({
        what: `\`ebb --help\`, ${form}, ${version}, ${args.runs} runs: p50 and maximum`,
        reach: `< ${TARGET_MS}`,
        seen: `${p50.toFixed(0)} and ${most.toFixed(0)}`,
        met: most < TARGET_MS,
        unit: 'ms',
        command: 'node bench/startup.ts',
      });
    }
  } finally {
    product.remove();
  }
}
if (args.json) printRecords(measured);
