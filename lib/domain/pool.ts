import { poolId, type PoolId } from '../kernel/ids.ts';
import { raw, vcpusIn, type EpochMs, type UsdPerHour } from '../kernel/units.ts';
import { milliCpuIn, type Resources } from './resources.ts';

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
  /** On-demand price of the type in this zone. */
  readonly onDemandUsdPerHour: UsdPerHour;
  /** Size of a reserved pool: the instances reserved, and so the most that live at once. */
  readonly reservedInstances?: number;
  /** Facts of its machines that constraints may name, such as their rack. Absent: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** True for machines of the user's own: up as soon as they are asked for. Absent: rented ones. */
  readonly isOwn?: true;
}

export const poolKey = (type: string, zone: string, option: PurchaseOption): PoolId =>
  poolId(`${type}/${zone}/${option}`);

/** `c5` of `c5.large`. */
export const familyOf = (type: string): string => type.split('.', 1)[0] ?? type;

/** True for `c5.metal` and `c7i.metal-24xl`. */
export const isBareMetal = (type: string): boolean => type.split('.')[1]?.startsWith('metal') ?? false;

/** Family of AWS Fargate's task sizes (lib/market/fargate.ts): no instances, so that no preset buys them unasked. */
export const FARGATE = 'fargate';
export const isFargate = ({ type }: Pick<Pool, 'type'>): boolean => type.family === FARGATE;

/** Parts of an id whose pool record is unknown: an instance whose pool has left the market, or a stored row. */
export function poolParts(id: PoolId): {
  readonly type: string;
  readonly family: string;
  readonly zone: string;
  /** Option as stored; ids of other versions may hold none of the three. */
  readonly option: string;
} {
  const [type = '', zone = '', option = ''] = id.split('/');
  return { type, family: familyOf(type), zone, option };
}

/** True for a pool with that purchase option. For hot loops: allocates nothing. */
export const isBoughtAs = (id: PoolId, option: PurchaseOption): boolean => id.endsWith(`/${option}`);
export const isSpotPool = (id: PoolId): boolean => id.endsWith('/spot');

/** `c5.large/us-east-1a`: the same for all purchase options. */
export const typeAndZone = (id: PoolId): string => id.slice(0, id.lastIndexOf('/'));

/** The highest price accepted for a spot instance. On-demand and reserved pools are always `uncapped`. */
export type Bid = UsdPerHour | 'uncapped';

/** The most that a bid pays, a plain number: Infinity for `uncapped`. */
export const capUsd = (bid: Bid): number => (bid === 'uncapped' ? Infinity : raw(bid));
/** Whether an answer that no type checker saw is a bid. */
export const isBid = (bid: Bid): boolean => bid === 'uncapped' || (Number.isFinite(raw(bid)) && raw(bid) > 0);
/**
 * Why an answer that no type checker saw is no bid that buys in the pool now; null: it is one. Spot is bid for at its
 * price at least; nothing else is bid for.
 */
export function wrongBid(bid: Bid, { pool, quote }: Pick<PoolView, 'pool' | 'quote'>): string | null {
  if (bid === 'uncapped') return null;
  if (pool.option !== 'spot') return `${pool.option} capacity is bought \`uncapped\``;
  if (!isBid(bid)) return 'it is no price';
  return quote !== null && raw(bid) < raw(quote) ? `the price is ${raw(quote)} USD per hour` : null;
}
/** A bid in JSON, rows and keys. */
export const bidNumber = (bid: Bid): number | 'uncapped' => (bid === 'uncapped' ? bid : raw(bid));

export const vcpusOf = (pool: Pool): number => vcpusIn(pool.type.capacity.cpu);
/** The same in thousandths, as vCPU limits are counted. */
export const milliCpuOf = (pool: Pool): number => milliCpuIn(pool.type.capacity);

/** On-demand price of an instance-hour as a plain number, USD. */
export const onDemandUsdOf = (of: Pick<Pool, 'onDemandUsdPerHour'>): number => raw(of.onDemandUsdPerHour);

/** A price in texts: US dollars per hour with four decimals. */
export const rateText = (rate: UsdPerHour): string => raw(rate).toFixed(4);

/** Assumed price of an instance-hour now, USD: the quote, else the on-demand price. */
export const usdPerHourOf = (pool: Pool, quote: UsdPerHour | null | undefined): number =>
  raw(quote ?? pool.onDemandUsdPerHour);

/** A pool as the snapshot sees it. */
export interface PoolView {
  readonly pool: Pool;
  /** Price now; null when the market quotes none (before the first change, or after the trace ends). */
  readonly quote: UsdPerHour | null;
  /** False during the back-off after a refusal: a launch now is expected to fail. */
  readonly open: boolean;
  /** Why not open, for explanations. */
  readonly closedReason: string | null;
  /** Of a reserved pool: instances that may still be launched. Absent: no limit. */
  readonly reservedLeft?: number;
  /** Back-off after refusals: the time of the next try, and refusals in a row. Absent: none. */
  readonly backOff?: {
    readonly untilMs: EpochMs;
    readonly refusals: number;
    /**
     * Name of the refused vCPU quota; all pools under it are in back-off. Absent: the back-off is this pool's alone.
     */
    readonly quota?: string;
  };
  /** Last time that the pool refused a launch, in back-off or not, where none has succeeded since. Absent: none. */
  readonly refusedMs?: EpochMs;
  /**
   * vCPU quota that refused something lately, mCPU: vCPUs of live instances under it, and the number that was too many,
   * as refusals tell.
   */
  readonly quota?: { readonly usedMilliCpu: number; readonly boundMilliCpu: number };
}
