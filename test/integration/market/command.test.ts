import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { marketCommand } from '../../../lib/cli/commands/market-commands.ts';
import { readMarket } from '../../../lib/drivers/local/market/file.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-market-cli-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Runs `ebb market ARGS` with its output kept. */
async function market(...args: string[]): Promise<{ out: string; err: string }> {
  const kept = { out: '', err: '' };
  const to = (key: 'out' | 'err'): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        kept[key] += chunk.toString();
        done();
      },
    });
  await marketCommand({ stdout: to('out'), stderr: to('err') }).parseAsync(args, { from: 'user' });
  return kept;
}

describe('ebb market', () => {
  it('generates a file that show reads back', async () => {
    const path = join(dir, 'a.ebbmarket');
    const made = JSON.parse((await market('generate', '-o', path, '--seed', '7', '--days', '9', '--json')).out) as {
      markets: number;
      priceChanges: number;
    };
    expect(made.markets).toBe(27);
    expect(readMarket(path).trace.name).toBe('generated-7');
    const shown = JSON.parse((await market('show', path, '--json')).out) as { pools: { changes: number }[] };
    expect(shown.pools).toHaveLength(27);
    expect(shown.pools.reduce((sum, p) => sum + p.changes, 0)).toBe(made.priceChanges);
  });

  it('shows a table and one chart per pool, with the on-demand price', async () => {
    const { out } = await market('show', '--pool', 'm5.2xlarge', '--charts', '2');
    expect(out).toContain('m5.2xlarge/us-east-1b');
    expect(out).not.toContain('c5.large');
    expect(out.match(/price and on-demand line \(\$0\.384\/h\)/g)).toHaveLength(2);
  });

  it('draws SVG and a page without outside references, for light and dark', async () => {
    const [svg, html] = [join(dir, 'm.svg'), join(dir, 'm.html')];
    await market('show', '--charts', '2', '--svg', svg, '--html', html);
    expect(readFileSync(svg, 'utf8')).toMatch(/^<svg [\s\S]*on-demand price[\s\S]*<\/svg>$/);
    const page = readFileSync(html, 'utf8');
    expect(page.match(/<svg /g)).toHaveLength(2);
    expect(page).toContain('prefers-color-scheme: dark');
    expect(page.replaceAll('http://www.w3.org/', '')).not.toMatch(/https?:\/\/|<script|<link/);
  });

  it('imports, naming each bad line and closing with a summary', async () => {
    const source = join(dir, 'p.csv');
    writeFileSync(
      source,
      'timestamp_utc,az,instance_type,price_usd_hr\n2016-04-01T00:00:00Z,us-east-1a,m4.large,0.03\nbroken\n',
    );
    const { out, err } = await market('import', source, '-o', join(dir, 'p.ebbmarket'));
    expect(err).toBe('p.csv:3: a row has 4 columns; got 1: broken\n');
    expect(out).toContain('1 market, 1 price change');
    expect(out).toContain('1 row used from 1 file, 1 bad');
  });

  it('lists the formats it reads', async () => {
    expect((await market('formats')).out).toContain('describe-spot-price-history');
    expect((await market('convert', '--json')).out).toContain('"price CSV"');
  });

  it.each([
    [['show', '--pool', 'nothing'], 'not-found'],
    [['show', '--from', '2030-01-01'], 'usage'],
    [['show', '/nowhere'], 'market.invalid'],
    [['import', '/nowhere', '-o', '/tmp/never.ebbmarket'], 'market.invalid'],
    [['generate', '-o', '/tmp/never.ebbmarket', '--types', 'z9.huge'], 'usage'],
    [['generate', '-o', '/tmp/never.ebbmarket', '--regime', 'wild'], 'usage'],
  ])('refuses %j with %s', async (args, code) => {
    const error: unknown = await market(...args).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(EbbError);
    expect((error as EbbError).code).toBe(code);
  });
});
