/**
 * Back-off of pools: a refused request is not repeated at once. A refusal affects its pool alone, or all pools that
 * share an exhausted quota (lib/domain/quota.ts); of such a quota the lowest refused use is kept. Stored in the store's
 * memory across cycles and restarts; written by the process that confirms outcomes or observes.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, gt, lte, minus, plus, raw, seconds, type EpochMs } from '../../kernel/units.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import type { Pool } from '../../domain/pool.ts';
import { quotaOf } from '../../domain/quota.ts';
import type { Store } from '../../ports/store.ts';
import type { WorkingState } from '../state/working-state.ts';

/**
 * Back-off after a lack of capacity. Constant: a longer back-off after more refusals would miss most of the capacity,
 * because its median stretch in the eight series of 2022 is 30 minutes (spot-availability-2022-2023,
 * availability/1-node), and asking is free.
 */
export const BACK_OFF_S = 300;

/**
 * Life of a quota's bound. Quotas are raised on request, within hours or days; each try of a gang that does not fit
 * costs at least the minimum charge of its first instances.
 */
const BOUND_S = 3600;

export interface BackOff {
  readonly untilMs: number;
  /** In a row. */
  readonly refusals: number;
  /** Text of the last refusal. */
  readonly detail?: string;
  /** For a quota: the last refused launch, until the use at that time is known. */
  readonly refused?: { readonly pool: PoolId; readonly atMs: number };
  /** For a quota: use that was too much, mCPU, and when. */
  readonly bound?: { readonly milliCpu: number; readonly atMs: number };
  /**
   * For the breaker: the last plans whose purchases were counted (absent in rows of earlier versions), and its trips in
   * a row.
   */
  readonly breaker?: { readonly plans?: readonly string[]; readonly trips: number };
}
export type QuotaKey = `quota/${string}`;
/** Key of the back-off of all pools after useless purchases (breaker.ts). */
export const BREAKER_KEY = 'breaker/purchases';
export type BackOffs = Map<PoolId | QuotaKey | typeof BREAKER_KEY, BackOff>;
type BackOffKey = BackOffs extends Map<infer K, BackOff> ? K : never;
/** Persisted in the store's memory, so the prefix keeps its old word. */
export const BACK_OFF_PREFIX = 'rest/';
/** Characters kept of a refusal's text: stored items are paid by the KiB. */
const MAX_DETAIL = 200;

/** Key of the common back-off of the pools that share this one's quota. */
export const quotaKey = (pool: PoolId): QuotaKey => `quota/${quotaOf(pool)}`;

/** Stored back-offs. */
export async function storedBackOffs(store: Pick<Store, 'memory'>): Promise<BackOffs> {
  const backOffs: BackOffs = new Map();
  for (const [key, value] of await store.memory(BACK_OFF_PREFIX)) {
    if (value !== '') backOffs.set(key.slice(BACK_OFF_PREFIX.length) as BackOffKey, JSON.parse(value) as BackOff);
  }
  return backOffs;
}

export interface BackOffContext {
  readonly at: EpochMs;
  readonly backOffs: BackOffs;
}

interface Refusal {
  readonly said: string;
  readonly refused?: NonNullable<BackOff['refused']>;
}

/** A launch was refused. */
export const backOff = (state: WorkingState, pool: PoolId, said: string, context: BackOffContext): void =>
  putBackOff(state, pool, { said }, context);

/** A launch was refused because the quota of its pool is used up. */
export const backOffQuota = (state: WorkingState, pool: PoolId, said: string, context: BackOffContext): void =>
  putBackOff(state, quotaKey(pool), { said, refused: { pool, atMs: raw(context.at) } }, context);

function putBackOff(
  state: WorkingState,
  key: PoolId | QuotaKey,
  { said, ...how }: Refusal,
  { at, backOffs }: BackOffContext,
): void {
  const before = backOffs.get(key);
  const refusals = (before?.refusals ?? 0) + 1;
  put(state, key, { ...before, ...how, untilMs: endingMs(at), refusals, detail: said.slice(0, MAX_DETAIL) }, backOffs);
}

export function put(state: WorkingState, key: BackOffKey, next: BackOff, backOffs: BackOffs): void {
  backOffs.set(key, next);
  state.putMemory(`${BACK_OFF_PREFIX}${key}`, JSON.stringify(next));
}

/**
 * A launch was answered with an instance. Its quota may have been used up by the others that were asked for with it.
 */
export function endBackOff(state: WorkingState, pool: PoolId, { at, backOffs }: BackOffContext): void {
  forget(state, pool, backOffs);
  const shared = backOffs.get(quotaKey(pool));
  if (shared !== undefined && shared.untilMs < endingMs(at)) endShared(state, quotaKey(pool), backOffs);
}

/** An instance has ended that was of use: its quota has room again. */
export function endQuotaBackOff(state: WorkingState, pool: PoolId, backOffs: BackOffs): void {
  if (backOffs.size > 0) endShared(state, quotaKey(pool), backOffs);
}

/** The bound of a quota outlives its back-off. */
function endShared(state: WorkingState, key: QuotaKey, backOffs: BackOffs): void {
  const before = backOffs.get(key);
  if (before === undefined || before.untilMs === 0) return;
  const { refused, bound } = before;
  if (refused === undefined && bound === undefined) forget(state, key, backOffs);
  else put(state, key, { untilMs: 0, refusals: 0, ...(refused && { refused }), ...(bound && { bound }) }, backOffs);
}

export function forget(state: WorkingState, key: BackOffKey, backOffs: BackOffs): void {
  if (backOffs.delete(key)) state.putMemory(`${BACK_OFF_PREFIX}${key}`, '');
}

const endingMs = (at: EpochMs): number => raw(plus(at, seconds(BACK_OFF_S)));

/** Back-offs in force now; mostly none. */
export const backOffsAt = (backOffs: BackOffs, now: EpochMs): BackOffs =>
  new Map([...backOffs].filter(([, { untilMs }]) => gt(epochMs(untilMs), now)));

/** Reason and end of a pool's back-off; null: it is open. */
export function backOffOf(
  backOffs: BackOffs,
  pool: PoolId,
  now: EpochMs,
): (Pick<BackOff, 'untilMs' | 'refusals'> & { readonly why: string; readonly quota?: string }) | null {
  const [latest] = ([pool, quotaKey(pool), BREAKER_KEY] as const)
    .flatMap((key) => {
      const found = backOffs.get(key);
      return found === undefined || lte(epochMs(found.untilMs), now) ? [] : [{ key, ...found }];
    })
    .sort((a, b) => b.untilMs - a.untilMs);
  if (latest === undefined) return null;
  const { key, untilMs, refusals, detail } = latest;
  if (key === BREAKER_KEY) return { untilMs, refusals, why: detail ?? 'purchases are paused' };
  const quota = key === pool ? undefined : quotaOf(pool);
  const who = quota === undefined ? 'in back-off' : `all pools under the account's vCPU quota ${quota} are in back-off`;
  const said = detail === undefined ? '' : `: ${detail}`;
  return {
    untilMs,
    refusals,
    why: `${who} until ${new Date(untilMs).toISOString()} after ${refusals} refusal(s)${said}`,
    ...(quota === undefined ? {} : { quota }),
  };
}

/** Last refusal of a pool itself, without a launch since; null: none. Outlives the back-off. */
export function refusedMsOf(backOffs: BackOffs, pool: PoolId): EpochMs | null {
  const found = backOffs.get(pool);
  return found === undefined ? null : minus(epochMs(found.untilMs), seconds(BACK_OFF_S));
}

/** vCPUs under a quota with a refusal, mCPU: those of live instances, and the number that was too many. */
export interface QuotaUse {
  readonly usedMilliCpu: number;
  readonly boundMilliCpu: number;
}

interface Bounding extends BackOffContext {
  readonly pools: ReadonlyMap<PoolId, Pool>;
}

/**
 * Updates the bounds of quotas: live vCPUs and the refused ones together are too many, for BOUND_S. Use above a bound
 * shows that the quota was raised. O(live instances) if a quota refused something.
 */
export function boundQuotas(state: WorkingState, bounding: Bounding): void {
  const { backOffs, pools, at } = bounding;
  for (const { key, row, usedMilliCpu } of quotasIn(state, bounding)) {
    const bound = boundOf(row, usedMilliCpu, { pools, at });
    if (bound === row.bound) continue;
    const { refused: _, bound: __, ...left } = row;
    if (bound === undefined && lte(epochMs(left.untilMs), at)) forget(state, key, backOffs);
    else put(state, key, { ...left, ...(bound && { bound }) }, backOffs);
  }
}

/** Use and bounds of quotas with a refusal, by name. O(live instances) if there is any. */
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

/** Quotas with a stored refusal or bound, and their use by live instances. */
function quotasIn({ instances }: Pick<WorkingState, 'instances'>, { backOffs, pools }: Bounding) {
  const known = [...backOffs].filter(
    (entry): entry is [QuotaKey, BackOff] =>
      entry[0].startsWith(QUOTA_PREFIX) && (entry[1].refused !== undefined || entry[1].bound !== undefined),
  );
  if (known.length === 0) return [];
  const used = usedByQuota(instances.values(), pools);
  return known.map(([key, row]) => ({ key, row, usedMilliCpu: used.get(nameOf(key)) ?? 0 }));
}

function boundOf(
  { refused, bound }: BackOff,
  usedMilliCpu: number,
  { pools, at }: Pick<Bounding, 'pools' | 'at'>,
): BackOff['bound'] {
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
