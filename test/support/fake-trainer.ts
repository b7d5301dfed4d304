/**
 * Stands in for Python with the training packages, where its 0.7 GB are not wanted: called as `--python` is, with the
 * path of train.py and its arguments. `EBB_FAKE_TRAINER` says what comes of it: a number (a model that always forecasts
 * this probability), `fails`, `damaged` (not the bytes of its manifest) or `dies` (takes the calling process with it,
 * half-way).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { always, alwaysCapacity } from './constant-model.ts';

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string', default: '' },
    output: { type: 'string', default: '' },
    model: { type: 'string' },
    seed: { type: 'string' },
  },
});
const outcome = process.env['EBB_FAKE_TRAINER'] ?? '';
const { sources, risk, pools } = JSON.parse(readFileSync(join(values.data, 'manifest.json'), 'utf8')) as {
  sources: unknown;
  risk?: 'capacity';
  pools: string[];
};
if (outcome === 'fails') {
  console.error('no luck today');
  process.exit(3);
}
const p = outcome === 'damaged' ? 0.5 : Number(outcome);
const training = { kind: values.model ?? null, sources };
if (risk === 'capacity') alwaysCapacity(values.output, p, { pools, training });
else always(values.output, p, training);
if (outcome === 'damaged') writeFileSync(join(values.output, 'model.onnx'), 'other bytes');
if (outcome === 'dies') process.kill(process.ppid, 'SIGKILL');
