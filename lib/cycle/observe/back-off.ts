/**
 * Pools that rest: what was refused is not asked again at once. A pool rests alone, or with all that share a quota
 * which is used up (lib/domain/quota.ts), and of such a quota it is kept how little was too much. Kept across cycles
 * and restarts in the store's memory; written by whoever confirms outcomes or observes.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, gt, lte, plus, raw, seconds, type EpochMs } from '../../kernel/units.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import type { Pool } from '../../domain/pool.ts';
import { quotaOf } from '../../domain/quota.ts';
import type { Store } from '../../ports/store.ts';
import type { WorkingState } from '../state/working-state.ts';

/**
 * A pool that had no capacity rests this long, then it is tried again. Longer rests after more refusals would miss most
 * of what there is: the median stretch of spot capacity in the eight series of 2022 is 30 minutes
 * (spot-availability-2022-2023, availability/1-node), and asking is free.
 */
const REST_S = 300;

/**
 * What was too much for a quota is thought to be too much for so long. Quotas are raised on request, within hours or
 * days; a gang that does not fit costs, each time it is tried, what its first instances are charged at least.
 */
const BOUND_S = 3600;

export interface PoolRest {
  readonly untilMs: number;
  /** In a row. */
  readonly refusals: number;
  /** What the last refusal said. */
  readonly detail?: string;
  /** Of a quota: which launch was refused last, until it is known how much there was then. */
  readonly refused?: { readonly pool: PoolId; readonly atMs: number };
  /** Of a quota: so many mCPU at once are too much, seen then. */
  readonly bound?: { readonly milliCpu: number; readonly atMs: number };
  /**
   * Of the breaker: the last plans whose purchases were counted (absent in rows of earlier versions), and its trips in
   * a row.
   */
  readonly breaker?: { readonly plans?: readonly string[]; readonly trips: number };
}
export type QuotaKey = `quota/${string}`;
/** Under which all pools rest when purchases were of no use (breaker.ts). */
export const BREAKER_KEY = 'breaker/purchases';
export type PoolRests = Map<PoolId | QuotaKey | typeof BREAKER_KEY, PoolRest>;
type RestKey = PoolRests extends Map<infer K, PoolRest> ? K : never;
export const REST_PREFIX = 'rest/';
/** Of a refusal's text: an item's place is bought by the KiB. */
const MAX_DETAIL = 200;

/** Under which the pools rest that share a quota with this one. */
export const quotaKey = (pool: PoolId): QuotaKey => `quota/${quotaOf(pool)}`;

/** What rests, as stored. */
export async function storedRests(store: Pick<Store, 'memory'>): Promise<PoolRests> {
  const rests: PoolRests = new Map();
  for (const [key, value] of await store.memory(REST_PREFIX)) {
    if (value !== '') rests.set(key.slice(REST_PREFIX.length) as RestKey, JSON.parse(value) as PoolRest);
  }
  return rests;
}

export interface Resting {
  readonly at: EpochMs;
  readonly rests: PoolRests;
}

interface Refusal {
  readonly said: string;
  readonly refused?: NonNullable<PoolRest['refused']>;
}

/** A launch was refused. */
export const rest = (state: WorkingState, pool: PoolId, said: string, resting: Resting): void =>
  putRest(state, pool, { said }, resting);

/** A launch was refused because the quota of its pool is used up. */
export const restQuota = (state: WorkingState, pool: PoolId, said: string, resting: Resting): void =>
  putRest(state, quotaKey(pool), { said, refused: { pool, atMs: raw(resting.at) } }, resting);

function putRest(state: WorkingState, key: PoolId | QuotaKey, { said, ...how }: Refusal, { at, rests }: Resting): void {
  const before = rests.get(key);
  const refusals = (before?.refusals ?? 0) + 1;
  put(state, key, { ...before, ...how, untilMs: endingMs(at), refusals, detail: said.slice(0, MAX_DETAIL) }, rests);
}

export function put(state: WorkingState, key: RestKey, next: PoolRest, rests: PoolRests): void {
  rests.set(key, next);
  state.putMemory(`${REST_PREFIX}${key}`, JSON.stringify(next));
}

/**
 * A launch was answered with an instance. Its quota may have been used up by the others that were asked for with it.
 */
export function endRest(state: WorkingState, pool: PoolId, { at, rests }: Resting): void {
  forget(state, pool, rests);
  const shared = rests.get(quotaKey(pool));
  if (shared !== undefined && shared.untilMs < endingMs(at)) endShared(state, quotaKey(pool), rests);
}

/** An instance has ended that was of use: its quota has room again. */
export function endQuotaRest(state: WorkingState, pool: PoolId, rests: PoolRests): void {
  if (rests.size > 0) endShared(state, quotaKey(pool), rests);
}

/** How much was too much is kept. */
function endShared(state: WorkingState, key: QuotaKey, rests: PoolRests): void {
  const before = rests.get(key);
  if (before === undefined || before.untilMs === 0) return;
  const { refused, bound } = before;
  if (refused === undefined && bound === undefined) forget(state, key, rests);
  else put(state, key, { untilMs: 0, refusals: 0, ...(refused && { refused }), ...(bound && { bound }) }, rests);
}

export function forget(state: WorkingState, key: RestKey, rests: PoolRests): void {
  if (rests.delete(key)) state.putMemory(`${REST_PREFIX}${key}`, '');
}

const endingMs = (at: EpochMs): number => raw(plus(at, seconds(REST_S)));

/** What rests now, of all that ever did: mostly nothing. */
export const restingAt = (rests: PoolRests, now: EpochMs): PoolRests =>
  new Map([...rests].filter(([, { untilMs }]) => gt(epochMs(untilMs), now)));

/** Why a pool is not to be asked now, and until when; null: it may be. */
export function restOf(
  rests: PoolRests,
  pool: PoolId,
  now: EpochMs,
): (Pick<PoolRest, 'untilMs' | 'refusals'> & { readonly why: string; readonly quota?: string }) | null {
  const [latest] = ([pool, quotaKey(pool), BREAKER_KEY] as const)
    .flatMap((key) => {
      const found = rests.get(key);
      return found === undefined || lte(epochMs(found.untilMs), now) ? [] : [{ key, ...found }];
    })
    .sort((a, b) => b.untilMs - a.untilMs);
  if (latest === undefined) return null;
  const { key, untilMs, refusals, detail } = latest;
  if (key === BREAKER_KEY) return { untilMs, refusals, why: detail ?? 'purchases are paused' };
  const quota = key === pool ? undefined : quotaOf(pool);
  const who = quota === undefined ? 'rests' : `all pools under the account's vCPU quota ${quota} rest`;
  const said = detail === undefined ? '' : `: ${detail}`;
  return {
    untilMs,
    refusals,
    why: `${who} until ${new Date(untilMs).toISOString()} after ${refusals} refusal(s)${said}`,
    ...(quota === undefined ? {} : { quota }),
  };
}

/** vCPUs under one quota that was refused, mCPU: those of live instances, and how many at once are too much. */
export interface QuotaUse {
  readonly usedMilliCpu: number;
  readonly boundMilliCpu: number;
}

interface Bounding extends Resting {
  readonly pools: ReadonlyMap<PoolId, Pool>;
}

/**
 * Takes in what refusals say of quotas: what there is and the refused one together are too much, for BOUND_S. More than
 * a bound says shows that the quota was raised. O(live instances) where a quota refused something.
 */
export function boundQuotas(state: WorkingState, bounding: Bounding): void {
  const { rests, pools, at } = bounding;
  for (const { key, row, usedMilliCpu } of quotasIn(state, bounding)) {
    const bound = boundOf(row, usedMilliCpu, { pools, at });
    if (bound === row.bound) continue;
    const { refused: _, bound: __, ...left } = row;
    if (bound === undefined && lte(epochMs(left.untilMs), at)) forget(state, key, rests);
    else put(state, key, { ...left, ...(bound && { bound }) }, rests);
  }
}

/** What is known of quotas that refused something, by their names. O(live instances) where there is any. */
export function quotaUses(state: Pick<WorkingState, 'instances'>, bounding: Bounding): ReadonlyMap<string, QuotaUse> {
  const uses = new Map<string, QuotaUse>();
  for (const { key, row, usedMilliCpu } of quotasIn(state, bounding)) {
    const bound = boundOf(row, usedMilliCpu, bounding);
    if (bound !== undefined) uses.set(nameOf(key), { usedMilliCpu, boundMilliCpu: bound.milliCpu });
  }
  return uses;
}

const QUOTA_PREFIX = 'quota/';
const nameOf = (key: QuotaKey): string => key.slice(QUOTA_PREFIX.length);

/** Those of which something is known, with what live instances have of them. */
function quotasIn({ instances }: Pick<WorkingState, 'instances'>, { rests, pools }: Bounding) {
  const known = [...rests].filter(
    (entry): entry is [QuotaKey, PoolRest] =>
      entry[0].startsWith(QUOTA_PREFIX) && (entry[1].refused !== undefined || entry[1].bound !== undefined),
  );
  if (known.length === 0) return [];
  const used = usedByQuota(instances.values(), pools);
  return known.map(([key, row]) => ({ key, row, usedMilliCpu: used.get(nameOf(key)) ?? 0 }));
}

function boundOf(
  { refused, bound }: PoolRest,
  usedMilliCpu: number,
  { pools, at }: Pick<Bounding, 'pools' | 'at'>,
): PoolRest['bound'] {
  const isKnown =
    bound !== undefined && gt(plus(epochMs(bound.atMs), seconds(BOUND_S)), at) && usedMilliCpu < bound.milliCpu;
  const stands = isKnown ? bound : undefined;
  const size = refused === undefined ? undefined : pools.get(refused.pool)?.type.capacity.cpu;
  if (refused === undefined || size === undefined) return stands;
  return { milliCpu: Math.min(stands?.milliCpu ?? Infinity, usedMilliCpu + raw(size)), atMs: refused.atMs };
}

function usedByQuota(instances: Iterable<Instance>, pools: ReadonlyMap<PoolId, Pool>): ReadonlyMap<string, number> {
  const used = new Map<string, number>();
  for (const instance of instances) {
    const cpu = isLive(instance) ? pools.get(instance.pool)?.type.capacity.cpu : undefined;
    if (cpu === undefined) continue;
    const quota = quotaOf(instance.pool);
    used.set(quota, (used.get(quota) ?? 0) + raw(cpu));
  }
  return used;
}
