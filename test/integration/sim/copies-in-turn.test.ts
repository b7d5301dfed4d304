/** Copies of slow tasks on a cluster, under the presets that make some. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import type { TrueRuntime } from '../../../lib/drivers/sim/truth.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
type Jobs = Parameters<typeof simulated>[0];

const tasksOf = (key: string, submittedS: number, runtimesS: readonly number[]) =>
  simulatedJob(key, submittedS, runtimesS, { stage: { resources: resources(1, 1), expectedRuntimeS: seconds(100) } });

async function runOf(preset: string, jobs: Jobs, { machines, runtime }: { machines: number; runtime?: TrueRuntime }) {
  const trace = marketWithCluster(null, `${machines}x{cpu: 1, memory: 4GiB}`);
  const { events, ended } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(24 * 3600)),
    config: schedulerConfig.parse({ ...settingsOfCluster(trace), preset }),
    vcpus: ownVcpus(trace),
    deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
    ...(runtime === undefined ? {} : { runtime }),
  });
  expect(ended).toBe('done');
  return {
    copies: events.filter((e) => e.text.includes('copy')),
    lastS: (raw(events.at(-1)?.atMs ?? FROM) - raw(FROM)) / 1000,
  };
}

/** One task of ten is slow, the first time it is tried. */
const oneSlow: TrueRuntime = ({ task, runtimeS }) =>
  task.index === 3 && task.number === 1 ? seconds(10 * raw(runtimeS)) : runtimeS;

describe.each(['hopper', 'srpt-copies', 'srpt-speculation', 'fair-speculation', 'greedy'])('%s', (preset) => {
  const TASKS = Array.from({ length: 10 }, () => 100);

  it('copies the slow task of a job, and the copy ends first', async () => {
    const { lastS, copies } = await runOf(preset, [tasksOf('j', 0, TASKS)], { machines: 12, runtime: oneSlow });
    expect(copies.length).toBeGreaterThan(0);
    expect(lastS).toBeLessThan(500);
  });

  it('makes no copy where no task is slow', async () => {
    const { lastS, copies } = await runOf(preset, [tasksOf('j', 0, TASKS)], { machines: 12 });
    expect(copies).toEqual([]);
    expect(lastS).toBeLessThan(120);
  });
});
