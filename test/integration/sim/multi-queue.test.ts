/** Queues by the size of jobs, on one machine that runs one task at a time. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed, type OwnPresets } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const trace = marketWithCluster(null, '1x{cpu: 1, memory: 4GiB}');
const tasksOf = (key: string, submittedS: number, runtimesS: readonly number[]) =>
  simulatedJob(key, submittedS, runtimesS, {
    stage: { resources: resources(1, 1), expectedRuntimeS: seconds(runtimesS[0] ?? 0) },
  });
const many = (n: number, s: number) => Array.from({ length: n }, () => s);

/** Starts of tasks in the order of time, by job; pilots as capitals. */
async function startsUnder(preset: string, jobs: Parameters<typeof simulated>[0]) {
  const { events } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(240 * 3600)),
    config: schedulerConfig.parse(settingsOfCluster(trace)),
    vcpus: ownVcpus(trace),
    namesJobs: true,
    deciders: () => ({ name: preset, stages: presetNamed(preset, OWN).stages }),
  });
  const names = new Map(
    events.flatMap((e) => {
      const name = /^job (\S+) submitted/.exec(e.text)?.[1];
      return name === undefined || e.job === null ? [] : [[e.job, name] as const];
    }),
  );
  return events.filter((e) => e.text.includes(' starts on ')).map((e) => names.get(e.job as never) ?? '?');
}
/** 3sigma's queues, told the true times. */
const OWN: OwnPresets = { told: { extends: '3sigma', estimate: 'told' } };

/** Starts in a row of the same job. */
function runsOf(starts: readonly string[]): readonly string[] {
  const runs: { job: string; count: number }[] = [];
  for (const job of starts) {
    const last = runs.at(-1);
    if (last?.job === job) last.count++;
    else runs.push({ job, count: 1 });
  }
  return runs.map(({ job, count }) => `${job} ${count}`);
}

describe('queues by the size of jobs', () => {
  const jobs = [tasksOf('first', 0, [60]), tasksOf('large', 5, many(6, 500)), tasksOf('small', 6, many(4, 20))];

  it('a small job that is known passes a large one', async () => {
    expect(runsOf(await startsUnder('told', jobs))).toEqual(['first 1', 'small 4', 'large 6']);
  });

  it('first in, first out within a queue', async () => {
    const alike = [tasksOf('first', 0, [60]), tasksOf('a', 5, many(4, 100)), tasksOf('b', 6, many(4, 20))];
    expect(runsOf(await startsUnder('told', alike))).toEqual(['first 1', 'a 4', 'b 4']);
  });

  it('las: a job falls back once it has had a thousand seconds', async () => {
    const starts = await startsUnder('las', jobs);
    // Two tasks of 500 s are not yet above the limit of the first queue.
    expect(runsOf(starts)).toEqual(['first 1', 'large 3', 'small 4', 'large 3']);
  });

  it('slearn: one pilot of each wide job, then the one that it tells to be small', async () => {
    expect(runsOf(await startsUnder('slearn', jobs))).toEqual(['first 1', 'large 1', 'small 4', 'large 5']);
  });

  it('slearn: thin jobs come at once', async () => {
    const thin = [tasksOf('first', 0, [60]), tasksOf('large', 5, many(6, 500)), tasksOf('thin', 6, [900, 900])];
    expect(runsOf(await startsUnder('slearn', thin))).toEqual(['first 1', 'thin 2', 'large 6']);
  });

  it('slearn: a pilot that does not end holds back its own job alone', async () => {
    const hung = [tasksOf('first', 0, [60]), tasksOf('hung', 5, many(6, 50_000)), tasksOf('small', 6, many(4, 20))];
    const starts = await startsUnder('slearn', hung);
    expect(starts.filter((job) => job === 'small')).toHaveLength(4);
    expect(starts.filter((job) => job === 'hung')).toHaveLength(6);
  });
});
