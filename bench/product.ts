/** Ebbtide as its users run it, for benchmarks of the whole program. Linux only: figures come from /proc. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** checkout: types are stripped while sources load; package: the result of `npm run package`. */
export type Form = 'checkout' | 'package';
export const FORMS: readonly Form[] = ['package', 'checkout'];

export interface Product {
  /** Path of the launcher `ebb.mjs`. */
  readonly launcher: string;
  remove(): void;
}

export function productAs(form: Form): Product {
  if (form === 'checkout') return { launcher: join(ROOT, 'bin', 'ebb.mjs'), remove: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), 'ebb-bench-package-'));
  for (const part of ['bin', 'lib', 'lambdas', 'package.json']) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const script = `import { compile } from ${JSON.stringify(new URL('../bin/compile.mjs', import.meta.url).href)}; compile(process.argv[1]);`;
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval'];
  execFileSync(process.execPath, [...flags, script, folder]);
  // Without sources the launcher runs the built files.
  rmSync(join(folder, 'bin', 'ebb.ts'));
  rmSync(join(folder, 'lib'), { recursive: true });
  return { launcher: join(folder, 'bin', 'ebb.mjs'), remove: () => rmSync(folder, { recursive: true }) };
}

export const temporaryFolder = (name: string): string => mkdtempSync(join(tmpdir(), `ebb-bench-${name}-`));

/** Clock ticks per second of /proc/PID/stat: 100 on every Linux that Node runs on. */
const TICKS_PER_S = 100;

/** Processor time of all threads of a process so far, seconds; its resident memory, MiB. */
export function usageOf(pid: number): { readonly cpuS: number; readonly rssMiB: number; readonly anonMiB: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? NaN) / 1024;
  return {
    cpuS: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S,
    rssMiB: mib('VmRSS'),
    anonMiB: mib('RssAnon'),
  };
}
