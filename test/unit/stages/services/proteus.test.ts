import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../../lib/domain/config.ts';
import { capUsd, type Pool } from '../../../../lib/domain/pool.ts';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, plus, seconds, usdPerHour } from '../../../../lib/kernel/units.ts';
import type { FootprintContext } from '../../../../lib/policy/services/contracts.ts';
import { proteus } from '../../../../lib/stages/services/proteus.ts';
import { pool as poolOf } from '../../../support/builders.ts';

const NOW = epochMs(Date.UTC(2017, 0, 23, 12));
const CALM = poolOf({ type: 'calm.large', cpus: 2, onDemand: 0.2 });
const WILD = poolOf({ type: 'wild.large', cpus: 2, onDemand: 0.2 });

/** The wild pool loses half of what is bid for near its price within the hour, and costs a fifth more. */
function contextOf(needed: number, held: readonly (readonly [Pool, ageS: number])[] = []): FootprintContext {
  const price = new Map([
    [CALM.id, 0.05],
    [WILD.id, 0.06],
  ]);
  return {
    nowMs: NOW,
    config: schedulerConfig.parse({}),
    market: {
      interruption: (pool, bid) => ({
        horizonS: Float64Array.of(3600),
        pInterrupted: Float64Array.of(pool === WILD && capUsd(bid) < 0.065 ? 0.5 : 0.001),
        reason: 'a formula',
      }),
      expectedPrice: () => null,
      correlation: () => 0,
    },
    pools: [CALM, WILD].map((pool) => ({
      pool,
      quote: usdPerHour(price.get(pool.id) ?? NaN),
      open: true,
      closedReason: null,
    })),
    hourlyUsd: () => [],
    held: held.map(([pool, ageS], i) => ({
      id: instanceId(`i-${i}`),
      pool,
      bid: usdPerHour(0.2),
      launchedMs: plus(NOW, seconds(-ageS)),
    })),
    demand: { utility: (vcpus) => Math.min(1, vcpus / needed), target: 0.95 },
  };
}

describe('Proteus', () => {
  it('buys all it needs where an hour is likely to be free', () => {
    const { buy } = proteus(contextOf(7));
    expect(buy).toHaveLength(1);
    expect(buy[0]).toMatchObject({ pool: WILD.id, count: 4 });
    expect(capUsd(buy[0]?.bid ?? 'uncapped')).toBeLessThan(0.065);
  });

  it('buys the lower price where nothing is refunded', () => {
    const context = contextOf(7);
    const { buy } = proteus({ ...context, config: { ...context.config, refundRule: 'none' } });
    expect(buy[0]).toMatchObject({ pool: CALM.id, count: 4 });
  });

  it('ends instances with their window, and buys their replacements before that', () => {
    const { buy, release } = proteus(
      contextOf(6, [
        [CALM, 3600],
        [CALM, 3590],
        [CALM, 60],
      ]),
    );
    expect(release.map((r) => r.instance)).toEqual([instanceId('i-0')]);
    expect(buy[0]?.count).toBe(2);
  });

  it('gives back what is too much, the end of whose window is nearest', () => {
    const { buy, release } = proteus(
      contextOf(2, [
        [CALM, 600],
        [WILD, 1200],
      ]),
    );
    expect(buy).toEqual([]);
    expect(release.map((r) => r.instance)).toEqual([instanceId('i-1')]);
  });
});
