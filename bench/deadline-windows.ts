/** Windows of bench/deadline-on-spot.ts, and their split into tuning and report. */
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { EbbError } from '../lib/kernel/errors.ts';
import { raw } from '../lib/kernel/units.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import type { MarketTrace } from '../lib/market/trace.ts';

export interface Series {
  readonly path: string;
  readonly name: string;
  readonly trace: MarketTrace;
  readonly startMs: number;
  readonly endMs: number;
}

export interface Window {
  readonly series: Series;
  readonly startMs: number;
}

export async function seriesIn(folder: string, cacheDir: string): Promise<{ found: Series[]; left: string[] }> {
  const found: Series[] = [];
  const left: string[] = [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.json'));
  for (const file of files.sort()) {
    const path = join(folder, file);
    try {
      const { trace } = await openMarket(path, cacheDir);
      const name = `${basename(dirname(file))} ${basename(file, '.json')}`;
      found.push({ path, name, trace, startMs: raw(trace.startMs), endMs: raw(trace.endMs) });
    } catch (error) {
      if (!(error instanceof EbbError)) throw error;
      left.push(`${file}: ${error.message.split('\n')[0]}`);
    }
  }
  return { found, left };
}

/** Series of one type and time in several zones, which make one market. Nothing is tuned on the last half of them. */
const MARKETS: Readonly<Record<string, { readonly under: string; readonly name: RegExp }>> = {
  '3 zones, CPU': { under: 'preemption/1-node/aws-04-19-2023', name: /_intel_64/ },
  '2 zones, V100': { under: 'availability/1-node/aws-10-26-2022', name: /_v100_1\./ },
  '4 zones, V100': { under: 'preemption/1-node/aws-04-22-2023', name: /_v100_1\./ },
  '3 zones, 4 x V100': { under: 'preemption/4-node/aws-08-03-2023', name: /_v100_1\./ },
};

/** Markets of several zones, tuned ones first, so that `windowsOf` takes the halves of those alone. */
export async function marketsIn(folder: string, cacheDir: string): Promise<Series[]> {
  const found: Series[] = [];
  for (const [name, { under, name: pattern }] of Object.entries(MARKETS)) {
    // The form of a series is told by its folder's name.
    const path = join(cacheDir, 'markets', String(found.length), basename(dirname(under)));
    mkdirSync(join(path, basename(under)), { recursive: true });
    for (const file of readdirSync(join(folder, under)).filter((f) => pattern.test(f)))
      copyFileSync(join(folder, under, file), join(path, basename(under), file));
    const { trace } = await openMarket(path, cacheDir);
    found.push({ path, name, trace, startMs: raw(trace.startMs), endMs: raw(trace.endMs) });
  }
  return found;
}

/**
 * Windows of one part. Tuning has the first half of the windows on the first half of each series; the report has the
 * rest.
 */
export function windowsOf(series: readonly Series[], part: string, windowMs: number): Window[] {
  return series.flatMap((s, index) => {
    const count = Math.floor((s.endMs - s.startMs) / windowMs);
    const all = Array.from({ length: count }, (_, n) => ({ series: s, startMs: s.startMs + n * windowMs }));
    const tuned = index < series.length / 2 ? Math.ceil(count / 2) : 0;
    return part === 'all' ? all : part === 'tune' ? all.slice(0, tuned) : all.slice(tuned);
  });
}
