/**
 * Trains the pre-emption forecast (docs/forecast.md):
 *   npm run train:preemption -- --data DATASET [--markets M,M,.. [--instants N]] [--output VERSION] [--model trees|lstm] ..
 *
 * DATASET is what `ebb market dataset` wrote; with --markets (market files, or folders of traces) it is drawn from them first,
 * so that one command goes from prices to a model. The first run makes a Python environment below `.cache` from pinned packages
 * with checked hashes; the same data set, seed and packages give the same model on the same kind of processor.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TRAINING = join(ROOT, 'models', 'training', 'preemption');
const INSTALLER = join(ROOT, 'scripts', 'localstack', 'installer.txt');
const REQUIREMENTS = join(TRAINING, 'requirements.txt');
/** The requirements are resolved for it: jax has no wheels for older ones. */
const LEAST_PYTHON = [3, 11] as const;

/** One thread per sum: their order, and so the last digits, must not depend on the machine's load. */
const REPEATABLE = { XLA_FLAGS: '--xla_cpu_multi_thread_eigen=false', OMP_NUM_THREADS: '1', PYTHONHASHSEED: '0' };

const args = process.argv.slice(2);
const markets = taken('--markets');
const instants = taken('--instants');
const isHelp = args.includes('--help') || args.includes('-h');
const named = args.includes('--output') || isHelp;
if (markets !== null) drawDataset(markets.split(','));
const output = named ? [] : ['--output', join(ROOT, 'out', 'models', 'preemption', 'candidate')];
const python = environment();
process.exitCode = run(python, [join(TRAINING, 'train.py'), ...args, ...output], REPEATABLE);
if (process.exitCode === 0 && !named) process.stdout.write(`${output[1]}\n`);

/** The value of an option that is not for the Python program, which is left out of what that is given. */
function taken(option: string): string | null {
  const at = args.indexOf(option);
  if (at < 0) return null;
  const [, value] = args.splice(at, 2);
  if (value !== undefined) return value;
  process.stderr.write(`${option} needs a value\n`);
  process.exit(1);
}

function drawDataset(sources: readonly string[]): void {
  const folder = args[args.indexOf('--data') + 1];
  if (!args.includes('--data') || folder === undefined) {
    process.stderr.write('--markets needs --data, the folder for the data set that is drawn from them\n');
    process.exit(1);
  }
  const more = instants === null ? [] : ['--instants', instants];
  const command = ['market', 'dataset', ...sources, '--output', folder, ...more];
  const status = run(process.execPath, [join(ROOT, 'bin', 'ebb.mjs'), ...command]);
  if (status !== 0) process.exit(status);
}

/** Python of an environment that has the pinned packages; made when there is none of just these. */
function environment(): string {
  const digest = createHash('sha256').update(readFileSync(REQUIREMENTS)).update(readFileSync(INSTALLER)).digest('hex');
  const home = join(ROOT, '.cache', 'train-preemption', digest.slice(0, 12));
  const found = join(home, 'bin', 'python');
  const complete = join(home, 'complete');
  if (existsSync(complete)) return found;
  const base = systemPython();
  process.stderr.write('Making a Python environment with the pinned packages (about 0.7 GB)\n');
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  must(base, ['-m', 'venv', home]);
  must(found, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes', '-r', INSTALLER]);
  must(found, ['-m', 'uv', 'pip', 'install', '--quiet', '--python', found, '--require-hashes', '-r', REQUIREMENTS]);
  writeFileSync(complete, '');
  return found;
}

function systemPython(): string {
  for (const name of ['python3.11', 'python3.12', 'python3.13', 'python3']) {
    const [major, minor] = LEAST_PYTHON;
    const check = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${major}, ${minor}))`;
    if (spawnSync(name, ['-c', check]).status === 0) return name;
  }
  process.stderr.write(
    `Training needs Python ${LEAST_PYTHON.join('.')} or newer with venv; found none on the PATH. Install it (Debian: apt install python3 python3-venv).\n`,
  );
  process.exit(1);
}

function run(program: string, args: readonly string[], more: Readonly<Record<string, string>> = {}): number {
  const { status } = spawnSync(program, args, { stdio: 'inherit', env: { ...process.env, ...more } });
  return status ?? 1;
}

function must(program: string, args: readonly string[]): void {
  const status = run(program, args);
  if (status !== 0) {
    process.stderr.write(
      `${program} ${args.join(' ')} ended with ${status}; the Python environment is not complete.\n`,
    );
    process.exit(1);
  }
}
