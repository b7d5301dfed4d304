/**
 * Time of `npx cdk synth -q` without network, credentials and home: first with bundling of all functions, then with the
 * cached code.
 *
 *   node bench/synth.ts [--runs 3]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cdkSynth } from '../scripts/cdk-synth.ts';
import { machine } from './figures.ts';

const { values: args } = parseArgs({ options: { runs: { type: 'string', default: '3' } } });

function once(): number {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-synth-'));
  const began = performance.now();
  const { status, stderr, tried } = cdkSynth(folder);
  const tookS = (performance.now() - began) / 1000;
  rmSync(folder, { recursive: true, force: true });
  if (status !== 0) throw new Error(`cdk synth ended with ${status}: ${stderr}`);
  if (tried.length > 0) throw new Error(`it asked the network: ${tried.join(', ')}`);
  return tookS;
}

console.log(`cdk synth: ${machine()}`);
rmSync(new URL('../.cache/functions', import.meta.url), { recursive: true, force: true });
console.log(`  functions bundled: ${once().toFixed(1)} s`);
const runs = Array.from({ length: Number(args.runs) }, once).sort((a, b) => a - b);
console.log(`  bundled before: ${runs.map((s) => `${s.toFixed(1)} s`).join(', ')}`);
