/**
 * Several generated jobs beside one another: gangs, dependencies, deadlines, checkpoints and budgets under a small vCPU
 * limit and a limit of the deployment. Nothing is bought and given back again and again, and what tasks take beyond
 * what is said of them is all that passes a limit.
 */
import { describe, expect, it } from '@jest/globals';
import { presetNamed } from '../../../../lib/stages/registry.ts';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { seconds, usd } from '../../../../lib/kernel/units.ts';
import type { WorkloadJob } from '../../../../lib/workload/workload.ts';
import { resources } from '../../../support/builders.ts';
import { simulated, simulatedJob } from '../../../support/simulated.ts';

const SEEDS = 250;
/** Tasks take up to 1.3 times as long as is said. */
const LONGEST = 1.3;
const MOST_LAUNCHES = 40;

function scenarioOf(seed: number) {
  const random = randomStream(seed, 'beside');
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const count = 2 + Math.floor(random() * 6);
  const jobs = Array.from({ length: count }, (_, i): WorkloadJob => {
    const runtimeS = pick([30, 600, 3600, 9000]);
    const tasks = pick([1, 2, 5]);
    const runtimes = Array.from({ length: tasks }, () => runtimeS * (0.7 + (LONGEST - 0.7) * random()));
    const hasDeadline = random() < 0.4;
    const follows = random() < 0.3 && i > 0;
    const saves = random() < 0.4;
    const job = simulatedJob(`job-${i}`, Math.floor(random() * 3600), runtimes, {
      ...(hasDeadline ? { deadlineS: runtimeS * pick([1.3, 2, 5]) + 400 } : {}),
      ...(follows ? { after: [`job-${i - 1}`] } : {}),
      stage: {
        command: [`program-${i}`],
        resources: resources(pick([1, 2, 4])),
        gang: tasks > 1 && random() < 0.4,
        expectedRuntimeS: seconds(runtimeS),
        ...(saves ? { checkpoint: { signal: 'SIGUSR2', graceS: seconds(30), everyS: seconds(120) } } : {}),
      },
    });
    return random() < 0.4 ? { ...job, spec: { ...job.spec, maxCostUsd: usd(pick([0.01, 0.05, 0.3, 2])) } } : job;
  });
  return {
    jobs,
    limitUsd: random() < 0.5 ? pick([0.1, 0.5, 2]) : null,
    billing: pick(['per-second', 'per-second', 'per-hour'] as const),
    vcpus: pick([8, 12, 64]),
    preset: pick(['greedy', 'on-demand'] as const),
  };
}

describe('several jobs beside one another', () => {
  it('neither pass a limit of the deployment nor buy what is given back, again and again', async () => {
    const seen = { limited: 0, refused: 0, succeeded: 0 };
    const broken: string[] = [];
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { jobs, limitUsd, billing, vcpus, preset } = scenarioOf(seed);
      let billUsd = 0;
      const { events, collected } = await simulated(jobs, {
        vcpus,
        seed,
        deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
        config: schedulerConfig.parse({
          refundRule: 'none',
          billing,
          ...(limitUsd === null ? {} : { maxUsdPerMonth: limitUsd }),
        }),
        onSettled: ({ rows }) => void (billUsd += rows.reduce((sum, row) => sum + row.usd, 0)),
      });
      const countOf = (type: string): number => events.filter((e) => e.type === type).length;
      const launches = countOf('instance-requested');
      const facts = JSON.stringify({ seed, preset, billing, limitUsd, vcpus, billUsd, launches });
      if (limitUsd !== null && billUsd > LONGEST * limitUsd) broken.push(`the limit is passed: ${facts}`);
      if (launches > MOST_LAUNCHES) broken.push(`too many launches: ${facts}`);
      if (countOf('purchases-paused') > 0) broken.push(`purchases paused: ${facts}`);
      seen.limited += Number(limitUsd !== null);
      seen.refused += Number(countOf('spending-limit') > 0);
      seen.succeeded += [...collected.rows.columns().state].filter((state) => state === 'succeeded').length;
    }
    expect(broken).toEqual([]);
    expect(seen.limited).toBeGreaterThan(SEEDS / 4);
    expect(seen.refused).toBeGreaterThan(SEEDS / 20);
    expect(seen.succeeded).toBeGreaterThan(SEEDS);
  }, 1_800_000);
});
