/** Rows drawn by `ebb market dataset`, and outcomes of bids within a horizon. */

export type Numbers = Float32Array | Float64Array | Int32Array | Uint8Array;

/** Ranges of one price history: ISO 8601. */
export interface SourceOfRows {
  readonly name: string;
  /** Digest of its prices, or of its series of availability. */
  readonly sha256: string;
  readonly from: string;
  readonly validationFrom: string;
  readonly testFrom: string;
  readonly to: string;
}

interface Manifest {
  /** Absent: prices. */
  readonly risk?: 'capacity';
  /**
   * True if rows are watched only while something was held: unknown ones are no random part, so they need weights
   * (censoring.ts).
   */
  readonly censored?: true;
  readonly version: number;
  readonly rows: number;
  readonly plan: {
    readonly seed: number;
    readonly instants: number;
    readonly bidsPerInstant: number;
    /** For prices: population of the instants; absent: time. */
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
  /** For capacity: answers of observed interruptions, rows x horizons. */
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
 * Unknown also near the end of a trace, whatever was seen: counting losses where survivals cannot be known would make
 * bids look worse. In a censored data set weights correct for that, there as anywhere.
 */
export function outcomeWithin(rows: DatasetRows, row: number, horizonS: number): Outcome {
  const isCensored = rows.manifest.censored === true;
  const to = Date.parse(rows.manifest.sources[rows.source[row] ?? -1]?.to ?? '');
  if (!isCensored && !(to - (rows.atMs[row] ?? NaN) >= horizonS * 1000)) return 'unknown';
  if ((rows.lossS[row] ?? Infinity) <= horizonS) return 'lost';
  return (rows.watchedS[row] ?? 0) >= horizonS ? 'lived' : 'unknown';
}
