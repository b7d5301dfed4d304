import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { minusMoney, sumOfMoney, type Money } from '../../../lib/api/money.ts';
import { readRun, writeRun } from '../../../lib/cli/run-record.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-run-record-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, 'd-'));
const spent = (n: number): Money => ({
  workUsd: n,
  wastedUsd: 2 * n,
  speculativeUsd: 0.5 * n,
  movedUsd: 0.25 * n,
  idleUsd: 3 * n,
  totalUsd: 6 * n,
  onDemandUsd: 7 * n,
  instanceHours: 8 * n,
});

describe('what a directory had cost before a run', () => {
  it('is found again for the jobs of that run, or some of them', () => {
    const dir = folder();
    writeRun(dir, { jobs: ['a', 'b'], before: spent(1) });
    expect(readRun(dir, ['a', 'b'])?.before).toEqual(spent(1));
    expect(readRun(dir, ['b'])?.before).toEqual(spent(1));
  });

  it('is read where an earlier version wrote it, which knew no speculative cost', () => {
    const dir = folder();
    const { speculativeUsd: _, ...before } = spent(1);
    writeFileSync(join(dir, 'run.json'), JSON.stringify({ version: 1, jobs: ['a'], before }));
    expect(readRun(dir, ['a'])?.before).toEqual({ ...spent(1), speculativeUsd: 0 });
  });

  it('is not known for jobs that were submitted otherwise', () => {
    const dir = folder();
    expect(readRun(dir, ['a'])).toBeNull();
    writeRun(dir, { jobs: ['a'], before: spent(1) });
    expect(readRun(dir, ['a', 'c'])).toBeNull();
  });

  it.each(['', '{"version":2,"jobs":[]}'])('is not known when the file holds %j', (text) => {
    const dir = folder();
    writeFileSync(join(dir, 'run.json'), text);
    expect(readRun(dir, [])).toBeNull();
  });

  it('is taken off every figure', () => expect(minusMoney(spent(5), spent(2))).toEqual(spent(3)));
  it('adds up every figure', () => expect(sumOfMoney([spent(1), spent(2), spent(3)])).toEqual(spent(6)));
});
