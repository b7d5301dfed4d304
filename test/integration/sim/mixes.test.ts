import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { seconds } from '../../../lib/kernel/units.ts';
import { outcomeOf } from '../../../lib/drivers/sim/outcome-of-run.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketOfPreset } from '../../../lib/market/fargate.ts';
import { relocationS } from '../../../lib/policy/work-left.ts';
import { policyList, presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { START_MS } from '../../support/mixed-workload.ts';
import { zones } from '../../support/observed-run.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/**
 * Every policy in the place of another one, on a full vCPU limit: all work ends, nothing is stopped and begun again
 * without end, and the bill is explained by the list price.
 */

const HOUR_S = 3600;
const VCPUS = 8;
const MACHINE_VCPUS = 4;
const trace = zones(
  { name: 'a', usdPerHour: 0.05, outages: [[1800, 5400]] },
  { name: 'b', usdPerHour: 0.06, outages: [[4000, 9000]] },
);
const stage = (vcpus: number, hours: number) => ({
  resources: resources(vcpus),
  expectedRuntimeS: seconds(hours * HOUR_S),
});
const LONGEST_S = 2 * HOUR_S;
const jobs = () => [
  simulatedJob('long', 0, [LONGEST_S, LONGEST_S], { stage: stage(1, 2) }),
  simulatedJob('tight', 60, [HOUR_S], { deadlineS: 1.4 * HOUR_S, stage: stage(4, 1) }),
  simulatedJob('gang', 120, [1200, 1200], { deadlineS: 4 * HOUR_S, stage: { ...stage(3, 0.4), gang: true } }),
  simulatedJob('short', 300, new Array<number>(20).fill(60), { stage: stage(1, 0.02) }),
  simulatedJob('roomy', 300, [HOUR_S, HOUR_S], { deadlineS: 8 * HOUR_S, stage: stage(2, 1) }),
];
/** Tasks that run for longer than a relocation: only these are stopped more than once. */
const LONG_TASKS = 7;
/** Stops that one such task may have: the first two, and then each doubles what it must run before the next. */
const STOPS_EACH = 2 + Math.ceil(Math.log2(LONGEST_S / relocationS(schedulerConfig.parse({}))));

/**
 * The mix that costs more, and why: the gang needs the whole limit, the plan stops the long tasks for it, and begins
 * them anew before both instances of the gang are there. They end on demand, after all that.
 */
const DEARER: Readonly<Record<string, number>> = { 'greedy value per-job-sharp': 2.1 };

async function runOf(base: string, changed: string, policy: string) {
  const { stages, asks } = presetNamed('mine', { mine: { extends: base, [changed]: policy } });
  const offered = marketOfPreset(trace, stages);
  const market: Parameters<typeof simulated>[1] = {
    trace: offered,
    market: (now) => replayMarket(offered, now),
    vcpus: VCPUS,
  };
  const result = await simulated(jobs(), { ...market, deciders: () => ({ name: 'mine', stages, asks }) });
  const { totals } = outcomeOf(result, { preset: 'mine', seed: 1, fromMs: START_MS });
  const interrupted = result.events.filter((e) => e.type === 'attempt-interrupted').length;
  return { ended: result.ended, interrupted, ...totals };
}

/** The plan that asks a solver has none here. */
const others = policyList().filter(({ stage: of, name }) => !(of === 'plan' && name === 'milp'));

describe.each([
  // Tasks share machines: at worst each has twice what it needs.
  ['greedy', 2],
  // One task a machine, of which the smallest needs a quarter.
  ['fleet', MACHINE_VCPUS],
])('%s with another policy in one place', (base, mostTimesList) => {
  it.each(others.map(({ stage: of, name }) => [of, name] as const))(
    '%s: %s',
    async (of, name) => {
      const { ended, attempts, tasks, interrupted, billedUsd, onDemandUsd } = await runOf(base, of, name);
      expect(ended).toBe('done');
      expect(attempts).toBeLessThanOrEqual(tasks + interrupted + LONG_TASKS * STOPS_EACH);
      expect(billedUsd / onDemandUsd).toBeLessThanOrEqual(DEARER[`${base} ${of} ${name}`] ?? mostTimesList);
    },
    30_000,
  );
});

it('a preset that buys on-demand only plans for nothing else', async () => {
  const { ended, launches, billedUsd, onDemandUsd } = await runOf('greedy', 'scale', 'on-demand');
  expect(ended).toBe('done');
  expect(launches).toBeLessThanOrEqual(jobs().length);
  expect(billedUsd / onDemandUsd).toBeLessThanOrEqual(2);
});
