/**
 * Trained on what an engine's own instances tell, with the real program that trains: where its Python environment was
 * made already (`npm run train:preemption -- --help` makes it); 0.7 GB are not fetched for a test.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { poolId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { writeRecordDataset } from '../../../lib/drivers/local/datasets/capacity-dataset-folder.ts';
import { environmentOf, runTrainer, type Surroundings } from '../../../lib/drivers/local/models/trainer.ts';
import { recordOf } from '../../../lib/market/capacity-record.ts';
import { LABEL_HORIZONS_S } from '../../../lib/market/dataset.ts';
import type { AskedRows } from '../../support/ask-rows.ts';
import { livedBy } from '../../support/recorded-engine.ts';

const around: Surroundings = { env: { HOME: homedir(), ...process.env }, say: () => undefined };
const python = environmentOf(around);
const scratch = mkdtempSync(join(tmpdir(), 'ebb-own-record-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));

const HOUR = 3_600_000;
const T0 = Date.UTC(2026, 0, 5);
const DAYS = 90;
/** By day capacity ends ten times as often as by night. */
const hazard = (ms: number): number => (ms % (24 * HOUR) >= 8 * HOUR && ms % (24 * HOUR) < 20 * HOUR ? 0.6 : 0.06);
function truth(atMs: number, horizonS: number): number {
  let sum = 0;
  for (let ms = 0; ms < horizonS * 1000; ms += 60_000) sum += hazard(atMs + ms) / 60;
  return 1 - Math.exp(-sum);
}

/** A model of what an engine kept that gives instances back after so many hours on average. */
async function trained(name: string, givenBackAfterH: number | null): Promise<string> {
  const pools = [poolId('m5.large/us-east-1a/spot'), poolId('c5.large/us-east-1a/spot')];
  const life = { seed: 1, pools, startMs: T0, days: DAYS, hazard, givenBackAfterH, outageH: 0.5, idleH: 0.5 };
  const record = recordOf(livedBy(life), epochMs(T0 + DAYS * 24 * HOUR));
  if (record === null) throw new Error('nothing was recorded');
  const data = join(scratch, `${name}-data`);
  await writeRecordDataset(
    data,
    { name, record },
    { seed: 1, instantsPerPool: 2000, shares: { train: 0.6, validation: 0.15 } },
  );
  const output = join(scratch, name);
  await runTrainer(python, ['--data', data, '--output', output], around);
  return output;
}

const mean = (list: readonly number[]): number => list.reduce((sum, x) => sum + x, 0) / list.length;

(existsSync(python) ? describe : describe.skip)('models of engines that hold what they get, and that give back', () => {
  let asked: AskedRows = { atMs: [], said: [] };
  beforeAll(async () => {
    const versions = [await trained('patient', null), await trained('hasty', 2)];
    const program = join(process.cwd(), 'test', 'support', 'ask-rows.ts');
    const data = join(scratch, 'patient-data');
    const { stdout, stderr, status } = spawnSync(process.execPath, [program, data, 'test', ...versions], {
      encoding: 'utf8',
      maxBuffer: 1e8,
    });
    if (status !== 0) throw new Error(stderr);
    asked = JSON.parse(stdout) as AskedRows;
  }, 300_000);

  it.each([3600, 10_800])('agree with what is true, and so with each other, within %i s', (horizonS) => {
    const k = LABEL_HORIZONS_S.findIndex((h) => h === horizonS);
    const true_ = asked.atMs.map((ms) => truth(ms, horizonS));
    const [patient = [], hasty = []] = asked.said.map((rows) => rows.map((curve) => curve[k] ?? NaN));
    const off = (a: readonly number[], b: readonly number[]) => {
      const all = a.map((x, i) => x - (b[i] ?? NaN));
      return { bias: mean(all), error: mean(all.map(Math.abs)) };
    };
    // Some thousand losses are behind each: three hundredths of a hazard, and what trees smooth over.
    for (const [a, b] of [
      [patient, true_],
      [hasty, true_],
      [hasty, patient],
    ] as const) {
      expect(Math.abs(off(a, b).bias)).toBeLessThan(0.05);
      expect(off(a, b).error).toBeLessThan(0.1);
    }
    const atOneNumber = true_.map(() => mean(true_));
    expect(off(atOneNumber, true_).error).toBeGreaterThan(0.18);
  });
});
