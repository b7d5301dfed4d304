/** What an engine keeps of the instances that it held where capacity comes and goes by chance. */
import type { PoolId } from '../../lib/kernel/ids.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import { instance } from '../contract/store-samples.ts';

const HOUR_MS = 3_600_000;
const RETRY_MS = 300_000;
const WARNING_MS = 120_000;

export interface Living {
  readonly seed: number;
  readonly pools: readonly PoolId[];
  readonly startMs: number;
  readonly days: number;
  /** Losses per hour of capacity, at a time. */
  readonly hazard: (atMs: number) => number;
  /** Hours after which an instance is given back, on average, by chance; null: it never is. */
  readonly givenBackAfterH: number | null;
  /** Hours without capacity, and without need, on average. */
  readonly outageH: number;
  readonly idleH: number;
}

/** Until now, the end of its days. One instance of a pool at a time. */
export const livedBy = (life: Living): Instance[] => life.pools.flatMap((pool) => [...heldIn(pool, life)]);

function* heldIn(pool: PoolId, life: Living): Generator<Instance> {
  const { seed, startMs, days, givenBackAfterH, outageH, idleH } = life;
  const random = randomStream(seed, `test/engine/${pool}`);
  const endMs = startMs + days * 24 * HOUR_MS;
  let n = 0;
  let atMs = startMs;
  let availableMs = startMs;
  const made = (over: Partial<Instance>): Instance => instance(`i-${pool}-${n++}`, { pool, launchedMs: null, ...over });
  while (atMs < endMs) {
    if (atMs < availableMs) {
      const [requestedMs, endedMs] = [epochMs(atMs), epochMs(atMs)];
      yield made({ requestedMs, endedMs, state: 'ended', endCause: 'failed', marketCause: 'capacity' });
      atMs += RETRY_MS;
      continue;
    }
    const lostMs = lossAfter(atMs, life, random);
    const givenMs = givenBackAfterH === null ? Infinity : atMs + drawn(givenBackAfterH, random);
    const times = { requestedMs: epochMs(atMs), launchedMs: epochMs(atMs) };
    if (Math.min(lostMs, givenMs) > endMs) {
      yield made({ ...times, state: 'ready' });
      return;
    }
    if (givenMs < lostMs) {
      yield made({ ...times, endedMs: epochMs(givenMs), state: 'ended', endCause: 'released' });
      atMs = givenMs + drawn(idleH, random);
      // Nobody looks meanwhile: capacity may have gone, and come back or not.
      if (lostMs < atMs) availableMs = lostMs + drawn(outageH, random);
      continue;
    }
    const [warnedMs, endedMs] = [epochMs(lostMs), epochMs(lostMs + WARNING_MS)];
    yield made({ ...times, warnedMs, endedMs, state: 'ended', endCause: 'interrupted', marketCause: 'capacity' });
    atMs = lostMs + WARNING_MS;
    availableMs = lostMs + drawn(outageH, random);
  }
}

/** Whole milliseconds, as engines keep them. */
const drawn = (meanH: number, random: Uniform): number => Math.floor(-Math.log(1 - random()) * meanH * HOUR_MS);

/** Minute by minute; Infinity: not within the days. */
function lossAfter(fromMs: number, { hazard, startMs, days }: Living, random: Uniform): number {
  let left = -Math.log(1 - random());
  for (let atMs = fromMs; atMs <= startMs + days * 24 * HOUR_MS; atMs += 60_000) {
    const perMs = hazard(atMs) / HOUR_MS;
    if (perMs * 60_000 >= left) return Math.floor(atMs + left / perMs);
    left -= perMs * 60_000;
  }
  return Infinity;
}
