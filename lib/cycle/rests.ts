/**
 * Pools that rest: what was refused is not asked again at once. A pool rests alone, or with all that share a quota which is used
 * up (lib/domain/quota.ts). Kept across cycles and restarts in the store's memory; written by whoever confirms outcomes or observes.
 */
import type { PoolId } from '../kernel/ids.ts';
import { plus, raw, seconds, type EpochMs } from '../kernel/units.ts';
import { quotaOf } from '../domain/quota.ts';
import type { Store } from '../ports/store.ts';
import type { WorkingState } from './working-state.ts';

/**
 * A pool that had no capacity rests this long, then it is tried again. Longer rests after more refusals would miss most of
 * what there is: the median stretch of spot capacity in the eight series of 2022 is 30 minutes (spot-availability-2022-2023,
 * availability/1-node), and asking is free.
 */
const REST_S = 300;

export interface PoolRest {
  readonly untilMs: number;
  /** In a row. */
  readonly refusals: number;
  /** What the last refusal said. */
  readonly detail?: string;
}
export type QuotaKey = `quota/${string}`;
export type PoolRests = Map<PoolId | QuotaKey, PoolRest>;
const REST_PREFIX = 'rest/';
/** Of a refusal's text: an item's place is bought by the KiB. */
const MAX_DETAIL = 200;

/** Under which the pools rest that share a quota with this one. */
export const quotaKey = (pool: PoolId): QuotaKey => `quota/${quotaOf(pool)}`;

/** What rests, as stored. */
export async function storedRests(store: Pick<Store, 'memory'>): Promise<PoolRests> {
  const rests: PoolRests = new Map();
  for (const [key, value] of await store.memory(REST_PREFIX)) {
    if (value !== '') rests.set(key.slice(REST_PREFIX.length) as PoolId | QuotaKey, JSON.parse(value) as PoolRest);
  }
  return rests;
}

export interface Resting {
  readonly at: EpochMs;
  readonly rests: PoolRests;
}

/** A launch was refused. */
export function rest(state: WorkingState, key: PoolId | QuotaKey, said: string, { at, rests }: Resting): void {
  const refusals = (rests.get(key)?.refusals ?? 0) + 1;
  const next: PoolRest = { untilMs: endingMs(at), refusals, detail: said.slice(0, MAX_DETAIL) };
  rests.set(key, next);
  state.putMemory(`${REST_PREFIX}${key}`, JSON.stringify(next));
}

/** A launch was answered with an instance. Its quota may have been used up by the others that were asked for with it. */
export function endRest(state: WorkingState, pool: PoolId, { at, rests }: Resting): void {
  forget(state, pool, rests);
  const shared = rests.get(quotaKey(pool));
  if (shared !== undefined && shared.untilMs < endingMs(at)) forget(state, quotaKey(pool), rests);
}

/** An instance has ended that was of use: its quota has room again. */
export const endQuotaRest = (state: WorkingState, pool: PoolId, rests: PoolRests): void =>
  forget(state, quotaKey(pool), rests);

function forget(state: WorkingState, key: PoolId | QuotaKey, rests: PoolRests): void {
  if (rests.delete(key)) state.putMemory(`${REST_PREFIX}${key}`, '');
}

const endingMs = (at: EpochMs): number => raw(plus(at, seconds(REST_S)));

/** Why a pool is not to be asked now, and until when; null: it may be. */
export function restOf(
  rests: PoolRests,
  pool: PoolId,
  now: EpochMs,
): (Pick<PoolRest, 'untilMs' | 'refusals'> & { readonly why: string }) | null {
  const [latest] = [pool, quotaKey(pool)]
    .flatMap((key) => {
      const found = rests.get(key);
      return found === undefined || found.untilMs <= raw(now) ? [] : [{ key, ...found }];
    })
    .sort((a, b) => b.untilMs - a.untilMs);
  if (latest === undefined) return null;
  const { key, untilMs, refusals, detail } = latest;
  const who = key === pool ? 'rests' : `all pools under the vCPU quota ${quotaOf(pool)} rest`;
  const said = detail === undefined ? '' : `: ${detail}`;
  return {
    untilMs,
    refusals,
    why: `${who} until ${new Date(untilMs).toISOString()} after ${refusals} refusal(s)${said}`,
  };
}
