import { expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import type { PlacementRules } from '../../../lib/domain/job.ts';
import { seconds } from '../../../lib/kernel/units.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
import { resources } from '../../support/builders.ts';
import { SAVES } from '../../support/mixed-workload.ts';
import { runs } from '../../support/properties.ts';
import { runOf, zones } from '../../support/observed-run.ts';
import { brokenRules } from '../../support/rule-checker.ts';
import { simulatedJob } from '../../support/simulated.ts';

const ZONES = ['a', 'b', 'c'];
const over = fc.constantFrom('zone' as const, 'instance' as const);
const label = fc.record({ over, labels: fc.constantFrom({ app: 'x' }, { app: 'y' }) });
const list = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> => fc.array(of, { maxLength: 2 });

const rules: fc.Arbitrary<PlacementRules> = fc.record(
  {
    maxPerInstance: fc.integer({ min: 1, max: 3 }),
    spread: list(fc.record({ over, maxSkew: fc.integer({ min: 1, max: 3 }) })),
    antiAffinity: list(label),
    affinity: list(label),
  },
  { requiredKeys: [] },
);

const jobs = fc
  .array(
    fc.record({
      tasks: fc.integer({ min: 1, max: 8 }),
      cpu: fc.integer({ min: 1, max: 4 }),
      runS: fc.constantFrom(60, 600, 3600, 3600, 3600),
      atS: fc.integer({ min: 0, max: 1800 }),
      app: fc.constantFrom('x', 'y', 'z'),
      owner: fc.constantFrom('ann', 'ann', 'bob'),
      saves: fc.boolean(),
      deadline: fc.boolean(),
      placement: fc.option(rules, { nil: undefined }),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((all) =>
    all.map(({ tasks, cpu, runS, atS, app, owner, saves, deadline, placement }, i): WorkloadJob => {
      const runtimes = Array.from<number>({ length: tasks }).fill(runS);
      const one = simulatedJob(`j-${i}`, atS, runtimes, {
        owner,
        ...(deadline ? { deadlineS: 6 * 3600 } : {}),
        stage: {
          resources: resources(cpu),
          expectedRuntimeS: seconds(runS),
          checkpoint: saves ? SAVES : null,
          ...(placement === undefined ? {} : { placement }),
        },
      });
      return { ...one, spec: { ...one.spec, labels: { app } } };
    }),
  );

const outage = fc.option(fc.tuple(fc.integer({ min: 60, max: 3000 }), fc.integer({ min: 600, max: 3600 })));
const preset = fc.constantFrom('greedy', 'stratus', 'hotspot', 'supercloud', 'fleet-binpack', 'tributary', 'ebbtide');

/** Affinity to labels that nothing may have beside it waits for ever: such work is not expected to end. */
const mayWait = (all: readonly WorkloadJob[]): boolean =>
  all.some((j) => (j.spec.stages[0]?.placement?.affinity ?? []).length > 0);

it('no start breaks a rule, and all work that can be done is done, whatever is asked for and interrupted', async () => {
  const property = fc.asyncProperty(jobs, preset, outage, async (all, name, down) => {
    const outages = down === null ? [] : [[down[0], down[0] + down[1]] as const];
    const trace = zones(
      { name: 'a', outages },
      { name: 'b', usdPerHour: 0.06 },
      { name: 'c', usdPerHour: 0.07, onDemandUsdPerHour: 0.2 },
    );
    const { stages, asks } = presetNamed(name);
    const run = await runOf({ jobs: all, trace, mayWait: mayWait(all) }, { name, stages, asks });
    const specs = new Map(all.map((j) => [j.spec.name, j.spec]));
    expect(brokenRules({ run, specs, zones: ZONES })).toEqual([]);
    for (const { spec: of, truth } of all) {
      if ((of.stages[0]?.placement?.affinity ?? []).length > 0) continue;
      const succeeded = run.stays.filter((s) => s.job === of.name && s.end === 'succeeded');
      expect([of.name, succeeded.length]).toEqual([of.name, truth.get('main')?.runtimeS.length]);
    }
    const used = new Set(run.stays.map((s) => s.instance));
    // Short tasks may be done by the first instances before the others are up.
    const isShort = all.some((j) => (j.truth.get('main')?.runtimeS[0] ?? 0) < 3600);
    if (down !== null || isShort) return;
    // Jobs with rules are bought for one by one, and may then share instances: what they save is given back unused.
    const tasks = all.map((j) => j.spec.stages[0]?.tasks ?? 0);
    const shared = tasks.reduce((sum, n) => sum + n, 0) - Math.max(...tasks);
    expect(run.bought.filter((b) => !used.has(b.instance)).length).toBeLessThanOrEqual(all.length + shared);
  });
  await fc.assert(property, { numRuns: runs(40), endOnFailure: true });
}, 300_000);
