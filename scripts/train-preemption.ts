/**
 * Trains the preemption forecast (docs/forecast-training.md):
 *
 *   npm run train:preemption -- --data DATASET [--markets M,M,.. [--instants N] [--points times|prices]] [--output
 *   VERSION] [--model trees|lstm] ..
 *
 * DATASET is the output of `ebb market dataset`. With --markets (market files, or folders of traces) it is drawn from
 * them first, so that one command leads from prices to a model. The first run makes a Python environment in the user's
 * cache, from pinned packages with checked hashes. Equal data set, seed, packages and kind of processor give equal
 * models.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EbbError } from '../lib/kernel/errors.ts';
import { runTrainer, trainingPython, type Surroundings } from '../lib/drivers/local/models/trainer.ts';

const DRAWING = `
  --markets M,M,..      draws the data set first, into --data: market files, or
                        folders of traces
  --instants N, --points times|prices
                        how it is drawn: see \`ebb market dataset --help\``;
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const args = process.argv.slice(2);
const markets = taken('--markets');
const drawing = ['--instants', '--points'].flatMap(takenWhole);
const isHelp = args.includes('--help') || args.includes('-h');
const named = args.includes('--output') || isHelp;
if (markets !== null) drawDataset(markets.split(','));
const output = named ? [] : ['--output', join(ROOT, 'out', 'models', 'preemption', 'candidate')];
const around: Surroundings = { env: process.env, say: (text) => void process.stderr.write(`${text}\n`) };
try {
  await runTrainer(await trainingPython(null, around), [...args, ...output], around);
  if (isHelp) around.say(DRAWING);
  else if (!named) process.stdout.write(`${output[1]}\n`);
} catch (error) {
  if (!(error instanceof EbbError)) throw error;
  // The input was printed before.
  const { what, allowed, next } = error.facts;
  around.say([what, allowed, next].filter((text) => text !== undefined).join('; '));
  process.exitCode = 1;
}

/** Value of an option for this script, which the Python program does not get. */
function taken(option: string): string | null {
  const at = args.indexOf(option);
  if (at < 0) return null;
  const [, value] = args.splice(at, 2);
  if (value !== undefined) return value;
  process.stderr.write(`${option} needs a value\n`);
  process.exit(1);
}

/** Option with its value as given; empty if absent. */
function takenWhole(option: string): string[] {
  const value = taken(option);
  return value === null ? [] : [option, value];
}

function drawDataset(sources: readonly string[]): void {
  const folder = args[args.indexOf('--data') + 1];
  if (!args.includes('--data') || folder === undefined) {
    process.stderr.write('--markets needs --data, the folder for the data set that is drawn from them\n');
    process.exit(1);
  }
  const command = ['market', 'dataset', ...sources, '--output', folder, ...drawing];
  const { status } = spawnSync(process.execPath, [join(ROOT, 'bin', 'ebb.mjs'), ...command], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
