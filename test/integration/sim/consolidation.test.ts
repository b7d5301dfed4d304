import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { PresetSpec } from '../../../lib/domain/preset-spec.ts';
import { epochMs, raw, seconds } from '../../../lib/kernel/units.ts';
import { traceOf, type SpotMarket } from '../../../lib/market/price-steps.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import type { EventRecord } from '../../../lib/ports/store.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { pool, resources } from '../../support/builders.ts';
import { SAVES, START_MS } from '../../support/mixed-workload.ts';
import { zones } from '../../support/observed-run.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const HOUR_S = 3600;
const DAY_MS = 86_400_000;

/** Two zones whose prices change places every minute, one five times as dear as the other. */
function flipping(): MarketTrace {
  const startMs = raw(START_MS) - DAY_MS;
  const minutes = Array.from({ length: 2 * 24 * 60 }, (_, i) => startMs + i * 60_000);
  const markets = ['a', 'b'].map((zone, z): SpotMarket => ({
    type: pool().type,
    zone,
    onDemandUsdPerHour: 0.17,
    prices: {
      atMs: Float64Array.from(minutes),
      usdPerHour: Float64Array.from(minutes, (_, i) => (i % 2 === z ? 0.03 : 0.15)),
    },
    availability: { atMs: Float64Array.of(startMs), available: Uint8Array.of(1) },
  }));
  return traceOf({ name: 'flipping', startMs: epochMs(startMs), endMs: epochMs(startMs + 2 * DAY_MS) }, markets);
}

const STAYS: PresetSpec = { extends: 'greedy', move: 'guard-and-return' };

/** A task by the name of its attempt, which ends in a number. */
const taskOf = ({ data }: EventRecord): string => String(data['attempt']).replace(/\.\d+$/, '');
const gapsS = (of: readonly EventRecord[]): readonly number[] =>
  of.slice(1).map((e, i) => (raw(e.atMs) - raw(of[i]?.atMs ?? e.atMs)) / 1000);

async function runOf(jobs: Parameters<typeof simulated>[0], trace: MarketTrace, own: PresetSpec) {
  const { stages, asks } = presetNamed('own', { own });
  const { events, ended, collected } = await simulated(jobs, {
    trace,
    market: (now) => replayMarket(trace, now),
    config: schedulerConfig.parse({}),
    deciders: () => ({ name: 'own', stages, asks }),
  });
  expect(ended).toBe('done');
  const { work, wasted, speculative, moved: changing, idle } = collected.usd;
  const moved = events.filter((e) => e.type === 'attempt-moved');
  return {
    moves: moved.length,
    /** Shortest time between two moves of one task, seconds. */
    closestS: Math.min(...[...Map.groupBy(moved, taskOf).values()].flatMap(gapsS)),
    succeeded: events.filter((e) => e.type === 'attempt-succeeded').length,
    usd: work + wasted + speculative + changing + idle,
  };
}

const whole = { checkpoint: SAVES, resources: resources(1) };

describe('consolidation', () => {
  it('gives back instances that short tasks have left, at a lower bill and with all work done', async () => {
    // Six jobs fill three machines in pairs of two short tasks and one long one, which are left over.
    const jobs = Array.from({ length: 3 }, (_, i) =>
      simulatedJob(`j-${i}`, i, [4 * HOUR_S, 1200, 1200, 1200], {
        stage: { ...whole, expectedRuntimeS: seconds(2 * HOUR_S) },
      }),
    );
    const trace = zones({});
    const stays = await runOf(jobs, trace, STAYS);
    const moves = await runOf(jobs, trace, { extends: 'greedy' });
    expect(stays.moves).toBe(0);
    expect(moves.moves).toBeGreaterThan(0);
    expect(moves.moves).toBeLessThanOrEqual(3);
    expect(moves.succeeded).toBe(stays.succeeded);
    expect(moves.usd).toBeLessThan(0.7 * stays.usd);
  });

  it('moves no task more than once an hour, whatever prices do, and pays no more for it', async () => {
    const hours = 6;
    const jobs = Array.from({ length: 6 }, (_, i) =>
      simulatedJob(`j-${i}`, 60 * i, [hours * HOUR_S, 2 * HOUR_S], {
        stage: { ...whole, expectedRuntimeS: seconds(hours * HOUR_S) },
      }),
    );
    const trace = flipping();
    const stays = await runOf(jobs, trace, STAYS);
    const moves = await runOf(jobs, trace, { extends: 'greedy' });
    expect(moves.succeeded).toBe(12);
    expect(moves.moves).toBeGreaterThan(6);
    expect(moves.closestS).toBeGreaterThanOrEqual(HOUR_S);
    expect(moves.moves).toBeLessThanOrEqual(12 * hours);
    expect(moves.usd).toBeLessThanOrEqual(1.02 * stays.usd);
  });
});
