/** Windows of bench/deadline-on-spot.ts, and their split into tuning and report. */
import { readdirSync } from 'node:fs';
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
