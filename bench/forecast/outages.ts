/**
 * Series of availability as samples for a forecast of capacity: an instance is in a pool that has capacity; when does that end?
 * Features are of what was seen until then, of the pool and of its neighbours in zone and type. Beside each sample stands what the
 * program's own forecast says (lib/market/forecast/hazard.ts), which has watched one instance in each pool all the time.
 */
import { join } from 'node:path';
import { mkdirSync, writeFileSync } from 'node:fs';
import { randomStream } from '../../lib/kernel/random.ts';
import { raw, seconds } from '../../lib/kernel/units.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import type { Pool } from '../../lib/domain/pool.ts';
import { NpyWriter } from '../../lib/local/npy-file.ts';
import { heldOut, LABEL_HORIZONS_S, SPLITS, WATCHED_MS, type Split } from '../../lib/market/dataset.ts';
import { calendarAt } from '../../lib/market/features/calendar.ts';
import { CapacityEvidence, survivesCapacity } from '../../lib/market/forecast/hazard.ts';
import { indexAt } from '../../lib/market/steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../../lib/market/trace.ts';

const HOUR_MS = 3_600_000;
const SHARES = { train: 0.6, validation: 0.2 } as const;
const UNSEEN_SHARE = 0.2;
const WINDOWS_H = [1, 6, 24, 168] as const;

export const OUTAGE_FEATURES = [
  ...WINDOWS_H.map((h) => `upShare${h}h`),
  ...WINDOWS_H.map((h) => `losses${h}hLog`),
  'upSinceHLog',
  'lastOutageHLog',
  'knownHLog',
  'weekdaySin',
  'weekdayCos',
  'timeOfDaySin',
  'timeOfDayCos',
  'workingNewYork',
  'workingLosAngeles',
  'workingBerlin',
  'zoneUpShare',
  'zoneLosses6h',
  'typeUpShare',
  'typeLosses6h',
] as const;

export interface Source {
  readonly name: string;
  readonly trace: MarketTrace;
}

/** A pool's ups and downs, asked about the past of an instant only. */
class Series {
  readonly pool: Pool;
  readonly #steps: AvailabilitySteps;
  readonly #startMs: number;
  /** Up-time before each step, ms, and losses up to and with it. */
  readonly #upMs: Float64Array;
  readonly #losses: Float64Array;

  constructor(pool: Pool, steps: AvailabilitySteps) {
    this.pool = pool;
    this.#steps = steps;
    this.#startMs = steps.atMs[0] ?? 0;
    this.#upMs = new Float64Array(steps.atMs.length);
    this.#losses = new Float64Array(steps.atMs.length);
    for (let i = 1; i < steps.atMs.length; i++) {
      const wasUp = steps.available[i - 1] === 1;
      const lasted = (steps.atMs[i] ?? 0) - (steps.atMs[i - 1] ?? 0);
      this.#upMs[i] = (this.#upMs[i - 1] ?? 0) + (wasUp ? lasted : 0);
      this.#losses[i] = (this.#losses[i - 1] ?? 0) + (wasUp && steps.available[i] === 0 ? 1 : 0);
    }
  }

  get startMs(): number {
    return this.#startMs;
  }

  isUp(ms: number): boolean {
    return this.#steps.available[indexAt(this.#steps.atMs, ms)] === 1;
  }

  upUntil(ms: number): number {
    const i = indexAt(this.#steps.atMs, ms);
    if (i < 0) return 0;
    return (this.#upMs[i] ?? 0) + (this.#steps.available[i] === 1 ? ms - (this.#steps.atMs[i] ?? ms) : 0);
  }

  lossesUntil(ms: number): number {
    return this.#losses[indexAt(this.#steps.atMs, ms)] ?? 0;
  }

  upShare(ms: number, hours: number): number {
    const from = Math.max(this.#startMs, ms - hours * HOUR_MS);
    return ms > from ? (this.upUntil(ms) - this.upUntil(from)) / (ms - from) : 1;
  }

  losses(ms: number, hours: number): number {
    return this.lossesUntil(ms) - this.lossesUntil(ms - hours * HOUR_MS);
  }

  /** How long it has been up, and how long the outage before lasted, ms; an outage that was not seen is 0. */
  stretch(ms: number): { readonly upMs: number; readonly outageMs: number } {
    let i = indexAt(this.#steps.atMs, ms);
    while (i > 0 && this.#steps.available[i - 1] === 1) i--;
    const beganMs = this.#steps.atMs[i] ?? ms;
    let down = i;
    while (down > 0 && this.#steps.available[down - 1] === 0) down--;
    return { upMs: ms - beganMs, outageMs: beganMs - (this.#steps.atMs[down] ?? beganMs) };
  }

  /** When capacity next ends; Infinity when that is not seen. */
  lostMs(ms: number): number {
    for (let i = indexAt(this.#steps.atMs, ms) + 1; i < this.#steps.atMs.length; i++) {
      if (this.#steps.available[i] === 0) return this.#steps.atMs[i] ?? Infinity;
    }
    return Infinity;
  }
}

function featuresOf(of: Series, all: readonly Series[], ms: number): Float32Array {
  const { upMs, outageMs } = of.stretch(ms);
  const { working, ...circles } = calendarAt(ms);
  const others = all.filter((s) => s !== of && s.startMs <= ms);
  const zone = others.filter((s) => s.pool.zone === of.pool.zone);
  const type = others.filter((s) => s.pool.type.name === of.pool.type.name);
  const hours = (x: number): number => Math.log1p(x / HOUR_MS);
  const values: Record<string, number> = {
    upSinceHLog: hours(upMs),
    lastOutageHLog: hours(outageMs),
    knownHLog: hours(ms - of.startMs),
    ...circles,
    workingNewYork: working[0],
    workingLosAngeles: working[1],
    workingBerlin: working[2],
    zoneUpShare: mean(zone, (s) => (s.isUp(ms) ? 1 : 0)),
    zoneLosses6h: mean(zone, (s) => s.losses(ms, 6)),
    typeUpShare: mean(type, (s) => (s.isUp(ms) ? 1 : 0)),
    typeLosses6h: mean(type, (s) => s.losses(ms, 6)),
  };
  for (const h of WINDOWS_H) {
    values[`upShare${h}h`] = of.upShare(ms, h);
    values[`losses${h}hLog`] = Math.log1p(of.losses(ms, h));
  }
  return Float32Array.from(OUTAGE_FEATURES, (name) => values[name] ?? NaN);
}

/** -1 where there is nobody. */
const mean = (list: readonly Series[], of: (s: Series) => number): number =>
  list.length === 0 ? -1 : list.reduce((sum, s) => sum + of(s), 0) / list.length;

const nameOf = ({ pool }: Series): string => `${pool.type.name}/${pool.zone}`;

export interface Drawing {
  readonly seed: number;
  readonly instantsPerSeries: number;
}

/** Writes a data set as `ebb market dataset` does, with these features and no bid, and `empirical.npy` beside it. */
export function writeOutages(folder: string, sources: readonly Source[], drawing: Drawing): { rows: number } {
  mkdirSync(folder, { recursive: true });
  const series = sources.map(({ trace }) =>
    trace.pools.flatMap((pool) => {
      const steps = pool.option === 'spot' ? trace.availability(pool.id) : null;
      return steps === null ? [] : [new Series(pool, steps)];
    }),
  );
  const names = [...new Set(series.flat().map(nameOf))];
  const writers = writersIn(folder);
  // By type and zone, in all sources that have it.
  const unseen = heldOut(names, UNSEEN_SHARE, randomStream(drawing.seed, 'outages/unseen'));
  let rows = 0;
  const summaries = sources.map((source, i) => {
    const ranges = rangesOf(source.trace);
    for (const sample of samplesOf(series[i] ?? [], ranges, { drawing, unseen })) {
      rows++;
      writers.features.pushAll(sample.features);
      writers.empirical.pushAll(sample.empirical);
      writers.lossS.push(sample.lossS);
      writers.watchedS.push(sample.watchedS);
      writers.atMs.push(sample.atMs);
      writers.bidUsd.push(NaN);
      writers.pool.push(names.indexOf(nameOf(sample.series)));
      writers.source.push(i);
      writers.split.push(SPLITS.indexOf(sample.split));
      writers.bidKind.push(0);
    }
    const iso = (ms: number): string => new Date(ms).toISOString();
    return {
      name: source.name,
      sha256: '',
      from: iso(ranges.startMs),
      validationFrom: iso(ranges.validationMs),
      testFrom: iso(ranges.testMs),
      to: iso(ranges.endMs),
    };
  });
  const sha256 = Object.fromEntries(Object.entries(writers).map(([name, writer]) => [name, writer.close()]));
  const manifest = {
    version: 1,
    risk: 'capacity',
    rows,
    plan: { seed: drawing.seed, instants: drawing.instantsPerSeries, bidsPerInstant: 1 },
    horizonsS: LABEL_HORIZONS_S,
    features: OUTAGE_FEATURES,
    kinds: { pool: OUTAGE_FEATURES.length, sequence: 0, bid: 0 },
    splits: SPLITS,
    bidKinds: ['none'],
    pools: names,
    unseen: [...unseen],
    sha256,
    sources: summaries,
  };
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return { rows };
}

const writersIn = (folder: string) => ({
  features: new NpyWriter(join(folder, 'features.npy'), 'float32', OUTAGE_FEATURES.length),
  empirical: new NpyWriter(join(folder, 'empirical.npy'), 'float32', LABEL_HORIZONS_S.length),
  lossS: new NpyWriter(join(folder, 'lossS.npy'), 'float32'),
  watchedS: new NpyWriter(join(folder, 'watchedS.npy'), 'float32'),
  atMs: new NpyWriter(join(folder, 'atMs.npy'), 'float64'),
  bidUsd: new NpyWriter(join(folder, 'bidUsd.npy'), 'float32'),
  pool: new NpyWriter(join(folder, 'pool.npy'), 'int32'),
  source: new NpyWriter(join(folder, 'source.npy'), 'uint8'),
  split: new NpyWriter(join(folder, 'split.npy'), 'uint8'),
  bidKind: new NpyWriter(join(folder, 'bidKind.npy'), 'uint8'),
});

interface Ranges {
  readonly startMs: number;
  readonly validationMs: number;
  readonly testMs: number;
  readonly endMs: number;
}

function rangesOf(trace: MarketTrace): Ranges {
  const [startMs, endMs] = [raw(trace.startMs), raw(trace.endMs)];
  const at = (share: number): number => startMs + share * (endMs - startMs);
  return { startMs, endMs, validationMs: at(SHARES.train), testMs: at(SHARES.train + SHARES.validation) };
}

interface Sample {
  readonly series: Series;
  readonly split: Split;
  readonly atMs: number;
  readonly lossS: number;
  readonly watchedS: number;
  readonly features: Float32Array;
  readonly empirical: Float32Array;
}

function* samplesOf(
  all: readonly Series[],
  ranges: Ranges,
  { drawing, unseen }: { readonly drawing: Drawing; readonly unseen: ReadonlySet<string> },
): Generator<Sample> {
  const config = schedulerConfig.parse({});
  const evidence = new CapacityEvidence();
  let seenMs = ranges.startMs;
  for (const { series, atMs } of instantsOf(all, ranges, drawing)) {
    for (const s of all) {
      const [upMs, losses] = [s.upUntil(atMs) - s.upUntil(seenMs), s.lossesUntil(atMs) - s.lossesUntil(seenMs)];
      evidence.observe(s.pool.id, seconds(upMs / 1000), losses);
    }
    seenMs = atMs;
    const split = splitOf(atMs, ranges, unseen.has(nameOf(series)));
    if (split === null || !series.isUp(atMs)) continue;
    const lossS = (series.lostMs(atMs) - atMs) / 1000;
    const watchedS = Math.min(lossS, WATCHED_MS / 1000, (ranges.endMs - atMs) / 1000);
    const posterior = evidence.posterior(series.pool.id, config);
    yield {
      series,
      split,
      atMs,
      lossS: lossS <= WATCHED_MS / 1000 ? lossS : Infinity,
      watchedS,
      features: featuresOf(series, all, atMs),
      empirical: Float32Array.from(LABEL_HORIZONS_S, (h) => 1 - survivesCapacity(posterior, seconds(h))),
    };
  }
}

function splitOf(atMs: number, { validationMs, testMs }: Ranges, isUnseen: boolean): Split | null {
  if (isUnseen) return atMs >= testMs ? 'unseen' : null;
  if (atMs >= testMs) return 'test';
  const [split, end] = atMs < validationMs ? (['train', validationMs] as const) : (['validation', testMs] as const);
  return atMs + WATCHED_MS <= end ? split : null;
}

function instantsOf(all: readonly Series[], { startMs, endMs }: Ranges, { seed, instantsPerSeries }: Drawing) {
  return all
    .flatMap((series) => {
      const random = randomStream(seed, `outages/instants/${series.pool.id}/${series.startMs}`);
      return Array.from({ length: instantsPerSeries }, () => ({
        series,
        atMs: Math.floor(startMs + random() * (endMs - startMs)),
      }));
    })
    .sort((a, b) => a.atMs - b.atMs);
}
