// One task of the array: factors its share of the numbers and writes outputs/part-<task>.json.
//
//   node factor.mjs numbers.txt TASK TASKS
//
// How a program makes itself interruptible: after each unit of work (one elliptic curve, a fraction of a second) it
// looks whether it was asked to save, and what it saves is small. SIGUSR1 means "your machine is about to go": it saves
// at once. It also saves every few seconds, for the case that nobody warns it. Started again, it goes on from there.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as yieldToSignals } from 'node:timers/promises';
import { isProbablePrime, runCurve, trialDivision } from './ecm.mjs';

const SAVE_EVERY_MS = 3_000;

const [file = 'numbers.txt', task = process.env.EBB_TASK_INDEX ?? '0', tasks = '1'] = process.argv.slice(2);
const stateFile = join(process.env.EBB_CHECKPOINT_DIR ?? '.', `factor-${task}.json`);

const mine = readFileSync(file, 'utf8')
  .split('\n')
  .map((line) => line.replace(/#.*/, '').trim())
  .filter((line) => line !== '')
  .filter((_, i) => i % Number(tasks) === Number(task));

/** By number as written: its prime factors so far, what is still to be split, and curves spent on the first of those. */
const state = restore();
let savedAt = Date.now();
let stopping = false;
process.on('SIGUSR1', () => {
  save();
  console.log('saved: an interruption was announced');
});
process.on('SIGTERM', () => {
  save();
  stopping = true;
});

for (const text of mine) {
  const work = (state[text] ??= begin(text));
  while (work.open.length > 0) {
    await yieldToSignals();
    if (stopping) process.exit(143);
    if (Date.now() - savedAt > SAVE_EVERY_MS) save();
    step(work);
  }
  console.log(`${text} = ${work.primes.join(' x ')}  (${work.totalCurves} curves)`);
}
mkdirSync('outputs', { recursive: true });
const result = Object.fromEntries(mine.map((text) => [text, state[text]]));
writeFileSync(join('outputs', `part-${task}.json`), JSON.stringify(result, null, 2));
save();

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
    const curves = Object.values(saved).reduce((sum, work) => sum + work.totalCurves, 0);
    console.log(`resumed: ${Object.keys(saved).length} numbers begun, ${curves} curves done`);
    return saved;
  } catch {
    return {};
  }
}

/** Whole or not at all: an interruption in the middle must leave the previous state readable. */
function save() {
  writeFileSync(`${stateFile}.new`, JSON.stringify(state));
  renameSync(`${stateFile}.new`, stateFile);
  savedAt = Date.now();
}
