/** A cluster of the user's own: every preset does all work on it, and asks for no machine that is not there. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { epochMs, mib, milliCpu, plus, seconds } from '../../../../lib/kernel/units.ts';
import { replayMarket } from '../../../../lib/drivers/local/market/replay.ts';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { deterministic, type Solver } from '../../../../lib/policy/solver.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../../lib/market/cluster.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { presetList, presetNamed } from '../../../../lib/stages/registry.ts';
import { buysFargateAlone } from '../../../../lib/market/fargate.ts';
import { simulated, simulatedJob } from '../../../support/simulated.ts';
import { runs } from '../../../support/properties.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const presets = presetList()
  .map(({ name }) => name)
  .filter((name) => name !== 'oracle' && !buysFargateAlone(presetNamed(name).stages));

let solver: Solver;
beforeAll(() => {
  solver = deterministic(highsSolver(), 50);
});
afterAll(() => solver.close());

const kind = fc.record({
  count: fc.integer({ min: 1, max: 6 }),
  racks: fc.integer({ min: 1, max: 3 }),
  cpu: fc.constantFrom(2, 4, 8),
  price: fc.constantFrom(0, 0, 0.1),
});
const job = fc.record({
  submittedS: fc.integer({ min: 0, max: 600 }),
  runtimesS: fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 12 }),
  cpu: fc.constantFrom(0.5, 1, 2),
  rack: fc.constantFrom(null, null, 'rack-1'),
  deadlineS: fc.constantFrom(undefined, 1200, 7200),
});

describe('a cluster', () => {
  it('does all work of any preset, within its machines', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(kind, { minLength: 1, maxLength: 3 }),
        fc.array(job, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(...presets),
        async (kinds, jobs, preset) => {
          const text = kinds.map(
            ({ count, racks, cpu, price }) =>
              `${count}x{cpu: ${cpu}, memory: 16GiB, rack: ${Math.min(racks, count)}, usdPerHour: ${price}}`,
          );
          const trace = marketWithCluster(null, text.join('+'));
          const { collected, events, refused } = await simulated(
            jobs.map(({ submittedS, runtimesS, cpu, rack, deadlineS }, i) =>
              simulatedJob(`job-${i}`, submittedS, runtimesS, {
                ...(deadlineS === undefined ? {} : { deadlineS }),
                stage: {
                  resources: { cpu: milliCpu(cpu * 1000), memory: mib(512), gpus: 0, disk: mib(0) },
                  constraints: rack === null ? {} : { labels: { rack: [rack] } },
                },
              }),
            ),
            {
              trace,
              market: (now) => replayMarket(trace, now),
              fromMs: FROM,
              toMs: plus(FROM, seconds(7 * 24 * 3600)),
              config: schedulerConfig.parse(settingsOfCluster(trace)),
              vcpus: ownVcpus(trace),
              solver,
              deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
            },
          );
          const states = [...collected.rows.columns().state];
          // A deadline that cannot be met is refused at submission.
          expect(states).toEqual(jobs.slice(refused.length).map(() => 'succeeded'));
          expect(events.filter((e) => e.text.includes('has no capacity'))).toEqual([]);
        },
      ),
      { numRuns: runs(150) },
    );
  }, 180_000);
});
