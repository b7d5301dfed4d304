// Counts primes for about so many seconds of processor time: node work.mjs SECONDS
// Work is a number of chunks, so that an interrupted task goes on where its checkpoint is.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as yieldToSignals } from 'node:timers/promises';

const CHUNKS_PER_SECOND = 20;
const chunks = Math.round(Number(process.argv[2] ?? 5) * CHUNKS_PER_SECOND);
const stateFile = join(process.env.EBB_CHECKPOINT_DIR ?? '.', 'work.json');

let state = { chunk: 0, primes: 0 };
try {
  state = JSON.parse(readFileSync(stateFile, 'utf8'));
  console.log(`resumed at ${state.chunk} of ${chunks}`);
} catch {
  // The first attempt: nothing was saved.
}
const save = () => {
  writeFileSync(`${stateFile}.new`, JSON.stringify(state));
  renameSync(`${stateFile}.new`, stateFile);
};
process.on('SIGUSR1', save);
process.on('SIGTERM', () => {
  save();
  process.exit(143);
});

const CHUNK = 60_000;
const FROM = 20_000_000;
for (; state.chunk < chunks; state.chunk++) {
  await yieldToSignals();
  if (state.chunk % 40 === 39) save();
  for (let n = FROM + state.chunk * CHUNK; n < FROM + (state.chunk + 1) * CHUNK; n++) if (isPrime(n)) state.primes++;
}
console.log(`${state.primes} primes found from ${FROM} to ${FROM + chunks * CHUNK}`);

function isPrime(n) {
  if (n < 2) return false;
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}
