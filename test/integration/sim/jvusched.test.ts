/** JVuSched’s presets, on one machine that runs one task at a time: work with a deadline meets best-effort work. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { highsSolver } from '../../../lib/drivers/solver/highs-solver.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { settingsUnder } from '../../../lib/policy/preset-chain.ts';
import { deterministic } from '../../../lib/policy/solver.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const ONE = '1x{cpu: 1, memory: 4GiB}';
const stage = (s: number) => ({ stage: { resources: resources(1, 1), expectedRuntimeS: seconds(s) } });

/** Seconds from the beginning to the end of each job, and the tasks that were stopped. */
async function endsUnder(
  preset: string,
  jobs: Parameters<typeof simulated>[0],
  { cluster = ONE, ...settings }: { readonly cluster?: string; readonly [setting: string]: unknown } = {},
) {
  const trace = marketWithCluster(null, cluster);
  const solver = deterministic(highsSolver(), 50);
  const config = schedulerConfig.parse({ ...settingsOfCluster(trace), ...settings });
  const { events } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(24 * 3600)),
    config: settingsUnder(preset, config),
    vcpus: ownVcpus(trace),
    deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
    solver,
  });
  await solver.close();
  const at = new Map<string, number>();
  for (const e of events) {
    const name = /^job (\S+) succeeded/.exec(e.text)?.[1];
    if (name !== undefined) at.set(name, (raw(e.atMs) - raw(FROM)) / 1000);
  }
  return { at, stopped: events.filter((e) => e.type === 'attempt-preempted').length };
}

const jobs = [
  simulatedJob('best-effort', 0, [3000], stage(3000)),
  simulatedJob('urgent', 60, [300], { ...stage(300), deadlineS: 600 }),
];

describe('work with a deadline', () => {
  it.each(['jvusched', 'jvusched-greedy', 'prio'])(
    'stops best-effort work, which then begins anew: %s',
    async (preset) => {
      const { at, stopped } = await endsUnder(preset, jobs);
      expect(stopped).toBe(1);
      expect(at.get('urgent')).toBeLessThanOrEqual(660);
      expect(at.get('best-effort')).toBeGreaterThan(3300);
    },
  );

  it.each([
    ['jvusched', 600],
    ['jvusched', 60],
    ['jvusched-greedy', 60],
    ['prio', 60],
  ])(
    '%s stops one task for each that needs its place, however long that takes to be free: slots of %i s',
    async (preset, slotS) => {
      const three = [
        simulatedJob('best-effort', 0, [3000, 3000, 3000], stage(3000)),
        simulatedJob('urgent', 60, [300], { ...stage(300), deadlineS: 900 }),
      ];
      const cluster = '3x{cpu: 1, memory: 4GiB}';
      const { at, stopped } = await endsUnder(preset, three, { cluster, slotS, preemptionDelayS: 200 });
      expect(stopped).toBe(1);
      expect(at.get('urgent')).toBeGreaterThan(560);
      expect(at.get('urgent')).toBeLessThan(640);
    },
  );

  it('is not stopped for work that would be late anyway', async () => {
    const { stopped } = await endsUnder('jvusched', jobs, { slotS: 60, preemptionDelayS: 7200 });
    expect(stopped).toBe(0);
  });

  it.each(['jvusched-base', 'fifo'])('stops nothing: %s', async (preset) => {
    const { at, stopped } = await endsUnder(preset, jobs);
    expect(stopped).toBe(0);
    expect(at.get('best-effort')).toBeLessThan(3100);
    expect(at.get('urgent') ?? Infinity).toBeGreaterThan(660);
  });

  it.each(['jvusched', 'jvusched-greedy'])('is not stopped for equal work: %s', async (preset) => {
    const alike = [
      simulatedJob('first', 0, [900], { ...stage(900), deadlineS: 1200 }),
      simulatedJob('second', 60, [900], { ...stage(900), deadlineS: 1200 }),
    ];
    const { at, stopped } = await endsUnder(preset, alike);
    expect(stopped).toBe(0);
    expect(at.get('first')).toBeLessThan(1000);
  });
});
