import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../../../lib/kernel/errors.ts';
import { raw } from '../../../../../lib/kernel/units.ts';
import { enterWorld, knownWorld, vcpuLimit } from '../../../../../lib/drivers/local/market/world.ts';
import { defaultMarket } from '../../../../../lib/market/default-market.ts';
import { writeMarket } from '../../../../../lib/drivers/local/market/file.ts';
import type { Earlier, GivenWorld } from '../../../../../lib/drivers/local/market/world-record.ts';
import { smallMarket } from '../../../../support/generated-market.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-world-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const folder = (): string => mkdtempSync(join(scratch, 'd-'));

const NOTHING: GivenWorld = { market: null, fromMs: null, speed: null, seed: null, preset: null, config: {} };
const NEW: Earlier = { live: false, open: false, lastMs: null };
/** The earlier engine was killed: jobs are open, instances live. */
const KILLED = (lastMs: number): Earlier => ({ live: true, open: true, lastMs });
/** The earlier engine was stopped with Ctrl-C: jobs are open, every instance was given back. */
const STOPPED = (lastMs: number): Earlier => ({ live: false, open: true, lastMs });
const OVER = (lastMs: number): Earlier => ({ live: false, open: false, lastMs });

const STARTED: GivenWorld = {
  ...NOTHING,
  speed: 60,
  seed: 7,
  config: { maxLateProbability: 0.01, refundRule: 'none' },
};

async function refusal(attempt: Promise<unknown>): Promise<EbbError> {
  const error: unknown = await attempt.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EbbError)) throw new Error(`expected a refusal, got ${String(error)}`);
  return error;
}

describe('a directory that an engine enters again', () => {
  it('has defaults when nothing was given and nothing came before', async () => {
    const { record } = await enterWorld(folder(), NOTHING, NEW);
    expect(record).toMatchObject({ market: null, fromMs: null, seed: 39, preset: 'ebbtide', speed: 1, settings: {} });
  });

  it('has the settings of its preset, in both threads, and records those that were given', async () => {
    const dir = folder();
    const presets = { mine: { extends: 'ebbtide', settings: { maxLateProbability: 1, slotS: 60 } } };
    const { config, record } = await enterWorld(dir, { ...NOTHING, preset: 'mine', config: { presets } }, NEW);
    expect(config).toMatchObject({ maxLateProbability: 1, slotS: 60 });
    expect(record.settings).toEqual({ presets });
    expect((await knownWorld(dir)).config).toEqual(config);
  });

  it.each([
    ['killed', KILLED],
    ['stopped', STOPPED],
  ])('goes on as it was opened when its engine was %s and nothing is given again', async (_, earlier) => {
    const dir = folder();
    const first = await enterWorld(dir, STARTED, NEW);
    const again = await enterWorld(dir, NOTHING, earlier(first.record.engineMs + 60_000));
    expect(again.record).toMatchObject({ seed: 7, speed: 60, settings: STARTED.config });
    expect(again.config).toEqual(first.config);
    expect(again.trace.name).toBe(first.trace.name);
    // And the engine's thread, which reads what is written down, sees the same.
    expect((await knownWorld(dir)).config).toEqual(first.config);
  });

  it('keeps the clock of live instances, and lets a stopped one begin where it ended', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, STARTED, NEW);
    const killed = await enterWorld(dir, NOTHING, KILLED(record.engineMs + 60_000));
    expect(killed.record).toEqual(record);
    const stopped = await enterWorld(dir, NOTHING, STOPPED(record.engineMs + 60_000));
    expect(stopped.record.engineMs).toBe(record.engineMs + 60_000);
  });

  it('keeps a vCPU limit that was given until the work is done, and lets it be changed', async () => {
    const dir = folder();
    const first = await enterWorld(dir, { ...NOTHING, vcpus: 5 }, NEW);
    expect(first.limits).toMatchObject({ vcpus: 5, raisedBy: expect.stringContaining('--vcpus') });
    expect((await knownWorld(dir)).limits.vcpus).toBe(5);
    const { engineMs } = first.record;
    expect((await enterWorld(dir, NOTHING, KILLED(engineMs))).limits.vcpus).toBe(5);
    expect((await enterWorld(dir, { ...NOTHING, vcpus: 7 }, STOPPED(engineMs))).limits.vcpus).toBe(7);
    expect((await enterWorld(dir, NOTHING, OVER(engineMs))).limits.vcpus).toBe(vcpuLimit(defaultMarket()));
  });

  it('goes on with the disk budget that it was given until its work is over', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, { ...NOTHING, diskBytes: 5e9 }, NEW);
    const { engineMs } = record;
    const again = async (given: GivenWorld, earlier: Earlier) =>
      (await enterWorld(dir, given, earlier)).record.diskBytes;
    expect(record.diskBytes).toBe(5e9);
    expect(await again(NOTHING, KILLED(engineMs))).toBe(5e9);
    expect(await again({ ...NOTHING, diskBytes: 7e9 }, STOPPED(engineMs))).toBe(7e9);
    expect(await again(NOTHING, OVER(engineMs))).toBeUndefined();
  });

  it('may keep its history for another time while work is unfinished: that makes room on the disk', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, STARTED, NEW);
    const shorter = { ...NOTHING, config: { historyDays: 7 } };
    const again = await enterWorld(dir, shorter, KILLED(record.engineMs));
    expect(again.config).toMatchObject({ ...STARTED.config, historyDays: 7 });
    expect((await enterWorld(dir, NOTHING, STOPPED(record.engineMs))).config.historyDays).toBe(7);
  });

  it('accepts the same options given again, defaults in force included', async () => {
    const dir = folder();
    const { record, config } = await enterWorld(dir, STARTED, NEW);
    const same: GivenWorld = {
      ...STARTED,
      preset: 'ebbtide',
      config: { ...STARTED.config, cyclePeriodS: config.cyclePeriodS },
    };
    expect((await enterWorld(dir, same, KILLED(record.engineMs))).record).toEqual(record);
  });

  it.each<[string, Partial<GivenWorld>, string]>([
    ['--market', { market: '/elsewhere' }, 'no --market'],
    ['--from', { fromMs: Date.UTC(2026, 5, 1) }, 'no --from'],
    ['--seed', { seed: 8 }, '--seed 7'],
    ['--speed', { speed: 30 }, '--speed 60'],
    ['--set maxLateProbability', { config: { maxLateProbability: 0.2 } }, '--set maxLateProbability=0.01'],
    ['--set slotS', { config: { slotS: 5 } }, '--set slotS=600'],
  ])('refuses another %s while work is unfinished, and leaves everything as it was', async (option, other, kept) => {
    const dir = folder();
    const { record } = await enterWorld(dir, STARTED, NEW);
    const before = readFileSync(join(dir, 'world.json'), 'utf8');
    const error = await refusal(enterWorld(dir, { ...NOTHING, ...other }, KILLED(record.engineMs)));
    expect(error.code).toBe('conflict');
    expect(error.facts.got).toContain(option);
    expect(error.facts.allowed).toBe(kept);
    expect(error.facts.next).toContain(`leave ${option} out`);
    expect(readFileSync(join(dir, 'world.json'), 'utf8')).toBe(before);
  });

  it('names every option that contradicts at once', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, STARTED, NEW);
    const error = await refusal(enterWorld(dir, { ...NOTHING, seed: 8, speed: 30 }, KILLED(record.engineMs)));
    expect(error.facts.got).toBe('--seed 8, --speed 30');
    expect(error.facts.allowed).toBe('--seed 7, --speed 60');
  });

  it('may run at another speed once no instance lives, and remembers that', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, STARTED, NEW);
    const slower = await enterWorld(dir, { ...NOTHING, speed: 30 }, STOPPED(record.engineMs));
    expect(slower.record.speed).toBe(30);
    expect((await enterWorld(dir, NOTHING, KILLED(record.engineMs))).record.speed).toBe(30);
  });

  it('forgets the options once all work is over, but for the market', async () => {
    const dir = folder();
    const { record, trace } = await enterWorld(dir, STARTED, NEW);
    const next = await enterWorld(dir, NOTHING, OVER(record.engineMs + 1000));
    expect(next.record).toMatchObject({ seed: 7, preset: 'ebbtide', speed: 1, settings: {} });
    expect(next.trace.name).toBe(trace.name);
    const other = await enterWorld(dir, { ...NOTHING, seed: 8 }, OVER(record.engineMs + 2000));
    expect(other.record.seed).toBe(8);
  });

  it('stays on a market that was given, from where it began there, until another is given', async () => {
    const dir = folder();
    const { trace } = smallMarket(1);
    const [market, next] = ['one', 'two'].map((name) => {
      const path = join(dir, `${name}.ebbmarket`);
      writeMarket(path, trace, { name, source: 'generated', notes: [] });
      return path;
    });
    const fromMs = raw(trace.startMs) + 3_600_000;
    const first = await enterWorld(dir, { ...NOTHING, market: market ?? '', fromMs }, NEW);
    const later = OVER(first.record.engineMs + 1000);
    expect((await enterWorld(dir, NOTHING, later)).record).toMatchObject({ market, fromMs });
    expect((await enterWorld(dir, { ...NOTHING, seed: 8 }, later)).record).toMatchObject({ market, seed: 8 });
    expect((await enterWorld(dir, { ...NOTHING, market: next ?? '' }, later)).record).toMatchObject({
      market: next,
      fromMs: null,
    });
    rmSync(next ?? '');
    const error = await refusal(enterWorld(dir, NOTHING, later));
    expect(error.facts.next).toContain('name another one by --market');
  });

  it('reads what an earlier version wrote, which kept less', async () => {
    const dir = folder();
    const { record } = await enterWorld(dir, { ...NOTHING, speed: 60 }, NEW);
    const { version, market, seed, wallMs, engineMs, speed } = record;
    writeFileSync(join(dir, 'world.json'), JSON.stringify({ version, market, seed, wallMs, engineMs, speed }));
    expect((await enterWorld(dir, NOTHING, KILLED(engineMs))).record).toEqual(record);
  });

  it.each(['', '{"version":1', '{"version":2}'])('says which file is broken when world.json is %j', async (text) => {
    const dir = folder();
    writeFileSync(join(dir, 'world.json'), text);
    const error = await refusal(enterWorld(dir, NOTHING, NEW));
    expect(error.code).toBe('store.corrupt');
    expect(error.facts.got).toContain('world.json');
  });
});

describe('the clock of a directory', () => {
  it('never goes back, and stands inside the market at the least', async () => {
    const dir = folder();
    const { trace } = await enterWorld(dir, NOTHING, NEW);
    const long = Date.UTC(2000, 0, 1);
    expect((await enterWorld(dir, NOTHING, OVER(long))).record.engineMs).toBeGreaterThanOrEqual(raw(trace.startMs));
  });

  it('refuses another market that ends before it, rather than run where there are no prices', async () => {
    const dir = folder();
    const market = join(dir, 'early.ebbmarket');
    const { trace } = smallMarket(1);
    writeMarket(market, trace, { name: 'early', source: 'generated', notes: [] });
    const late = OVER(raw(trace.endMs) + 1);
    await enterWorld(dir, NOTHING, NEW);
    const error = await refusal(enterWorld(dir, { ...NOTHING, market }, late));
    expect(error.code).toBe('conflict');
    expect(error.facts.next).toContain('another --dir');
    // A directory that replays this very market already may go on after its end: on demand is still sold.
    const own = folder();
    await enterWorld(own, { ...NOTHING, market }, NEW);
    expect((await enterWorld(own, { ...NOTHING, market }, late)).record.engineMs).toBe(late.lastMs);
  });
});
