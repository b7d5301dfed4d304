/** Orders of whole jobs, on one machine that runs one task at a time. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const trace = marketWithCluster(null, '1x{cpu: 1, memory: 4GiB}');
const tasksOf = (key: string, submittedS: number, runtimesS: readonly number[]) =>
  simulatedJob(key, submittedS, runtimesS, {
    stage: { resources: resources(1, 1), expectedRuntimeS: seconds(runtimesS[0] ?? 0) },
  });

/** Starts of tasks in the order of time, by job. */
async function startsUnder(preset: string): Promise<readonly string[]> {
  const { events } = await simulated(
    [tasksOf('first', 0, [60]), tasksOf('long', 5, [100, 100, 100]), tasksOf('short', 6, [20, 20])],
    {
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs: FROM,
      toMs: plus(FROM, seconds(24 * 3600)),
      config: schedulerConfig.parse(settingsOfCluster(trace)),
      vcpus: ownVcpus(trace),
      namesJobs: true,
      deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
    },
  );
  const names = new Map(
    events.flatMap((e) => {
      const name = /^job (\S+) submitted/.exec(e.text)?.[1];
      return name === undefined || e.job === null ? [] : [[e.job, name] as const];
    }),
  );
  return events.filter((e) => e.text.includes(' starts on ')).map((e) => names.get(e.job as never) ?? '?');
}

describe('jobs in an order', () => {
  it('fifo: as submitted', async () => {
    expect(await startsUnder('fifo')).toEqual(['first', 'long', 'long', 'long', 'short', 'short']);
  });

  it.each(['srpt', 'greedy'])('%s: the least work left first', async (preset) => {
    expect(await startsUnder(preset)).toEqual(['first', 'short', 'short', 'long', 'long', 'long']);
  });
});
