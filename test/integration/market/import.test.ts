import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { poolKey } from '../../../lib/domain/pool.ts';
import { generateMarket } from '../../../lib/market/generate.ts';
import { builtInCatalogue } from '../../../lib/market/catalogue.ts';
import type { MarketTrace } from '../../../lib/market/trace.ts';
import { readMarket, writeMarket } from '../../../lib/drivers/local/market/file.ts';
import { importMarket, openMarket } from '../../../lib/drivers/local/market/import.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-market-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let serial = 0;
function file(name: string, content: string | Buffer): string {
  const path = join(dir, String(serial++), name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}
const target = (): string => join(dir, `${serial++}.ebbmarket`);
const refused = async (work: Promise<unknown>): Promise<EbbError> => {
  const error: unknown = await work.then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(EbbError);
  return error as EbbError;
};
function thrown(work: () => unknown): EbbError {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(EbbError);
    return error as EbbError;
  }
  throw new Error('nothing was thrown');
}
const steps = (trace: MarketTrace, type: string, zone: string) => {
  const { atMs, usdPerHour } = trace.prices(poolKey(type, zone, 'spot'));
  return [...atMs].map((t, i) => [new Date(t).toISOString(), usdPerHour[i]]);
};

const HEADER = 'timestamp_utc,az,instance_type,price_usd_hr';

describe('price CSV', () => {
  it('sorts what comes unsorted, keeps the last of two rows of one instant, reports each bad line', async () => {
    const source = file(
      'prices.csv',
      [
        HEADER,
        '2016-04-02T00:00:00Z,us-east-1a,m4.large,0.05', // 2
        '2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03',
        'yesterday,us-east-1a,m4.large,0.03', // 4
        '2016-04-01T00:00:00Z,Mars,m4.large,0.03',
        '2016-04-01T00:00:00Z,us-east-1a,m4.large,free',
        '2016-04-01T00:00:00Z,us-east-1a,m4.large,-1',
        '2016-04-01T00:00:00Z,us-east-1a,m4.large', // 8
        '2016-04-01T00:00:00Z,us-east-1a,q9.large,0.03',
        '',
        '2016-04-02T00:00:00Z,us-east-1a,m4.large,0.06', // 11
        '2016-04-01T12:00:00+02:00,us-east-1b,m4.large,0.012345',
      ].join('\n'),
    );
    const path = target();
    const summary = await importMarket(source, path);
    expect(summary).toMatchObject({ markets: 2, rows: 4, priceChanges: 3, replaced: 1, badLines: 6 });
    expect(summary.issues.map((i) => [i.at, i.message])).toEqual([
      ['prices.csv:4', "a time is an ISO-8601 instant with offset; got 'yesterday'"],
      ['prices.csv:5', "a zone is named like us-east-1a; got 'Mars'"],
      ['prices.csv:6', "a price is a number of US dollars above 0; got 'free'"],
      ['prices.csv:7', "a price is a number of US dollars above 0; got '-1'"],
      ['prices.csv:8', 'a row has 4 columns; got 3: 2016-04-01T00:00:00Z,us-east-1a,m4.large'],
      ['prices.csv:9', "no such instance type in the catalogue (give one with --catalogue); got 'q9.large'"],
    ]);
    const { trace } = readMarket(path);
    expect(steps(trace, 'm4.large', 'us-east-1a')).toEqual([
      ['2016-04-01T00:00:00.000Z', 0.03],
      ['2016-04-02T00:00:00.000Z', 0.06],
    ]);
    expect(steps(trace, 'm4.large', 'us-east-1b')).toEqual([['2016-04-01T10:00:00.000Z', 0.012345]]);
    // On-demand price of April 2016, not of today.
    expect(trace.pools.map((p) => [p.id, raw(p.onDemandUsdPerHour)])).toEqual(
      ['us-east-1a', 'us-east-1b'].flatMap((zone) =>
        (['on-demand', 'spot'] as const).map((option) => [`m4.large/${zone}/${option}`, 0.12]),
      ),
    );
  });

  it('reports at most maxIssues and counts all', async () => {
    const bad = Array.from({ length: 50 }, () => 'x,us-east-1a,m4.large,1');
    const source = file('p.csv', [HEADER, ...bad, '2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03'].join('\r\n'));
    const summary = await importMarket(source, target(), { maxIssues: 3 });
    expect([summary.badLines, summary.issues.length, summary.rows]).toEqual([50, 3, 1]);
  });

  it('keeps what a truncated gzip file still gives, and says so', async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => {
      const at = new Date(Date.UTC(2016, 3, 1) + i * 61_000).toISOString();
      return `${at},us-east-1a,m4.large,${(0.01 + ((i * 7919) % 1000) / 1e5).toFixed(5)}`;
    });
    const source = file('p.csv.gz', gzipSync([HEADER, ...lines].join('\n')));
    truncateSync(source, Math.floor(readFileSync(source).length / 2));
    const summary = await importMarket(source, target());
    expect(summary.rows).toBeGreaterThan(1000);
    expect(summary.rows).toBeLessThan(20_000);
    expect(summary.issues[0]?.message).toContain('the file is damaged');
  });

  it('fails when nothing is usable, leaving nothing behind', async () => {
    const source = file('p.csv', `${HEADER}\nx,y,z,1\n`);
    const path = target();
    const error = await refused(importMarket(source, path));
    expect(error.code).toBe('market.invalid');
    expect(error.facts.issues).toHaveLength(1);
    expect(readdirSync(dir).filter((f) => f.includes('partial') || join(dir, f) === path)).toEqual([]);
  });

  it('fails on data of no known format and on a path that does not exist', async () => {
    expect((await refused(importMarket(file('a.txt', 'hello'), target()))).code).toBe('market.invalid');
    expect((await refused(importMarket(join(dir, 'absent'), target()))).message).toContain('no such file');
  });

  it('takes on-demand prices from the folder', async () => {
    const prices = file('p.csv', `${HEADER}\n2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03\n`);
    writeFileSync(
      join(dirname(prices), 'on_demand.csv'),
      'az,instance_type,on_demand_usd_hr\nus-east-1a,m4.large,0.777\n',
    );
    writeFileSync(join(dirname(prices), 'README.md'), 'notes');
    const path = target();
    expect(await importMarket(dirname(prices), path)).toMatchObject({ files: 2, ignoredFiles: 1, badLines: 0 });
    expect(readMarket(path).trace.pools.map((p) => raw(p.onDemandUsdPerHour))).toEqual([0.777, 0.777]);
  });
});

describe('AWS price history', () => {
  const record = (over: Record<string, unknown>): object => ({
    AvailabilityZone: 'eu-west-1b',
    InstanceType: 'c5.large',
    ProductDescription: 'Linux/UNIX',
    SpotPrice: '0.034000',
    Timestamp: '2021-05-01T00:00:00+00:00',
    ...over,
  });

  it('reads several documents of one file, leaves other products out, reports bad records', async () => {
    const documents = [
      { SpotPriceHistory: [record({}), record({ ProductDescription: 'Windows' })] },
      {
        NextToken: '',
        SpotPriceHistory: [
          record({ Timestamp: '2021-05-02T00:00:00.000Z', SpotPrice: '0.04' }),
          record({ SpotPrice: null }),
          7,
        ],
      },
    ];
    const path = target();
    const source = file('history.json', documents.map((d) => JSON.stringify(d, null, 2)).join('\n'));
    const summary = await importMarket(source, path);
    expect(summary).toMatchObject({ rows: 2, badLines: 2, skipped: { 'product Windows, not Linux/UNIX': 1 } });
    expect(summary.issues.map((i) => i.at)).toEqual(['history.json#4', 'history.json#5']);
    expect(steps(readMarket(path).trace, 'c5.large', 'eu-west-1b')).toEqual([
      ['2021-05-01T00:00:00.000Z', 0.034],
      ['2021-05-02T00:00:00.000Z', 0.04],
    ]);
  });

  it('keeps what a cut-off file holds before its last pieces', async () => {
    const records = Array.from({ length: 4000 }, (_, i) =>
      record({ Timestamp: new Date(Date.UTC(2021, 4, 1) + i * 60_000).toISOString() }),
    );
    const text = JSON.stringify({ SpotPriceHistory: records });
    const summary = await importMarket(file('h.json', text.slice(0, text.length / 2)), target());
    expect(summary.rows).toBeGreaterThan(1000);
    expect(summary.rows).toBeLessThanOrEqual(2000);
    expect(summary.issues).toMatchObject([{ at: 'h.json' }]);
  });

  it('says that a file is damaged when nothing of it can be used', async () => {
    const error = await refused(importMarket(file('h.json', '{"SpotPriceHistory": [{oops'), target()));
    expect(error.facts.issues).toMatchObject([{ at: 'h.json' }]);
  });
});

describe('availability series', () => {
  const series = (data: readonly number[]): string => JSON.stringify({ metadata: { gap_seconds: 600 }, data });
  const put = (path: string, data: readonly number[]): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), series(data));
  };

  it('takes zone, type, date and node count from the path, and says that prices are assumed', async () => {
    put('s/preemption/4-node/aws-08-03-2023/us-west-2c_v100_1.json', [4, 3, 4, 4, 0]);
    put('s/preemption/1-node/gcp-04-30-2023/us-central1-a_t2d-60.json', [1]);
    const path = target();
    const summary = await importMarket(join(dir, 's'), path);
    expect(summary.badLines).toBe(1);
    const { trace, meta } = readMarket(path);
    const at = (tick: number): number => Date.UTC(2023, 7, 3) + tick * 600_000;
    const steps = trace.availability(poolKey('p3.2xlarge', 'us-west-2c', 'spot'));
    expect([...(steps?.atMs ?? [])]).toEqual([at(0), at(1), at(2), at(4)]);
    expect([...(steps?.available ?? [])]).toEqual([1, 0, 1, 0]);
    expect([raw(trace.startMs), raw(trace.endMs)]).toEqual([at(0), at(5)]);
    expect([...trace.prices(poolKey('p3.2xlarge', 'us-west-2c', 'spot')).usdPerHour]).toEqual([0.918]);
    expect(meta.notes.join(' ')).toContain('assumed');
  });

  it("takes Google's series for the nearest type of EC2", async () => {
    put('g/preemption/1-node/gcp-04-30-2023/us-central1-a_c3-88.json', [0, 1, 1]);
    const path = target();
    expect((await importMarket(join(dir, 'g'), path)).badLines).toBe(0);
    const steps = readMarket(path).trace.availability(poolKey('c7i.24xlarge', 'us-central1-a', 'spot'));
    expect([...(steps?.available ?? [])]).toEqual([0, 1, 0]);
  });
});

describe('market file', () => {
  const generated = (): MarketTrace => {
    const at = epochMs(Date.UTC(2026, 0, 5));
    const markets = ['m5.large', 'c6g.xlarge'].flatMap((type, i) => {
      const entry = builtInCatalogue().entry(type, at);
      return entry === null
        ? []
        : [{ entry, zone: 'us-east-1a', regime: i === 0 ? ('spiky' as const) : ('smooth' as const) }];
    });
    return generateMarket({ name: 'round', seed: 5, startMs: at, days: 5, markets, temper: 'turbulent' });
  };
  const plain = (trace: MarketTrace): unknown => ({
    name: trace.name,
    span: [raw(trace.startMs), raw(trace.endMs)],
    pools: trace.pools.map((p) => ({ ...p, prices: trace.prices(p.id), availability: trace.availability(p.id) })),
  });

  it('gives back what was written', () => {
    const trace = generated();
    const path = target();
    const written = writeMarket(path, trace, { name: trace.name, source: 'test', notes: ['a', 'b'] });
    expect(written.priceChanges).toBeGreaterThan(50);
    expect(written.availabilityChanges).toBeGreaterThan(5);
    const { trace: read, meta } = readMarket(path);
    expect(plain(read)).toEqual(plain(trace));
    expect(meta).toEqual({ name: 'round', source: 'test', notes: ['a', 'b'] });
  });

  it.each([
    ['of a newer version', (db: DatabaseSync) => db.exec('PRAGMA user_version = 99'), 'newer version'],
    ['that is another database', (db: DatabaseSync) => db.exec('PRAGMA application_id = 7'), 'not a market file'],
    ['without its tables', (db: DatabaseSync) => db.exec('DROP TABLE price_change'), 'cannot be read'],
  ])('refuses a file %s', (_what, spoil, message) => {
    const path = target();
    writeMarket(path, generated(), { name: 'x', source: 'test', notes: [] });
    const db = new DatabaseSync(path);
    spoil(db);
    db.close();
    const error = thrown(() => readMarket(path));
    expect([error.code, error.message.includes(message)]).toEqual(['market.invalid', true]);
  });

  it('refuses damaged, foreign and missing files', () => {
    const path = target();
    writeMarket(path, generated(), { name: 'x', source: 'test', notes: [] });
    truncateSync(path, 5000);
    for (const bad of [path, file('x.ebbmarket', 'text'), file('empty.ebbmarket', ''), join(dir, 'absent.ebbmarket')]) {
      expect(thrown(() => readMarket(bad)).code).toBe('market.invalid');
    }
  });

  it('imports raw data once per content', async () => {
    const source = file('p.csv', `${HEADER}\n2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03\n`);
    const cache = join(dir, 'cache');
    const first = await openMarket(source, cache);
    const second = await openMarket(source, cache);
    expect([first.imported?.rows, second.imported]).toEqual([1, null]);
    expect(plain(second.trace)).toEqual(plain(first.trace));
    writeFileSync(source, `${HEADER}\n2016-04-01T00:00:00Z,us-east-1a,m4.large,0.04\n`);
    const third = await openMarket(source, cache);
    expect(steps(third.trace, 'm4.large', 'us-east-1a')).toEqual([['2016-04-01T00:00:00.000Z', 0.04]]);
    expect(readdirSync(cache)).toHaveLength(2);
    for (const name of readdirSync(cache)) truncateSync(join(cache, name), 1000);
    const fourth = await openMarket(source, cache);
    expect([fourth.imported?.rows, plain(fourth.trace)]).toEqual([1, plain(third.trace)]);
  });
});

const data = process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../../../shared/data');
const real = join(data, 'spot-prices-us-east-1-2016');
if (!existsSync(real)) console.warn(`skipped: no ${real} (set EBB_DATA_DIR)`);

(existsSync(real) ? describe : describe.skip)('real market of 2016', () => {
  it('comes through whole', async () => {
    const path = target();
    const summary = await importMarket(real, path);
    expect(summary).toMatchObject({ markets: 50, priceChanges: 426_745, badLines: 0, replaced: 0 });
    const { trace } = readMarket(path);
    // One market's prices by another way: unpacked and split by hand.
    const { gunzipSync } = await import('node:zlib');
    const text = gunzipSync(readFileSync(join(real, 'spot_price_changes.csv.gz'))).toString('utf8');
    const lines = text.split('\n').filter((l) => l.includes(',us-east-1b,d2.2xlarge,'));
    const expected = lines.map((l) => [Date.parse(l.split(',')[0] ?? ''), Number(l.split(',')[3])]);
    const { atMs, usdPerHour } = trace.prices(poolKey('d2.2xlarge', 'us-east-1b', 'spot'));
    const digest = (rows: unknown): string => createHash('sha256').update(JSON.stringify(rows)).digest('hex');
    expect(lines.length).toBeGreaterThan(500);
    expect(digest([...atMs].map((t, i) => [t, usdPerHour[i]]))).toBe(digest(expected));
  }, 180_000);
});
