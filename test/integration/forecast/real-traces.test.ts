import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { HORIZONS_S, PriceSurvival } from '../../../lib/market/forecast/survival.ts';

const HOUR = 3_600_000;
const WEEK = 7 * 24 * HOUR;
const folder = process.env['EBB_DATA_DIR'] ?? '../shared/data';
const file = join(folder, 'spot-prices-us-east-1-2016', 'spot_price_changes.csv.gz');
const present = existsSync(file);
if (!present) console.log(`skipped: no ${file}; set EBB_DATA_DIR to the folder that has spot-prices-us-east-1-2016`);

interface Trace {
  readonly atMs: Float64Array;
  readonly usdPerHour: Float64Array;
}

function countUpTo(atMs: Float64Array, t: number): number {
  let low = 0;
  let high = atMs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((atMs[middle] ?? Infinity) <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

let loaded: Trace[] | null = null;

/** The first 40 markets of the file, as bench/forecast.ts takes them; read once. */
function traces(): Trace[] {
  if (loaded !== null) return loaded;
  const rows = new Map<string, { at: number[]; usd: number[] }>();
  for (const line of gunzipSync(readFileSync(file)).toString('utf8').split('\n').slice(1)) {
    const [time = '', az = '', type = '', price = ''] = line.split(',');
    if (time === '') continue;
    const row = rows.get(`${type}/${az}`) ?? { at: [], usd: [] };
    rows.set(`${type}/${az}`, row);
    row.at.push(Date.parse(time));
    row.usd.push(Number(price));
  }
  loaded = [...rows.values()]
    .slice(0, 40)
    .map(({ at, usd }) => ({ atMs: Float64Array.from(at), usdPerHour: Float64Array.from(usd) }));
  return loaded;
}

(present ? describe : describe.skip)('forecast on the spot market of 2016', () => {
  it.each([
    [0.0001, 3600],
    [0.01, 8 * 3600],
    [0.1, 8 * 3600],
  ])('a bid %d USD above the price, %d s ahead: calibrated, and better than one number for all', (delta, horizonS) => {
    let n = 0;
    let said = 0;
    let was = 0;
    let squares = 0;
    for (const { atMs, usdPerHour } of traces()) {
      const first = atMs[0] ?? 0;
      const last = atMs.at(-1) ?? 0;
      const survival = new PriceSurvival(delta, WEEK);
      for (let now = first + WEEK; now < last - 24 * HOUR; now += 12 * HOUR) {
        const upTo = countUpTo(atMs, now);
        survival.advance({ atMs: atMs.subarray(0, upTo), usdPerHour: usdPerHour.subarray(0, upTo) }, now);
        const p = survival.curve()?.p[HORIZONS_S.indexOf(horizonS)] ?? NaN;
        const bid = (usdPerHour[upTo - 1] ?? 0) + delta;
        const end = countUpTo(atMs, now + horizonS * 1000);
        const lost = usdPerHour.subarray(upTo, end).some((price) => price > bid) ? 1 : 0;
        n++;
        said += p;
        was += lost;
        squares += (p - lost) ** 2;
      }
    }
    const base = was / n;
    expect(n).toBeGreaterThan(1000);
    expect(Math.abs(said / n - base)).toBeLessThan(0.04);
    expect(squares / n).toBeLessThan(base * (1 - base));
  });
});
