import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { ordersOf } from '../../../../lib/cli/simulation/make-orders.ts';
import { writeWorldRecord } from '../../../../lib/drivers/local/market/world-record.ts';
import type { SimulateOptions } from '../../../../lib/cli/flags/simulate-flags.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-orders-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));
const options = (over: Partial<SimulateOptions> = {}): SimulateOptions => ({
  windows: 1,
  seeds: 1,
  setup: 0,
  migrationRate: 160,
  dir: '.ebb',
  ...over,
});
const orders = async (over: Partial<SimulateOptions> = {}) => (await ordersOf(options(over), cwd)).orders;

describe('simulations that are asked for', () => {
  it('begin at the same time on every generated market, whatever the seed', async () => {
    const several = await orders({ seeds: 3 });
    expect(new Set(several.map((o) => o.fromMs)).size).toBe(1);
    expect(several.map((o) => o.marketSeed)).toEqual([39, 40, 41]);
    expect(several.every((o) => o.ownMarkets)).toBe(true);
    expect((await orders())[0]?.fromMs).toBe(several[0]?.fromMs);
  });

  it('have windows from where one would begin to the end of the market', async () => {
    const [first, second] = await orders({ windows: 2 });
    const [begin, end] = [Date.UTC(2026, 0, 14, 10, 40), Date.UTC(2026, 0, 19)];
    expect([first?.fromMs, second?.fromMs]).toEqual([begin, (begin + end) / 2]);
    const bounded = await orders({ windows: 2, from: Date.UTC(2026, 0, 10), to: Date.UTC(2026, 0, 12) });
    expect(bounded.map((o) => o.fromMs)).toEqual([Date.UTC(2026, 0, 10), Date.UTC(2026, 0, 11)]);
  });

  it('take the generated workload by its word alone', async () => {
    expect((await orders({ workload: 'synthetic' }))[0]?.workload).toMatchObject({ path: 'synthetic' });
    expect((await orders({ workload: 'jobs' }))[0]?.workload).toMatchObject({ path: join(cwd, 'jobs') });
  });

  it('take the preset where it is given as a setting, but not two of them', async () => {
    expect((await orders({ set: { preset: 'greedy' } }))[0]?.preset).toBe('greedy');
    await expect(orders({ preset: 'greedy', set: { preset: 'greedy' } })).rejects.toThrow(
      '--preset and --set preset= both',
    );
  });

  it('are not more than can be held', async () => {
    await expect(orders({ windows: 5000, compare: ['greedy', 'fleet', 'on-demand'] })).rejects.toThrow('too many');
  });
});

describe('a replay', () => {
  const replay = 'recorded';
  const dir = mkdtempSync(join(cwd, replay));
  const record = { wallMs: 0, engineMs: 0, speed: 40, seed: 3, preset: 'greedy', vcpus: 6 };
  writeWorldRecord(dir, { version: 1, market: null, fromMs: null, settings: { billing: 'per-hour' }, ...record });

  it('is on the terms of the record', async () => {
    const [order] = await orders({ replay: dir });
    expect(order).toMatchObject({ preset: 'greedy', vcpus: 6, marketSeed: 3, ownMarkets: false, fromMs: null });
    // Wall time of 0.25 s between decisions, and 0.2 s to start a process, 40 times as fast.
    expect(order?.minGapS).toBe(10);
    expect(order?.config).toMatchObject({ billing: 'per-hour', restoreS: expect.any(Number) });
  });

  it('is otherwise where that is asked for', async () => {
    const [order] = await orders({
      replay: dir,
      preset: 'fleet',
      vcpus: 100,
      gap: 60,
      setup: 500,
      set: { billing: 'per-second' },
    });
    expect(order).toMatchObject({ preset: 'fleet', vcpus: 100, minGapS: 60, setupS: 500 });
    expect(order?.config).toMatchObject({ billing: 'per-second', restoreS: 500 });
  });

  it('says which market is gone, and how to name another', async () => {
    const moved = mkdtempSync(join(cwd, 'moved'));
    const market = join(cwd, 'gone.ebbmarket');
    writeWorldRecord(moved, { version: 1, market, fromMs: null, settings: {}, ...record });
    await expect(orders({ replay: moved })).rejects.toMatchObject({
      facts: { got: market, next: expect.stringContaining('--market') },
    });
  });

  it.each([
    [{ scale: 2 }, '--scale'],
    [{ jobsLimit: 3 }, '--jobs-limit'],
    [{ workloadOption: { seed: 2 } }, '--workload-option'],
    [{ windows: 2 }, '--windows'],
    [{ workload: 'jobs' }, '--workload'],
  ])('refuses %o', async (over, flag) => {
    await expect(orders({ replay: dir, ...over })).rejects.toThrow(flag);
  });
});
