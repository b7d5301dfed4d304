import { describe, expect, it } from '@jest/globals';
import { finishedTimes, type Snapshot } from '../../../lib/domain/snapshot.ts';
import type { RunningTimes } from '../../../lib/domain/running-times.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { EngineBench } from '../../support/engine-bench.ts';
import { Crashes } from '../../support/crashing.ts';
import { calmTrace, START_MS } from '../../support/mixed-workload.ts';

/** What a policy is shown of the finished tasks of a stage. */

const J = jobId('j-many');
const STAGE = { job: J, stage: 'main' };

async function seen(how: { readonly stepped?: boolean; readonly dies?: boolean }): Promise<(RunningTimes | null)[]> {
  const shown: (RunningTimes | null)[] = [];
  const watch = (snapshot: Snapshot): void => {
    if (snapshot.jobs.has(J)) shown.push(finishedTimes(snapshot, STAGE));
  };
  const bench = new EngineBench({
    trace: calmTrace,
    startMs: START_MS,
    vcpus: 8,
    ...(how.stepped === true ? { stepped: true } : {}),
    stages: (of) => ({
      ...of,
      estimate: (context) => {
        watch(context.snapshot);
        return of.estimate(context);
      },
    }),
  });
  const tasks = Array.from({ length: 3 }, (_, i) => stage({ name: `s${i}`, env: { RUNTIME_S: '100' } }));
  const main = stage({ tasks: 20, env: { RUNTIME_S: '300' } });
  await bench.submit([job({ name: J, submittedMs: START_MS, spec: spec({ stages: [main, ...tasks] }) })]);
  const crashes = new Crashes(how.dies === true ? [{ call: 40, when: 'after' }] : [], bench.clock);
  await bench.drive({ through: () => crashes.between() });
  const done = await bench.job(J);
  expect(done.state).toBe('succeeded');
  expect(done.stages[0]?.times).toMatchObject({ count: 20, sumS: 6000 });
  // One task has no siblings.
  expect(done.stages[1]).not.toHaveProperty('times');
  return shown;
}

describe('finished siblings', () => {
  it.each([
    ['in one process', {}],
    ['in steps', { stepped: true }],
    ['of an engine that dies', { dies: true }],
  ])('are shown to estimators as they finish, %s', async (_, how) => {
    const shown = await seen(how);
    expect(shown[0]).toBeNull();
    const counts = shown.map((times) => times?.count ?? 0);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(new Set(counts).size).toBeGreaterThan(2);
    for (const times of shown) if (times !== null) expect(raw(times.sumS)).toBe(300 * times.count);
  });
});
