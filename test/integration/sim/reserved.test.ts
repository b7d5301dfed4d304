import { describe, expect, it } from '@jest/globals';
import { marketsOf, traceOf } from '../../../lib/market/price-steps.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { calmTrace, START_MS } from '../../support/mixed-workload.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

/** Capacity that is reserved, and cheaper to use than any other. */

const RESERVED = poolKey('c5.xlarge', 'b', 'reserved');
const trace = traceOf(
  calmTrace,
  marketsOf(calmTrace).map((market) => ({ ...market, reserved: { instances: 2, usdPerHour: 0.01 } })),
);

describe('reserved capacity', () => {
  it('is a pool of the market, at its own price whatever the time', () => {
    const market = replayMarket(trace);
    expect(market.pools().map((p) => [p.option, p.reservedInstances])).toEqual([
      ['on-demand', undefined],
      ['reserved', 2],
      ['spot', undefined],
    ]);
    expect(market.quote(RESERVED, START_MS)).toBe(0.01);
    expect(market.quote(RESERVED, trace.endMs)).toBe(0.01);
    expect(marketsOf(trace)).toMatchObject([{ reserved: { instances: 2, usdPerHour: 0.01 } }]);
    // A market without any has none afterwards either.
    expect(marketsOf(calmTrace)[0]).not.toHaveProperty('reserved');
  });

  it('is used first, no further than it reaches, and the rest runs elsewhere', async () => {
    const jobs = [
      simulatedJob(
        'j',
        0,
        Array.from({ length: 16 }, () => 3600),
      ),
    ];
    const { events, ended } = await simulated(jobs, { trace, market: (now) => replayMarket(trace, now) });
    expect(ended).toBe('done');
    expect(events.filter((e) => e.type === 'job-succeeded')).toHaveLength(1);
    const up = events.filter((e) => e.type === 'instance-ready');
    const reserved = up.filter((e) => e.text.includes(RESERVED));
    expect(reserved).toHaveLength(2);
    expect(up.length).toBeGreaterThan(2);
  });

  it('is not asked for again while all of it is in use, however long ago it refused', async () => {
    const hours = (n: number): number[] => Array.from({ length: 16 }, () => n * 3600);
    const jobs = [simulatedJob('first', 0, hours(3)), simulatedJob('second', 3600, hours(1))];
    const { events, ended } = await simulated(jobs, { trace, market: (now) => replayMarket(trace, now) });
    expect(ended).toBe('done');
    const asked = events.filter((e) => e.type === 'instance-requested' && e.text.includes(RESERVED));
    const lateMs = raw(START_MS) + 3600_000;
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((e) => raw(e.atMs) >= lateMs)).toEqual([]);
  });

  it('that costs nothing to use is used first too', async () => {
    const free = traceOf(
      calmTrace,
      marketsOf(calmTrace).map((market) => ({ ...market, reserved: { instances: 2, usdPerHour: 0 } })),
    );
    const jobs = [simulatedJob('j', 0, [3600, 3600, 3600, 3600])];
    const { events, ended } = await simulated(jobs, { trace: free, market: (now) => replayMarket(free, now) });
    expect(ended).toBe('done');
    const up = events.filter((e) => e.type === 'instance-ready');
    expect(up.length).toBeGreaterThan(0);
    expect(up.every((e) => e.text.includes(RESERVED))).toBe(true);
  });
});
