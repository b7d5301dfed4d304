import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CommanderError } from 'commander';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { marketCommand } from '../../../lib/cli/commands/market-commands.ts';
import { readMarket } from '../../../lib/drivers/local/market/file.ts';
import { FEATURES } from '../../../lib/market/features/names.ts';

const DAY = 86_400_000;
let dir = '';
let market = '';
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-dataset-'));
  market = join(dir, 'm.ebbmarket');
  await command('generate', '-o', market, '--seed', '7', '--days', '20', '--regime', 'spiky');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function command(...args: string[]): Promise<string> {
  let out = '';
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      out += chunk.toString();
      done();
    },
  });
  const program = marketCommand({ stdout: sink, stderr: new Writable() });
  // Without this, what commander refuses would end the test's process; errors are written by lib/cli/main.ts.
  for (const c of [program, ...program.commands]) c.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(args, { from: 'user' });
  return out;
}

interface Manifest {
  readonly rows: number;
  readonly features: readonly string[];
  readonly splits: readonly string[];
  readonly bidKinds: readonly string[];
  readonly pools: readonly string[];
  readonly sha256: Readonly<Record<string, string>>;
  readonly sources: readonly {
    readonly testFrom: string;
    readonly validationFrom: string;
    readonly unseen: readonly string[];
    readonly rows: Readonly<Record<string, number>>;
    readonly leftOut: Readonly<Record<string, number>>;
  }[];
}

async function make(name: string, ...options: string[]): Promise<{ folder: string; manifest: Manifest }> {
  const folder = join(dir, name);
  const out = await command('dataset', market, '-o', folder, '--instants', '600', '--json', ...options);
  return { folder, manifest: JSON.parse(out) as Manifest };
}

/** Reads a NumPy file by its specification: magic, version, header length, header, numbers. */
function npy(path: string): { readonly shape: readonly number[]; readonly values: number[] } {
  const bytes = readFileSync(path);
  expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x93NUMPY\x01\x00');
  const length = bytes.readUInt16LE(8);
  expect((10 + length) % 64).toBe(0);
  const header = bytes.subarray(10, 10 + length).toString('latin1');
  expect(header.endsWith('\n')).toBe(true);
  const [, descr = '', shape = ''] =
    /^\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([^)]*)\), \} *\n$/.exec(header) ?? [];
  const body = new DataView(bytes.buffer, bytes.byteOffset + 10 + length, bytes.length - 10 - length);
  const size = Number(descr.slice(2));
  const read = (at: number): number =>
    descr === '<f8'
      ? body.getFloat64(at, true)
      : descr === '<f4'
        ? body.getFloat32(at, true)
        : descr === '<i4'
          ? body.getInt32(at, true)
          : body.getUint8(at);
  return {
    shape: shape
      .split(',')
      .filter((s) => s.trim() !== '')
      .map(Number),
    values: Array.from({ length: body.byteLength / size }, (_, i) => read(i * size)),
  };
}

describe('ebb market dataset', () => {
  it('writes one row per bid, with what came of it as a look through the prices tells it', async () => {
    const { folder, manifest } = await make('rows');
    const column = (name: string): number[] => npy(join(folder, `${name}.npy`)).values;
    expect(npy(join(folder, 'features.npy')).shape).toEqual([manifest.rows, FEATURES.length]);
    expect(manifest.features).toEqual(FEATURES);
    expect(manifest.rows).toBeGreaterThan(500);
    const [features, loss, watched, at, bid, pool] = [
      column('features'),
      column('lossS'),
      column('watchedS'),
      column('atMs'),
      column('bidUsd'),
      column('pool'),
    ];
    const { trace } = readMarket(market);
    const seen = { lost: 0, lived: 0 };
    for (let row = 0; row < manifest.rows; row++) {
      const name = manifest.pools[pool[row] ?? -1];
      const { id } = trace.pools.find(
        (p) => `${p.type.name}/${p.zone}/spot` === `${name}/spot` && p.option === 'spot',
      ) ?? { id: null };
      if (id === null) throw new Error(`no pool ${name}`);
      const prices = trace.prices(id);
      const steps = [...prices.atMs].map((atMs, i) => ({ atMs, usd: prices.usdPerHour[i] ?? NaN }));
      const now = at[row] ?? NaN;
      const price = steps.findLast((s) => s.atMs <= now)?.usd ?? NaN;
      expect(features[row * FEATURES.length]).toBeCloseTo(price, 6);
      expect(bid[row]).toBeGreaterThan(price * (1 - 1e-6));
      const passed = steps.find((s) => s.atMs > now && s.atMs <= now + DAY && s.usd > (bid[row] ?? NaN) + 1e-6);
      if (loss[row] === Infinity) {
        seen.lived++;
        expect(passed).toBe(undefined);
      } else {
        seen.lost++;
        expect((now + 1000 * (loss[row] ?? NaN)) / 1000).toBeLessThanOrEqual((passed?.atMs ?? Infinity) / 1000 + 0.01);
        expect(steps.some((s) => Math.abs(s.atMs - now - 1000 * (loss[row] ?? NaN)) < 10 && s.usd > price)).toBe(true);
        expect(watched[row]).toBe(loss[row]);
      }
      expect(watched[row]).toBeLessThanOrEqual(86_400);
    }
    expect(seen.lost).toBeGreaterThan(50);
    expect(seen.lived).toBeGreaterThan(50);
  });

  it.each([
    ['prices', 1],
    ['times', 0],
  ])('asks at random %s of a history', async (points, share) => {
    const { folder, manifest } = await make(`at-${points}`, '--points', points);
    const { trace } = readMarket(market);
    const published = new Set(
      trace.pools.flatMap((p) =>
        p.option === 'spot' ? [...trace.prices(p.id).atMs].map((atMs) => `${p.type.name}/${p.zone} ${atMs}`) : [],
      ),
    );
    const [at = [], pool = []] = ['atMs', 'pool'].map((name) => npy(join(folder, `${name}.npy`)).values);
    const hits = at.filter((atMs, row) => published.has(`${manifest.pools[pool[row] ?? -1]} ${atMs}`));
    expect(at.length).toBeGreaterThan(500);
    expect(hits.length / at.length).toBeCloseTo(share, 2);
  });

  it('keeps ranges of time and pools apart, and a day between', async () => {
    const { folder, manifest } = await make('splits', '--unseen', '0.3');
    const [source] = manifest.sources;
    const [validationMs, testMs] = [Date.parse(source?.validationFrom ?? ''), Date.parse(source?.testFrom ?? '')];
    const [at, split, pool] = ['atMs', 'split', 'pool'].map((name) => npy(join(folder, `${name}.npy`)).values);
    const unseen = new Set(source?.unseen);
    expect(unseen.size).toBe(8);
    const counted: Record<string, number> = { train: 0, validation: 0, test: 0, unseen: 0 };
    for (let row = 0; row < manifest.rows; row++) {
      const name = manifest.splits[split?.[row] ?? -1] ?? '';
      counted[name] = (counted[name] ?? NaN) + 1;
      const atMs = at?.[row] ?? NaN;
      expect(unseen.has(manifest.pools[pool?.[row] ?? -1] ?? '')).toBe(name === 'unseen');
      if (name === 'train') expect(atMs + DAY).toBeLessThanOrEqual(validationMs);
      else if (name === 'validation') expect(atMs >= validationMs - 1 && atMs + DAY <= testMs).toBe(true);
      else expect(atMs).toBeGreaterThanOrEqual(testMs - 1);
    }
    expect(counted).toEqual(source?.rows);
    expect(Object.values(counted).every((n) => n > 20)).toBe(true);
    expect(source?.leftOut['near-a-boundary']).toBeGreaterThan(0);
  });

  it('is the same again with the same seed, and another with another', async () => {
    const [a, b, c] = [await make('a'), await make('b'), await make('c', '--seed', '2')];
    expect(b.manifest.sha256).toEqual(a.manifest.sha256);
    expect(c.manifest.sha256['features']).not.toBe(a.manifest.sha256['features']);
  });

  it('leaves nothing behind when it fails, and overwrites nothing', async () => {
    const flat = join(dir, 'flat.csv');
    writeFileSync(flat, 'timestamp_utc,az,instance_type,price_usd_hr\n2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03\n');
    const cases: [string[], string][] = [
      [[flat, '-o', join(dir, 'none'), '--cache', join(dir, 'cache')], 'market.invalid'],
      [[market, '-o', dir], 'usage'],
      [[market, '-o', join(dir, 'none'), '--train', '0.7', '--validation', '0.4'], 'usage'],
      [[market, '-o', join(dir, 'none'), '--unseen', '2'], 'commander.invalidArgument'],
      [['/nowhere', '-o', join(dir, 'none')], 'market.invalid'],
    ];
    for (const [args, code] of cases) {
      const error: unknown = await command('dataset', ...args).catch((e: unknown) => e);
      expect(error instanceof EbbError || error instanceof CommanderError ? error.code : error).toBe(code);
    }
    expect(existsSync(join(dir, 'none'))).toBe(false);
    expect(readdirSync(dir).filter((name) => name.endsWith('.partial'))).toEqual([]);
  });
});
