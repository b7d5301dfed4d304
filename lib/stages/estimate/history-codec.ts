import { z } from 'zod';
import { EbbError } from '../../kernel/errors.ts';
import { BINS } from './histogram.ts';
import { ESTIMATORS, RECENT, type HistoryState } from './histories.ts';

/** Every key of an exported history begins so. */
export const HISTORY_PREFIX = 'history/';

const positive = z.number().positive();
const histogram = z
  .strictObject({ c: z.array(positive).max(BINS), w: z.array(positive).max(BINS), x: z.boolean() })
  .refine((h) => h.c.length === h.w.length && h.c.length > 0 && ascends(h.c), 'centroids must ascend, one weight each');
const row = z
  .strictObject({
    v: z.literal(1),
    n: z.number().int().positive(),
    s: positive,
    o: positive,
    fs: positive,
    fo: positive,
    e: z.array(z.number().nonnegative()).length(ESTIMATORS.length),
    r: z.array(positive).min(1).max(RECENT),
    fr: z.array(positive).min(1).max(RECENT),
    h: histogram.nullable(),
    fh: histogram.nullable(),
  })
  .refine((r) => r.r.length === Math.min(r.n, RECENT) && r.fr.length === r.r.length, 'recent runs do not fit the count')
  .refine(
    (r) => (r.n === 1) === (r.h === null) && (r.h === null) === (r.fh === null),
    'histograms do not fit the count',
  );

const ascends = (xs: readonly number[]): boolean => xs.every((x, i) => i === 0 || x > (xs[i - 1] ?? 0));

/** One history as text. Numbers keep all their digits, so decoding gives the same state. */
export function encodeHistory(state: HistoryState): string {
  const pack = (h: HistoryState['histogram']) => (h === null ? null : { c: h.centroids, w: h.weights, x: h.lossy });
  return JSON.stringify({
    v: 1,
    n: state.n,
    s: state.sum,
    o: state.rolling,
    fs: state.filteredSum,
    fo: state.filteredRolling,
    e: state.squaredErrors,
    r: state.recent,
    fr: state.filteredRecent,
    h: pack(state.histogram),
    fh: pack(state.filteredHistogram),
  });
}

/** Throws `store.corrupt` when the text is not what `encodeHistory` writes. */
export function decodeHistory(key: string, text: string): HistoryState {
  const parsed = row.safeParse(asJson(text));
  if (!parsed.success) throw corrupt(key, z.prettifyError(parsed.error));
  const { data } = parsed;
  const unpack = (h: typeof data.h) => (h === null ? null : { centroids: h.c, weights: h.w, lossy: h.x });
  return {
    n: data.n,
    sum: data.s,
    rolling: data.o,
    filteredSum: data.fs,
    filteredRolling: data.fo,
    squaredErrors: data.e,
    recent: data.r,
    filteredRecent: data.fr,
    histogram: unpack(data.h),
    filteredHistogram: unpack(data.fh),
  };
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A stored history that cannot be read. */
export function corrupt(key: string, got: string): EbbError {
  return new EbbError('store.corrupt', {
    what: `the stored runtime history ${key} cannot be read`,
    got,
    allowed: 'a row as written by this version',
    next: 'restore a backup (docs/local-mode.md), or delete the rows whose key begins with "history/": forecasts then start anew',
  });
}
