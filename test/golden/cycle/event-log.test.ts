import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { raw } from '../../../lib/kernel/units.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { limited, type Solver } from '../../../lib/policy/solver.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';

/**
 * The default preset on a small workload: what happened and when, line by line, as stored. A change that is meant is
 * stored with `EBB_GOLDEN=write` and reviewed as any other. The solver stops by gap and nodes, never by the machine's
 * speed.
 */
const STORED = 'test/golden/cycle/mixed-workload.txt';
const MAX_NODES = 2000;
const VCPUS = 12;
let solver: Solver;
beforeAll(() => {
  solver = highsSolver();
});
afterAll(() => solver.close());

async function eventLog(): Promise<string[]> {
  let solved = 0;
  const bench = new EngineBench({
    trace: mixedTrace,
    startMs: START_MS,
    preset: 'ebbtide',
    solver: limited(solver, (asked) => {
      solved += 1;
      return { relativeGap: asked.relativeGap, maxNodes: MAX_NODES, maxSeconds: null };
    }),
    config: { refundRule: 'none', solverGap: 0 },
    // Fewer than all jobs want at once, and no gap allowed: otherwise a greedy plan is good enough and the solver is
    // not asked.
    vcpus: VCPUS,
  });
  await bench.submit(mixedJobs());
  await bench.drive({ deeds: mixedDeeds() });
  expect(solved).toBeGreaterThan(0);
  const events = (await bench.store.events(0, 10_000)).map((e) => {
    const atS = ((raw(e.atMs) - raw(START_MS)) / 1000).toFixed(1);
    return [atS.padStart(8), e.type.padEnd(20), e.job ?? '-', JSON.stringify(e.data)].join('  ');
  });
  const costs = (await bench.store.costs('job')).map(
    (c) => `cost of ${c.key}: work ${c.workUsd.toFixed(6)}, wasted ${c.wastedUsd.toFixed(6)}, idle ${c.idleUsd.toFixed(6)}`,
  );
  return [...events, ...costs];
}

const stored = (): string[] => readFileSync(STORED, 'utf8').trimEnd().split('\n');

/** The first line in which two logs differ, for people; null when they are the same. */
function firstDifference(expected: readonly string[], got: readonly string[]): string | null {
  for (let line = 0; line < Math.max(expected.length, got.length); line++) {
    if (expected[line] !== got[line])
      return `line ${line + 1}\n  stored ${expected[line] ?? '(nothing)'}\n  now    ${got[line] ?? '(nothing)'}`;
  }
  return null;
}

describe('the event log of the mixed workload', () => {
  it('is the stored one', async () => {
    const log = await eventLog();
    if (process.env['EBB_GOLDEN'] === 'write') writeFileSync(STORED, `${log.join('\n')}\n`);
    expect(firstDifference(stored(), log)).toBeNull();
    expect(log.length).toBeGreaterThan(30);
  });

  it('is the same again', async () => {
    const [first, second] = [await eventLog(), await eventLog()];
    expect(firstDifference(first, second)).toBeNull();
  });

  it('is compared line by line: any line that is changed, lost, doubled or swapped is noticed', () => {
    const golden = stored();
    golden.forEach((line, i) => {
      const altered = [
        golden.with(i, line.replace(/\d/, (digit) => String((Number(digit) + 1) % 10))),
        golden.toSpliced(i, 1),
        golden.toSpliced(i, 0, line),
      ];
      for (const log of altered) expect(firstDifference(golden, log)).not.toBeNull();
    });
    const swapped = golden.with(0, golden[1] ?? '').with(1, golden[0] ?? '');
    if (golden[0] !== golden[1]) expect(firstDifference(golden, swapped)).toContain('line 1');
  });
});
