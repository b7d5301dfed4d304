/** What `ebb market dataset` drew, and what came of each bid within a horizon. */

export type Numbers = Float32Array | Float64Array | Int32Array | Uint8Array;

/** Ranges of one price history: ISO 8601. */
export interface SourceOfRows {
  readonly name: string;
  /** Of its prices, or of its series of availability. */
  readonly sha256: string;
  readonly from: string;
  readonly validationFrom: string;
  readonly testFrom: string;
  readonly to: string;
}

interface Manifest {
  /** Absent: of prices. */
  readonly risk?: 'capacity';
  /**
   * Rows are watched as far as something was held: those unknown are no random part, and are weighed for
   * (censoring.ts).
   */
  readonly censored?: true;
  readonly version: number;
  readonly rows: number;
  readonly plan: {
    readonly seed: number;
    readonly instants: number;
    readonly bidsPerInstant: number;
    /** Of prices: what instants were drawn from; absent: from the time. */
    readonly points?: 'times' | 'prices';
  };
  readonly features: readonly string[];
  readonly splits: readonly string[];
  readonly pools: readonly string[];
  readonly horizonsS: readonly number[];
  readonly sources: readonly SourceOfRows[];
  readonly sha256: Readonly<Record<string, string>>;
}

export interface DatasetRows {
  readonly manifest: Manifest;
  readonly features: Float32Array;
  /** Of a data set of capacity: what observed interruptions say, rows x horizons. */
  readonly observed?: Float32Array;
  readonly lossS: Numbers;
  readonly watchedS: Numbers;
  readonly atMs: Numbers;
  readonly bidUsd: Numbers;
  readonly pool: Numbers;
  readonly source: Numbers;
  readonly split: Numbers;
  readonly bidKind: Numbers;
}

export type Outcome = 'lost' | 'lived' | 'unknown';

/**
 * Unknown also near the end of a trace whatever was seen: to count losses there, where lives cannot be told, would make
 * bids look worse than they were. Where the data set is censored that is weighed for, there as anywhere.
 */
export function outcomeWithin(rows: DatasetRows, row: number, horizonS: number): Outcome {
  const isCensored = rows.manifest.censored === true;
  const to = Date.parse(rows.manifest.sources[rows.source[row] ?? -1]?.to ?? '');
  if (!isCensored && !(to - (rows.atMs[row] ?? NaN) >= horizonS * 1000)) return 'unknown';
  if ((rows.lossS[row] ?? Infinity) <= horizonS) return 'lost';
  return (rows.watchedS[row] ?? 0) >= horizonS ? 'lived' : 'unknown';
}
