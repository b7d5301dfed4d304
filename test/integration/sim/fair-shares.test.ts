/** Fair shares of owners and queues, on two machines of two slots. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, raw, seconds } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const TWO = '2x{cpu: 2, memory: 8GiB}';
const TASK_S = 100;
const EACH = 24;

const stage = { resources: resources(1, 1), expectedRuntimeS: seconds(TASK_S) };
const jobOf = (owner: string, submittedS: number, tasks = EACH, queue?: string) => {
  const runtimesS = Array.from({ length: tasks }, () => TASK_S);
  const made = simulatedJob(`of-${owner}`, submittedS, runtimesS, { owner, stage });
  return queue === undefined ? made : { ...made, spec: { ...made.spec, labels: { queue } } };
};

/** Ends of tasks in order of time, by owner. */
async function endsOf(
  jobs: Parameters<typeof simulated>[0],
  settings: Readonly<Record<string, unknown>>,
  cluster = TWO,
  told: Set<string> = new Set(),
) {
  const { stages } = presetNamed('greedy');
  const plan: typeof stages.plan = async (input, solver) => {
    const allotment = await stages.plan(input, solver);
    for (const { detail } of allotment.waits) told.add(detail);
    return allotment;
  };
  const trace = marketWithCluster(null, cluster);
  const { events, ended } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(24 * 3600)),
    config: schedulerConfig.parse({ ...settingsOfCluster(trace), ...settings }),
    vcpus: ownVcpus(trace),
    namesJobs: true,
    deciders: () => ({ name: 'greedy', stages: { ...stages, plan } }),
  });
  expect(ended).toBe('done');
  const owners = new Map(
    events.flatMap((e) => {
      const owner = /^job of-(\S+) submitted/.exec(e.text)?.[1];
      return owner === undefined || e.job === null ? [] : [[e.job, owner] as const];
    }),
  );
  return events
    .filter((e) => e.type === 'attempt-succeeded')
    .map((e) => ({ owner: owners.get(e.job as never) ?? '', atS: (raw(e.atMs) - raw(FROM)) / 1000 }));
}

const doneBy = (ends: Awaited<ReturnType<typeof endsOf>>, owner: string, s: number): number =>
  ends.filter((e) => e.owner === owner && e.atS <= s).length;

describe('fair shares', () => {
  const two = [jobOf('ana', 0), jobOf('bob', 1)];
  const HALF_S = (EACH * TASK_S) / 4;

  it('without them one job goes before the other', async () => {
    const ends = await endsOf(two, {});
    const [first, second] = [doneBy(ends, 'ana', 1.5 * HALF_S), doneBy(ends, 'bob', 1.5 * HALF_S)];
    expect(Math.min(first, second)).toBeLessThan(0.6 * Math.max(first, second));
  });

  it('owners get half of the slots each, and one that has no work left leaves its share to the other', async () => {
    const ends = await endsOf([jobOf('ana', 0, 40), jobOf('bob', 1, 12)], { fairShares: 'owner', fairEpsilon: 0 });
    expect(doneBy(ends, 'bob', 8 * TASK_S)).toBe(12);
    // All four slots are in use to the end.
    expect(Math.max(...ends.map((e) => e.atS))).toBeLessThan((52 / 4 + 2) * TASK_S);
  });

  it('are the reason that is told where they keep an owner waiting, and only there', async () => {
    const [shared, free] = [new Set<string>(), new Set<string>()];
    await endsOf(two, { fairShares: 'owner', fairEpsilon: 0 }, TWO, shared);
    await endsOf(two, {}, TWO, free);
    expect([...shared].some((why) => why.startsWith('its owner has its fair share'))).toBe(true);
    expect([...free].some((why) => why.includes('fair share'))).toBe(false);
  });

  it('follow weights', async () => {
    const ends = await endsOf(two, { fairShares: 'owner', fairEpsilon: 0, shareWeights: { ana: 1, bob: 3 } });
    expect(doneBy(ends, 'bob', 9 * TASK_S)).toBeGreaterThanOrEqual(21);
  });

  it('an owner of weight 0 has what the others leave', async () => {
    const ends = await endsOf(two, { fairShares: 'owner', fairEpsilon: 0, shareWeights: { ana: 0 } });
    const bobEnds = Math.max(...ends.filter((e) => e.owner === 'bob').map((e) => e.atS));
    expect(bobEnds).toBeLessThan((EACH / 4 + 2.5) * TASK_S);
    expect(ends.filter((e) => e.owner === 'ana')).toHaveLength(EACH);
  });

  it.each(['constructor', '__proto__', 'toString'])('an owner may be called %s', async (name) => {
    const ends = await endsOf([jobOf(name, 0), jobOf('bob', 1)], { fairShares: 'owner', fairEpsilon: 0 });
    expect(doneBy(ends, name, 12.5 * TASK_S)).toBeGreaterThanOrEqual(22);
    expect(doneBy(ends, 'bob', 12.5 * TASK_S)).toBeGreaterThanOrEqual(22);
  });

  it('queues are told apart by the label of jobs', async () => {
    const jobs = [jobOf('ana', 0, 12, 'a'), jobOf('bob', 0, 12, 'a'), jobOf('cyd', 0, 24, 'b')];
    const settings = { fairShares: 'queue', fairEpsilon: 0 };
    expect(doneBy(await endsOf(jobs, settings), 'cyd', 12.5 * TASK_S)).toBeGreaterThanOrEqual(22);
  });

  it('nothing is kept free for work that could not start there', async () => {
    const cluster = '2x{cpu: 2, memory: 8GiB, name: plain} + 1x{cpu: 1, memory: 8GiB, name: special}';
    const waits = simulatedJob('of-waits', 0, [1000, 1000, 1000, 1000], {
      owner: 'waits',
      stage: { ...stage, expectedRuntimeS: seconds(1000), constraints: { labels: { machine: ['special'] } } },
    });
    const ends = await endsOf([waits, jobOf('ana', 1, 16)], { fairShares: 'owner', fairEpsilon: 0 }, cluster);
    expect(Math.max(...ends.filter((e) => e.owner === 'ana').map((e) => e.atS))).toBeLessThan((16 / 4 + 1) * TASK_S);
  });
});
