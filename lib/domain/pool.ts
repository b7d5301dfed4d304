import { poolId, type PoolId } from '../kernel/ids.ts';
import { raw, vcpusIn, type EpochMs, type UsdPerHour } from '../kernel/units.ts';
import type { Resources } from './resources.ts';

export type PurchaseOption = 'reserved' | 'on-demand' | 'spot';
export type Arch = 'x86_64' | 'arm64';

export interface InstanceType {
  readonly name: string;
  /** Letters and digits before the dot: `c5`, `m6gd`. */
  readonly family: string;
  /** The digit in the family: 5 for `c5`. Older generations are smaller. */
  readonly generation: number;
  readonly arch: Arch;
  readonly capacity: Resources;
}

/** Instance type x zone x purchase option. */
export interface Pool {
  readonly id: PoolId;
  readonly type: InstanceType;
  readonly zone: string;
  readonly option: PurchaseOption;
  /** What the same type costs on demand in this zone. */
  readonly onDemandUsdPerHour: UsdPerHour;
  /** Of a reserved pool: how many instances are reserved, and so live at once at most. */
  readonly reservedInstances?: number;
}

export const poolKey = (type: string, zone: string, option: PurchaseOption): PoolId =>
  poolId(`${type}/${zone}/${option}`);

/**
 * What an id is made of, where only the id is left: of an instance whose pool has gone from the market, or of a stored
 * row.
 */
export function poolParts(id: PoolId): {
  readonly type: string;
  /** `c5` of `c5.large`. */
  readonly family: string;
  readonly zone: string;
  /** Ids of stored rows may be of another version: none of the three, then. */
  readonly option: string;
} {
  const [type = '', zone = '', option = ''] = id.split('/');
  return { type, family: type.split('.')[0] ?? type, zone, option };
}

/** Whether a pool is bought so. For loops: no list is made. */
export const isBoughtAs = (id: PoolId, option: PurchaseOption): boolean => id.endsWith(`/${option}`);
export const isSpotPool = (id: PoolId): boolean => id.endsWith('/spot');

/** `c5.large/us-east-1a`: the same for all purchase options. */
export const typeAndZone = (id: PoolId): string => id.slice(0, id.lastIndexOf('/'));

/** The highest price accepted for a spot instance. On-demand and reserved pools are always `uncapped`. */
export type Bid = UsdPerHour | 'uncapped';

/** The most that a bid pays, a plain number: Infinity for `uncapped`. */
export const capUsd = (bid: Bid): number => (bid === 'uncapped' ? Infinity : raw(bid));
/** A bid in JSON, rows and keys. */
export const bidNumber = (bid: Bid): number | 'uncapped' => (bid === 'uncapped' ? bid : raw(bid));

export const vcpusOf = (pool: Pool): number => vcpusIn(pool.type.capacity.cpu);
/** The same in thousandths, as vCPU limits are counted. */
export const milliCpuOf = (pool: Pool): number => raw(pool.type.capacity.cpu);

/** What an instance-hour is taken to cost now, USD: the quote, or the on-demand price where there is none. */
export const usdPerHourOf = (pool: Pool, quote: UsdPerHour | null | undefined): number =>
  raw(quote ?? pool.onDemandUsdPerHour);

/** A pool as the snapshot sees it. */
export interface PoolView {
  readonly pool: Pool;
  /** Price now; null when the market quotes none (before the first change, or after the trace ends). */
  readonly quote: UsdPerHour | null;
  /** Whether a launch now is expected to succeed: false while the pool rests after insufficient capacity. */
  readonly open: boolean;
  /** Why not open, for explanations. */
  readonly closedReason: string | null;
  /** Of a pool that rests after refusals: when it is tried again, and refusals in a row. Absent: it does not rest. */
  readonly backOff?: {
    readonly untilMs: EpochMs;
    readonly refusals: number;
    /**
     * Name of the vCPU quota that was refused, with which all pools under it rest. Absent: the pool rests for a reason
     * of its own.
     */
    readonly quota?: string;
  };
  /**
   * Of a pool whose vCPU quota refused something lately, mCPU: what live instances under it have, and how many at once
   * are too much, as far as refusals tell.
   */
  readonly quota?: { readonly usedMilliCpu: number; readonly boundMilliCpu: number };
}
