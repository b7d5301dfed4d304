/**
 * Why the market took an instance, or launched none, is kept with it: what is learned later cannot tell it from prices
 * that are gone.
 */
import { beforeAll, expect, it } from '@jest/globals';
import type { Instance } from '../../../lib/domain/instance.ts';
import { epochMs, seconds } from '../../../lib/kernel/units.ts';
import { isSpotPool } from '../../../lib/domain/pool.ts';
import { job, spec, stage } from '../../support/builders.ts';
import { EngineBench, work } from '../../support/engine-bench.ts';
import { onOffMarket, START } from '../../support/on-off-market.ts';

const SAVES = { signal: 'SIGTERM', graceS: seconds(60), everyS: null } as const;
/** Without capacity from the second hour to the third, dear from the fifth to the sixth. */
const trace = onOffMarket(
  [
    [0, 2],
    [3, 60],
  ],
  { dearHours: [5, 6] },
);
let instances: readonly Instance[] = [];

beforeAll(async () => {
  const bench = new EngineBench({ trace, startMs: epochMs(START), config: { bidDeltas: [0.1] } });
  const stages = [stage({ env: work(8 * 3600), expectedRuntimeS: seconds(8 * 3600), checkpoint: SAVES })];
  await bench.submit([job({ submittedMs: epochMs(START), spec: spec({ stages }) })]);
  await bench.drive({ withinS: 24 * 3600 });
  instances = (await bench.store.instances(null, 1000, null)).items.filter((i) => isSpotPool(i.pool));
});

const HOUR = 3_600_000;
const between = (from: number, to: number) => (i: Instance) =>
  Number(i.endedMs) >= START + from * HOUR && Number(i.endedMs) < START + to * HOUR;

it('is kept with what is interrupted, by its cause', () => {
  const taken = instances.filter((i) => i.endCause === 'interrupted');
  expect(taken.filter(between(2, 3)).map((i) => i.marketCause)).toEqual(['capacity']);
  expect(taken.filter(between(5, 6)).map((i) => i.marketCause)).toEqual(['price']);
});

it('is kept with a launch that was refused, and with nothing else', () => {
  const refused = instances.filter((i) => i.endCause === 'failed');
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.every((i) => i.marketCause === 'capacity' && i.launchedMs === null)).toBe(true);
  const released = instances.filter((i) => i.endCause === 'released');
  expect(released.length).toBeGreaterThan(0);
  for (const i of released) expect(i).not.toHaveProperty('marketCause');
});
