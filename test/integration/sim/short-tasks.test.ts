import { describe, expect, it } from '@jest/globals';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import { eachItsPlace } from '../../../lib/stages/queue/queue.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

interface Scene {
  readonly vcpus: number;
  readonly tasks: number;
  readonly runtimeS: number;
  readonly deadlineS?: number;
}

/** One job of one stage, with short tasks that take turns, or each of which is bought a place. */
async function runOf({ vcpus, tasks, runtimeS, ...dated }: Scene, takesTurns: boolean) {
  const stages = presetNamed('greedy').stages;
  const job = simulatedJob('short', 0, new Array<number>(tasks).fill(runtimeS), {
    ...dated,
    stage: { expectedRuntimeS: seconds(runtimeS), resources: resources(1) },
  });
  const result = await simulated([job], {
    vcpus,
    deciders: () => ({ name: 'greedy', stages: takesTurns ? stages : { ...stages, queue: eachItsPlace } }),
  });
  const { jobs, totals } = outcomeOf(result, { preset: 'greedy', seed: 1, marketSeed: null, fromMs: START_MS });
  expect(totals.succeeded).toBe(1);
  const bought = result.events.filter((e) => e.type === 'instance-requested').length;
  return { tookS: ((jobs.finishedMs[0] ?? NaN) - raw(START_MS)) / 1000, missed: totals.missed, bought };
}

describe('a stage of short tasks', () => {
  it('takes turns on a third of the instances or fewer, in twice the time at most', async () => {
    const scene = { vcpus: 1000, tasks: 200, runtimeS: 5 };
    const [turns, each] = [await runOf(scene, true), await runOf(scene, false)];
    expect(turns.bought * 3).toBeLessThanOrEqual(each.bought);
    expect(turns.tookS).toBeLessThanOrEqual(2 * each.tookS);
  });

  it('uses all that the vCPU limit allows where more tasks wait than places could serve in time', async () => {
    const scene = { vcpus: 64, tasks: 2000, runtimeS: 5, deadlineS: 600 };
    const [turns, each] = [await runOf(scene, true), await runOf(scene, false)];
    expect(turns).toEqual(each);
    expect(turns.missed).toBe(0);
  });

  it('waits away no more than half of the slack of its deadline', async () => {
    for (const deadlineS of [400, 500, 600]) {
      const { missed, tookS } = await runOf({ vcpus: 1000, tasks: 400, runtimeS: 5, deadlineS }, true);
      expect([deadlineS, missed]).toEqual([deadlineS, 0]);
      expect(tookS).toBeLessThan(deadlineS / 2 + 100);
    }
  });
});
