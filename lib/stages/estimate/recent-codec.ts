import { z } from 'zod';
import { HISTORY_PREFIX, corrupt } from './history-codec.ts';
import { PICK_COUNT, RUNS, type RecentState } from './recent-runs.ts';
import type { HistoryState } from './histories.ts';

/** Keys of recent runs begin so; no feature of JVuPredict has this name. */
export const RECENT_PREFIX = `${HISTORY_PREFIX}recent/`;
/** Row of the hit rates of features; no feature has this name. */
export const TALLIES_KEY = `${RECENT_PREFIX}tallies`;

const row = z
  .strictObject({
    v: z.literal(1),
    n: z.int().positive(),
    j: z.number().nonnegative(),
    e: z.number().nonnegative(),
    h: z.array(z.number().nonnegative()).length(PICK_COUNT),
    r: z.array(z.number()).min(1).max(RUNS),
  })
  .refine(({ n, r }) => r.length === Math.min(n, RUNS), 'runs do not fit the count');

/** One history as text. Numbers keep all their digits, so decoding gives the same state. */
export const encodeRecent = ({ n, judged, error, hits, runs }: RecentState): string =>
  JSON.stringify({ v: 1, n, j: judged, e: error, h: hits, r: runs });

/** Throws `store.corrupt` when the text is not what `encodeRecent` writes. */
export function decodeRecent(key: string, text: string): RecentState {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw corrupt(key, 'no JSON');
  }
  const parsed = row.safeParse(json);
  if (!parsed.success) throw corrupt(key, z.prettifyError(parsed.error));
  const { n, j, e, h, r } = parsed.data;
  return { n, judged: j, error: e, hits: h, runs: r };
}

/** A history of JVuPredict as recent runs: its last 20, none of them predicted yet. */
export function recentOf({ recent }: HistoryState): RecentState {
  const runs = recent.map((s) => Math.round(Math.log(s) * 1e4) / 1e4);
  return { n: runs.length, judged: 0, error: 0, hits: Array.from({ length: PICK_COUNT }, () => 0), runs };
}
