// One task of the array: factors its share of the numbers and writes outputs/part-<task>.json.
//
//   node factor.mjs numbers.txt TASK TASKS
//
// With FACTOR_SECONDS it works for that long instead, all its attempts together: when its share of the list is done it
// goes on with further numbers, and what is not done by then is left. So it lasts as long on a fast machine as on a
// slow one.
//
// How a program makes itself interruptible: after each unit of work (one elliptic curve, a fraction of a second) it
// looks whether it was asked to save, and what it saves is small. SIGUSR1 means "your machine is about to go": it saves
// at once. It also saves every few seconds, for the case that nobody warns it. Started again, it goes on from there.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setImmediate as yieldToSignals } from 'node:timers/promises';
import { isProbablePrime, runCurve, trialDivision } from './ecm.mjs';

const SAVE_EVERY_MS = 3_000;

const [file = 'numbers.txt', task = process.env.EBB_TASK_INDEX ?? '0', tasks = '1'] = process.argv.slice(2);
const stateFile = join(process.env.EBB_CHECKPOINT_DIR ?? '.', `factor-${task}.json`);
const limitMs = process.env.FACTOR_SECONDS === undefined ? Infinity : Number(process.env.FACTOR_SECONDS) * 1000;

const listed = readFileSync(file, 'utf8')
  .split('\n')
  .map((line) => line.replace(/#.*/, '').trim())
  .filter((line) => line !== '');

/**
 * By number as written: its prime factors so far, what is still to be split, and curves spent on the first of those.
 */
const { numbers, workedMs: workedBeforeMs } = restore();
const startedMs = performance.now();
let savedMs = startedMs;
let stopping = false;
process.on('SIGUSR1', () => {
  save();
  console.log('saved: an interruption was announced');
});
process.on('SIGTERM', () => {
  save();
  stopping = true;
});

for (const text of mine()) {
  if (workedMs() >= limitMs) break;
  const work = (numbers[text] ??= begin(text));
  while (work.open.length > 0 && workedMs() < limitMs) {
    await yieldToSignals();
    if (stopping) process.exit(143);
    if (performance.now() - savedMs > SAVE_EVERY_MS) save();
    step(work);
  }
  if (work.open.length === 0) console.log(`${text} = ${work.primes.join(' x ')}  (${work.totalCurves} curves)`);
}
mkdirSync('outputs', { recursive: true });
writeFileSync(join('outputs', `part-${task}.json`), JSON.stringify(numbers, null, 2));
save();

/** Every so manieth number of the list; with a time limit more of the kind after it, for ever. */
function* mine() {
  const isMine = (i) => i % Number(tasks) === Number(task);
  yield* listed.filter((_, i) => isMine(i));
  if (limitMs === Infinity) return;
  const known = new Set(listed);
  for (let i = 0, exponent = 40; ; exponent++) {
    for (const base of [3, 5, 6, 7, 10, 11, 12]) {
      const text = `${base}^${exponent}+1`;
      if (!known.has(text) && isMine(i++)) yield text;
    }
  }
}

/** Milliseconds of work until now, in all attempts. */
function workedMs() {
  return workedBeforeMs + performance.now() - startedMs;
}

/** `2^67-1` or plain digits. */
function evaluate(text) {
  const parsed = /^(\d+)\^(\d+)([+-]\d+)?$/.exec(text);
  if (parsed !== null) return BigInt(parsed[1]) ** BigInt(parsed[2]) + BigInt(parsed[3] ?? 0);
  if (!/^\d+$/.test(text)) throw new Error(`${file}: '${text}' is neither a number nor of the form 2^67-1`);
  return BigInt(text);
}

function begin(text) {
  const { factors, rest } = trialDivision(evaluate(text));
  return { primes: factors.map(String), open: rest > 1n ? [String(rest)] : [], curves: 0, totalCurves: 0 };
}

/** One unit of work on the first open cofactor. */
function step(work) {
  const n = BigInt(work.open[0]);
  if (isProbablePrime(n)) {
    work.primes.push(String(n));
    work.open.shift();
    work.curves = 0;
    return;
  }
  const factor = runCurve(n, work.curves++);
  work.totalCurves++;
  if (factor === null) return;
  work.open.splice(0, 1, String(factor), String(n / factor));
  work.curves = 0;
}

function restore() {
  try {
    const saved = JSON.parse(readFileSync(stateFile, 'utf8'));
    const curves = Object.values(saved.numbers).reduce((sum, work) => sum + work.totalCurves, 0);
    const seconds = Math.round(saved.workedMs / 1000);
    console.log(`resumed: ${Object.keys(saved.numbers).length} numbers begun, ${curves} curves done in ${seconds} s`);
    return saved;
  } catch {
    return { numbers: {}, workedMs: 0 };
  }
}

/** Whole or not at all: an interruption in the middle must leave the previous state readable. */
function save() {
  writeFileSync(`${stateFile}.new`, JSON.stringify({ numbers, workedMs: workedMs() }));
  renameSync(`${stateFile}.new`, stateFile);
  savedMs = performance.now();
}
