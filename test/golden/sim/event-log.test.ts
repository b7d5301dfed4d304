import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decidersNamed } from '../../../lib/drivers/sim/deciders.ts';
import { openWorkload } from '../../../lib/workload/open.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { deterministic, type Solver } from '../../../lib/policy/solver.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { simulated } from '../../support/simulated.ts';

/**
 * One simulation by the default preset, as a digest of its whole event log and its first lines, so that an altered log
 * is noticed and seen. A change that is meant is stored with `EBB_GOLDEN=write`.
 */
const STORED = 'test/golden/sim/synthetic.json';
const SHOWN = 40;
let solver: Solver;
beforeAll(() => {
  solver = deterministic(highsSolver(), 50);
});
afterAll(() => solver.close());

async function log(seed: number): Promise<readonly string[]> {
  const workload = await openWorkload('synthetic:jobs=20,perHour=30,maxTasks=20', { seed });
  const jobs: WorkloadJob[] = [];
  for await (const job of workload.jobs()) jobs.push(job);
  // Fewer vCPUs than the jobs want at once, so that the solver is asked.
  const { events } = await simulated(jobs, { deciders: decidersNamed('ebbtide'), solver, vcpus: 16, seed });
  return events.map((event) => JSON.stringify(event));
}

const digestOf = (lines: readonly string[]): string => createHash('sha256').update(lines.join('\n')).digest('hex');

describe('the event log of a simulation', () => {
  it('is the stored one, byte for byte', async () => {
    const lines = await log(2);
    const now = { lines: lines.length, sha256: digestOf(lines), first: lines.slice(0, SHOWN) };
    if (process.env['EBB_GOLDEN'] === 'write') writeFileSync(STORED, `${JSON.stringify(now, null, 2)}\n`);
    expect(now).toEqual(JSON.parse(readFileSync(STORED, 'utf8')));
    expect(lines.length).toBeGreaterThan(200);
  });

  it('is the same again for the same seed, and another one for another', async () => {
    const [first, again, other] = [await log(2), await log(2), await log(1)];
    expect(again).toEqual(first);
    expect(digestOf(other)).not.toBe(digestOf(first));
  });

  it('is another one when a single event is altered, dropped or told later', async () => {
    const { sha256 } = JSON.parse(readFileSync(STORED, 'utf8')) as { readonly sha256: string };
    const lines = await log(2);
    const at = lines.findIndex((line, i) => i > SHOWN && line !== lines[i + 1]);
    const [one = '', next = ''] = lines.slice(at);
    const replaced = (...by: readonly string[]): readonly string[] => lines.toSpliced(at, 2, ...by);
    expect(digestOf(replaced(one, next))).toBe(sha256);
    for (const altered of [replaced(one.replace(/"atMs":\d/, '"atMs":9'), next), replaced(next), replaced(next, one)])
      expect(digestOf(altered)).not.toBe(sha256);
  });
});
