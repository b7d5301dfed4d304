/**
 * The Python program that trains (models/training), and its environment: pinned packages with checked hashes, made once
 * per list of packages in the user's cache.
 * Crash points: an environment is made beside its place and renamed when it is complete, so that no half-made one is
 * used.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { EbbError, invariant } from '../../../kernel/errors.ts';
import { besideProgram } from '../../../models/versions.ts';

/** The requirements are resolved for it: jax has no wheels for older ones. */
const LEAST_PYTHON = '3.11';
/** One thread per sum: their order, and so the last digits, must not depend on the machine's load. */
const REPEATABLE = { XLA_FLAGS: '--xla_cpu_multi_thread_eigen=false', OMP_NUM_THREADS: '1', PYTHONHASHSEED: '0' };

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Receives progress, a line at a time. */
  readonly say: (text: string) => void;
  readonly signal?: AbortSignal;
}

const program = (file: string): string =>
  invariant(besideProgram(join('models', 'training', 'preemption', file)), `${file} of the training comes with ebb`);

/**
 * Runs it with these arguments, as `train.py --help` lists them. Throws `model.training` when it fails, with the last
 * it said.
 */
export async function runTrainer(python: string, args: readonly string[], around: Surroundings): Promise<void> {
  const { code, last } = await run([python, program('train.py'), ...args], around);
  if (code === 0) return;
  throw new EbbError('model.training', {
    what: 'the program that trains has failed',
    got: `exit code ${code}${last === '' ? '' : `: ${last}`}`,
    next: 'see what it said above; nothing was changed',
  });
}

/** Folder of the Python for this list of packages, existing or not. */
export function environmentOf({ env }: Pick<Surroundings, 'env'>): string {
  const digest = createHash('sha256')
    .update(readFileSync(program('requirements.txt')))
    .digest('hex')
    .slice(0, 12);
  const cache = env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? homedir(), '.cache');
  return join(cache, 'ebbtide', 'training', digest, PYTHON);
}
const PYTHON = join('bin', 'python');

/**
 * A Python with the packages. `given`: one that has them already. The first call takes minutes and 0.7 GB. Throws
 * `model.training`.
 */
export async function trainingPython(given: string | null, around: Surroundings): Promise<string> {
  if (given !== null) return given;
  const made = environmentOf(around);
  if (existsSync(made)) return made;
  const home = dirname(dirname(made));
  const base = await systemPython(around);
  const partial = `${home}.${process.pid}.partial`;
  around.say(`making a Python environment with the pinned packages in ${home} (0.7 GB, a few minutes) ...`);
  try {
    mkdirSync(partial, { recursive: true });
    await must([base, '-m', 'venv', partial], around);
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes'];
    await must([join(partial, PYTHON), ...install, '-r', program('requirements.txt')], around);
    if (!existsSync(home)) renameSync(partial, home);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return made;
}

async function systemPython(around: Surroundings): Promise<string> {
  const [major, minor] = LEAST_PYTHON.split('.');
  const check = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${major}, ${minor}))`;
  for (const name of ['python3.11', 'python3.12', 'python3.13', 'python3']) {
    const quiet = { ...around, say: () => undefined };
    if ((await run([name, '-c', check], quiet)).code === 0) return name;
  }
  throw new EbbError('model.training', {
    what: 'training needs Python with venv, and there is none on the PATH',
    allowed: `Python ${LEAST_PYTHON} or newer`,
    next: 'install it (Debian: apt install python3 python3-venv), or name one that has the packages with --python',
  });
}

async function must(command: readonly string[], around: Surroundings): Promise<void> {
  const { code, last } = await run(command, around);
  if (code === 0) return;
  throw new EbbError('model.training', {
    what: 'the Python environment for training cannot be made',
    got: `${command.join(' ')} ended with ${code}${last === '' ? '' : `: ${last}`}`,
    next: 'see what it said above; it needs the Python package index, or a mirror that pip is configured for',
  });
}

interface Ended {
  /** 127: it could not be started. */
  readonly code: number;
  /** The last line that it said. */
  readonly last: string;
}

/** Both of its streams are remarks. Rejects when the signal ends it. */
function run([command = '', ...args]: readonly string[], { env, say, signal }: Surroundings): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, ...REPEATABLE },
      ...(signal === undefined ? {} : { signal }),
    });
    let last = '';
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        last = line;
        say(line);
      });
    }
    child.once('error', (error) => {
      if (error.name === 'AbortError') reject(error);
      else resolve({ code: 127, last: error.message });
    });
    child.once('close', (code) => resolve({ code: code ?? 1, last }));
  });
}
