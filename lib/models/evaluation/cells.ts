/** Units of judgement: one source, or all, in one split, by one protocol; with every forecast's scores. */
import type { Weighing } from './censoring.ts';
import { outcomeWithin, type DatasetRows } from './dataset-rows.ts';
import { drawnScores, intervalOf, METRICS, type Drawn, type Interval, type Metric } from './scores.ts';

const DAY_MS = 86_400_000;
export const JUDGED_S = 3600;
export const ALL_SOURCES = 'together';
/** `paper`: bids by its deltas alone. `all bids`: those near on-demand too. */
export const PROTOCOLS = ['paper', 'all bids'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** Answers of a forecast to rows of the data set, by row; NaN for rows not asked. */
export interface Forecast {
  readonly name: string;
  readonly p: ArrayLike<number>;
}

export interface Cell {
  readonly source: string;
  readonly split: string;
  readonly protocol: Protocol;
  readonly rows: readonly number[];
  readonly lost: Uint8Array;
  readonly day: Int32Array;
  readonly days: number;
  /** Weight of each row; absent: 1. */
  readonly weight?: Float64Array;
}

/**
 * Rows of `splits` whose outcome within `horizonS` is known, by source, split and protocol; empty cells are left out.
 */
export function cellsOf(rows: DatasetRows, splits: readonly string[], horizonS = JUDGED_S): Cell[] {
  const { manifest } = rows;
  const known = Array.from(rows.atMs.keys()).filter(
    (row) =>
      splits.includes(manifest.splits[rows.split[row] ?? -1] ?? '') && outcomeWithin(rows, row, horizonS) !== 'unknown',
  );
  const sources = [...manifest.sources.map((s) => s.name), ALL_SOURCES];
  return splits.flatMap((split) =>
    sources.flatMap((source, s) =>
      PROTOCOLS.map((protocol) => {
        const mine = known.filter(
          (row) =>
            manifest.splits[rows.split[row] ?? -1] === split &&
            (source === ALL_SOURCES || rows.source[row] === s) &&
            (protocol === 'all bids' || rows.bidKind[row] === 0),
        );
        return cell(rows, { source, split, protocol }, { mine, horizonS });
      }).filter((c) => c.rows.length > 0),
    ),
  );
}

interface OfCell {
  readonly mine: readonly number[];
  readonly horizonS: number;
  readonly weight?: Weighing;
}

/** Cell of the rows `mine`, all with a known outcome within `horizonS`. */
export function cell(
  rows: DatasetRows,
  named: Pick<Cell, 'source' | 'split' | 'protocol'>,
  { mine, horizonS, weight }: OfCell,
): Cell {
  const dates = new Map<number, number>();
  const day = Int32Array.from(mine, (row) => {
    const date = Math.floor((rows.atMs[row] ?? 0) / DAY_MS);
    if (!dates.has(date)) dates.set(date, dates.size);
    return dates.get(date) ?? -1;
  });
  const lost = Uint8Array.from(mine, (row) => (outcomeWithin(rows, row, horizonS) === 'lost' ? 1 : 0));
  const weights = weight === undefined ? {} : { weight: Float64Array.from(mine, (row) => weight(row, horizonS)) };
  return { ...named, rows: mine, lost, day, days: dates.size, ...weights };
}

export const judgedBy = ({ rows, lost, day, weight }: Cell, { p }: Forecast) => ({
  p: Float64Array.from(rows, (row) => p[row] ?? NaN),
  lost,
  day,
  ...(weight === undefined ? {} : { weight }),
});

export interface Against {
  /** Accuracy above another forecast's, as a share. */
  readonly accuracy: Interval;
  /** F1 by the other's, less 1. */
  readonly f1: Interval;
}

export interface Row {
  readonly cell: Cell;
  readonly forecast: string;
  readonly scores: Readonly<Record<Metric, Interval>>;
  readonly drawn: Drawn;
}

export function rowsOf(cell: Cell, forecasts: readonly Forecast[], seed: number): Row[] {
  return forecasts.map((forecast) => {
    const drawn = drawnScores(judgedBy(cell, forecast), seed);
    const of = (m: Metric): Interval =>
      intervalOf(
        drawn.value[m],
        drawn.draws.map((d) => d[m]),
      );
    return {
      cell,
      forecast: forecast.name,
      scores: Object.fromEntries(METRICS.map((m) => [m, of(m)])) as Record<Metric, Interval>,
      drawn,
    };
  });
}

export function against(row: Row, other: Row): Against {
  const [mine, theirs] = [row.drawn, other.drawn];
  const paired = (of: (a: Drawn['value'], b: Drawn['value']) => number): Interval =>
    intervalOf(
      of(mine.value, theirs.value),
      mine.draws.flatMap((draw, i) => {
        const same = theirs.draws[i];
        return same === undefined ? [] : [of(draw, same)];
      }),
    );
  return { accuracy: paired((a, b) => a.accuracy - b.accuracy), f1: paired((a, b) => a.f1 / b.f1 - 1) };
}
