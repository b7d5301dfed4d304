import { createHash } from 'node:crypto';
import { EbbError } from '../../../kernel/errors.ts';
import { isoOf } from '../../../kernel/units.ts';
import {
  BID_KINDS,
  DELTA_USD,
  LABEL_HORIZONS_S,
  sampleMarket,
  SPLITS,
  type Sample,
  type Sampling,
  type SamplingPlan,
  type Split,
} from '../../../market/dataset.ts';
import {
  BID_FEATURES,
  FEATURES,
  FEATURE_WIDTH,
  POOL_FEATURES,
  SEQUENCE_FEATURES,
} from '../../../market/features/names.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import {
  closeColumns,
  columnsIn,
  DATASET_VERSION,
  told,
  writeWhole,
  type ColumnTypes,
  type DatasetProgress,
} from './dataset-columns.ts';
import type { SourceOfRows } from '../../../models/evaluation/dataset-rows.ts';
import { onDemandUsdOf } from '../../../domain/pool.ts';

const COLUMNS = {
  features: 'float32',
  lossS: 'float32',
  watchedS: 'float32',
  atMs: 'float64',
  bidUsd: 'float32',
  pool: 'int32',
  source: 'uint8',
  split: 'uint8',
  bidKind: 'uint8',
} as const satisfies ColumnTypes;
type Column = keyof typeof COLUMNS;

export interface DatasetSource {
  readonly name: string;
  readonly trace: MarketTrace;
}

/** Written as JSON beside the columns; times are ISO 8601. */
export interface DatasetManifest {
  readonly version: number;
  readonly rows: number;
  readonly plan: SamplingPlan;
  readonly deltaUsd: typeof DELTA_USD;
  readonly horizonsS: readonly number[];
  readonly features: readonly string[];
  /** Number of features per group, in their order: of the pool, the sequence, of the bid. */
  readonly kinds: { readonly pool: number; readonly sequence: number; readonly bid: number };
  /** Meaning of the codes in the columns `split` and `bidKind`, from 0 on. */
  readonly splits: readonly string[];
  readonly bidKinds: readonly string[];
  /** Pools that the column `pool` numbers, all sources together: TYPE/ZONE. */
  readonly pools: readonly string[];
  /** SHA-256 of each column's numbers. */
  readonly sha256: Readonly<Record<Column, string>>;
  readonly sources: readonly SourceSummary[];
}

/** `sha256`: of the sampled prices: pools, instants and prices in their order. */
export interface SourceSummary extends SourceOfRows {
  readonly pools: number;
  /** TYPE/ZONE of the pools held out. */
  readonly unseen: readonly string[];
  readonly rows: Readonly<Record<Split, number>>;
  /** Share of the rows lost within an hour, by split; null where there are none. */
  readonly lostWithinHour: Readonly<Record<Split, number | null>>;
  /** Instants that gave no row, by reason. */
  readonly leftOut: Readonly<Record<string, number>>;
}

/**
 * A data set for training (dataset-columns.ts): samples the sources one after the other. Throws `usage` when the folder
 * is not empty, `market.invalid` when no sample is left.
 */
export async function writeDataset(
  folder: string,
  sources: readonly DatasetSource[],
  plan: SamplingPlan,
  onProgress: (progress: DatasetProgress) => void = () => undefined,
): Promise<DatasetManifest> {
  return writeWhole(folder, (partial) => filled(partial, sources, { plan, onProgress }));
}

interface Filling {
  readonly plan: SamplingPlan;
  readonly onProgress: (progress: DatasetProgress) => void;
}

async function filled(
  partial: string,
  sources: readonly DatasetSource[],
  { plan, onProgress }: Filling,
): Promise<DatasetManifest> {
  const writers = columnsIn(partial, COLUMNS, { features: FEATURE_WIDTH });
  const pools = new Map<string, number>();
  let rows = 0;
  const summaries: SourceSummary[] = [];
  for (const [i, source] of sources.entries()) {
    const tally = new Tally(source, plan);
    for (const sample of tally.samples) {
      const name = poolName(sample.pool);
      if (!pools.has(name)) pools.set(name, pools.size);
      writers.features.pushAll(sample.row);
      writers.lossS.push(sample.lossS);
      writers.watchedS.push(sample.watchedS);
      writers.atMs.push(sample.atMs);
      writers.bidUsd.push(sample.bidUsd);
      writers.pool.push(pools.get(name) ?? -1);
      writers.source.push(i);
      writers.split.push(SPLITS.indexOf(sample.split));
      writers.bidKind.push(BID_KINDS.indexOf(sample.bidKind));
      rows++;
      tally.count(sample);
      await told({ source: source.name, rows }, onProgress);
    }
    summaries.push(tally.summary());
  }
  const sha256 = closeColumns<typeof COLUMNS>(writers);
  if (rows === 0) throw nothingSampled(summaries);
  return {
    version: DATASET_VERSION,
    rows,
    plan,
    deltaUsd: DELTA_USD,
    horizonsS: LABEL_HORIZONS_S,
    features: FEATURES,
    kinds: { pool: POOL_FEATURES.length, sequence: SEQUENCE_FEATURES.length, bid: BID_FEATURES.length },
    splits: SPLITS,
    bidKinds: BID_KINDS,
    pools: [...pools.keys()],
    sha256,
    sources: summaries,
  };
}

function nothingSampled(summaries: readonly SourceSummary[]): EbbError {
  const reasons = summaries.flatMap((s) => Object.entries(s.leftOut).map(([why, n]) => `${s.name}: ${n} ${why}`));
  return new EbbError('market.invalid', {
    what: 'no sample could be drawn from the prices',
    got: reasons.length === 0 ? 'no instants' : reasons.join(', '),
    allowed: 'histories of several days with a known on-demand price: the last day of each range is left out',
    next: 'Look at them with `ebb market show`; give on-demand prices with --catalogue.',
  });
}

const poolName = (pool: { readonly type: { readonly name: string }; readonly zone: string }): string =>
  `${pool.type.name}/${pool.zone}`;

/** Counters over one source's samples. */
class Tally {
  readonly samples: Iterable<Sample>;
  readonly #source: DatasetSource;
  readonly #sampling: Sampling;
  readonly #rows = { train: 0, validation: 0, test: 0, unseen: 0 };
  readonly #lost = { train: 0, validation: 0, test: 0, unseen: 0 };

  constructor(source: DatasetSource, plan: SamplingPlan) {
    this.#source = source;
    this.#sampling = sampleMarket(source.trace, plan);
    this.samples = this.#sampling.samples;
  }

  count({ split, lossS }: Sample): void {
    this.#rows[split]++;
    if (lossS <= 3600) this.#lost[split]++;
  }

  summary(): SourceSummary {
    const { trace, name } = this.#source;
    const { validationMs, testMs, unseen, leftOut } = this.#sampling;
    const share = (split: Split): number | null =>
      this.#rows[split] === 0 ? null : this.#lost[split] / this.#rows[split];
    return {
      name,
      sha256: priceDigest(trace),
      from: isoOf(trace.startMs),
      validationFrom: iso(validationMs),
      testFrom: iso(testMs),
      to: isoOf(trace.endMs),
      pools: trace.pools.filter((pool) => pool.option === 'spot').length,
      unseen: unseen.map(poolName),
      rows: this.#rows,
      lostWithinHour: {
        train: share('train'),
        validation: share('validation'),
        test: share('test'),
        unseen: share('unseen'),
      },
      leftOut: Object.fromEntries(leftOut),
    };
  }
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** SHA-256 of the spot prices: pools with their on-demand prices, instants and prices in their order. */
export function priceDigest(trace: MarketTrace): string {
  const hash = createHash('sha256');
  for (const pool of trace.pools) {
    if (pool.option !== 'spot') continue;
    const { atMs, usdPerHour } = trace.prices(pool.id);
    hash.update(`${pool.id}\0${onDemandUsdOf(pool)}\0`);
    hash.update(bytesOf(atMs)).update(bytesOf(usdPerHour));
  }
  return hash.digest('hex');
}

const bytesOf = (numbers: Float64Array): Uint8Array =>
  new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
