/** Soft constraints with a slowdown, on machines of two kinds. */
import { describe, expect, it } from '@jest/globals';
import { epochMs, plus, seconds, secondsBetween, usd, type EpochMs } from '../../../lib/kernel/units.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { StageSpec } from '../../../lib/domain/job.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { marketWithCluster, ownVcpus, settingsOfCluster } from '../../../lib/market/cluster.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const FROM = epochMs(Date.UTC(2026, 0, 1));
const WORK_S = 1000;
const SLOWDOWN = 1.5;

const soft = (over: Partial<StageSpec> = {}) => ({
  stage: {
    resources: resources(1, 1),
    expectedRuntimeS: seconds(WORK_S),
    preferences: [{ prefer: { labels: { machine: ['fast'] } }, weight: 0, slowdown: SLOWDOWN }],
    ...over,
  },
});

async function eventsOn(cluster: string, jobs: Parameters<typeof simulated>[0], preset: string) {
  const trace = marketWithCluster(null, cluster);
  const { events } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    fromMs: FROM,
    toMs: plus(FROM, seconds(24 * 3600)),
    config: schedulerConfig.parse({ ...settingsOfCluster(trace), slotS: 60, lookAheadSlots: 12 }),
    vcpus: ownVcpus(trace),
    deciders: () => ({ name: preset, stages: presetNamed(preset).stages }),
  });
  return events;
}

/** What each attempt of a stage came to: seconds from its placement to its success, by `index.number`. */
function ranS(events: Awaited<ReturnType<typeof eventsOn>>): Readonly<Record<string, number>> {
  const placedMs = new Map<string, EpochMs>();
  const ran: Record<string, number> = {};
  for (const { type, atMs, data } of events) {
    const attempt = String(data['attempt']);
    if (type === 'attempt-starting') placedMs.set(attempt, atMs);
    const from = placedMs.get(attempt);
    if (type === 'attempt-succeeded' && from !== undefined)
      ran[attempt.split('.').slice(-2).join('.')] = secondsBetween(from, atMs);
  }
  return ran;
}

const BOTH = '1x{cpu: 1, memory: 4GiB, name: fast} + 1x{cpu: 1, memory: 4GiB, name: slow}';
const placesOf = (events: Awaited<ReturnType<typeof eventsOn>>): readonly string[] => {
  const pools = new Map(
    events.flatMap((e) => (e.type === 'instance-requested' ? [[e.data['instance'], e.data['pool']] as const] : [])),
  );
  return events.flatMap((e) => (e.type === 'attempt-starting' ? [String(pools.get(e.data['instance']))] : []));
};

describe('slowdown of soft constraints', () => {
  it.each(['greedy', 'jvusched-greedy', 'hopper', 'slearn'])(
    '%s: a task takes so much longer there',
    async (preset) => {
      const events = await eventsOn(BOTH, [simulatedJob('a', 0, [WORK_S, WORK_S], soft())], preset);
      expect(ranS(events)).toEqual({ '0.1': WORK_S, '1.1': WORK_S * SLOWDOWN });
      expect(placesOf(events)).toEqual(['fast/rack-1/reserved', 'slow/rack-1/reserved']);
    },
  );

  it('slowdowns of several soft constraints are multiplied, and one that is met has none', async () => {
    const preferences = [
      { prefer: { labels: { machine: ['fast'] } }, weight: 0, slowdown: 1.5 },
      { prefer: { labels: { rack: ['rack-1'] } }, weight: 0, slowdown: 3 },
      { prefer: { zones: ['elsewhere'] }, weight: 0, slowdown: 2 },
    ];
    const job = simulatedJob('a', 0, [WORK_S, WORK_S], soft({ preferences }));
    expect(ranS(await eventsOn(BOTH, [job], 'greedy'))).toEqual({ '0.1': 2 * WORK_S, '1.1': 3 * WORK_S });
  });

  it.each([
    ['waits for the pool that meets it where the slower one would be late', 300, 1.4, 'fast/rack-1/reserved'],
    ['takes the slower one where waiting would be late', 3000, 1.8, 'slow/rack-1/reserved'],
  ])('%s', async (_, busyS, deadline, pool) => {
    const stage = {
      resources: resources(1, 1),
      constraints: { labels: { machine: ['fast'] } },
      expectedRuntimeS: seconds(busyS),
    };
    const busy = simulatedJob('busy', 0, [busyS], { deadlineS: 1.2 * busyS, stage });
    const due = simulatedJob('due', 60, [WORK_S], { ...soft(), deadlineS: deadline * WORK_S });
    const places = placesOf(await eventsOn(BOTH, [busy, due], 'jvusched-greedy'));
    expect(places).toEqual(['fast/rack-1/reserved', pool]);
  });

  it('work is counted as where all is met: it goes on elsewhere from what it has done, not from how long it took', async () => {
    const checkpoint = { signal: 'SIGTERM' as const, graceS: seconds(10), everyS: null };
    const long = simulatedJob('long', 0, [WORK_S, WORK_S], soft({ checkpoint }));
    const urgent = simulatedJob('urgent', 600, [WORK_S], {
      deadlineS: 1.2 * WORK_S,
      stage: {
        resources: resources(1, 1),
        constraints: { labels: { machine: ['slow'] } },
        expectedRuntimeS: seconds(WORK_S),
      },
    });
    const events = await eventsOn(BOTH, [long, urgent], 'prio');
    expect(placesOf(events).slice(-2)).toEqual(['slow/rack-1/reserved', 'fast/rack-1/reserved']);
    // About 600 s at two thirds of the pace.
    const resumed = ranS(events)['1.2'] ?? Number.NaN;
    expect(resumed).toBeGreaterThan(WORK_S - 420);
    expect(resumed).toBeLessThan(WORK_S - 380);
  });

  it.each([
    ['starts nothing that its limit does not pay for at that pace', 0.06, 0],
    ['starts what it pays for', 0.12, 1],
  ])('a job with a limit on money %s', async (_, maxCostUsd, starts) => {
    const slow = '1x{cpu: 1, memory: 4GiB, name: slow, usdPerHour: 0.03}';
    const three = [{ prefer: { labels: { machine: ['fast'] } }, weight: 0, slowdown: 3 }];
    const made = simulatedJob('a', 0, [3600], soft({ preferences: three, expectedRuntimeS: seconds(3600) }));
    const job = { ...made, spec: { ...made.spec, maxCostUsd: usd(maxCostUsd) } };
    expect(placesOf(await eventsOn(slow, [job], 'greedy'))).toHaveLength(starts);
  });
});
