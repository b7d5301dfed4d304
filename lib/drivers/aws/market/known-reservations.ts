/**
 * Capacity reservations in the table; reservations.ts fetches them from EC2. Readers load no client of EC2.
 *
 *   PRICES   RESERVED   pools of reservations, including pools that instances may still belong to
 *   PRICES   STATE      `reservedMs`: time of the last write
 */
import { isBoughtAs, poolKey } from '../../../domain/pool.ts';
import type { PoolId } from '../../../kernel/ids.ts';
import type { Table } from '../store/dynamo-table.ts';
import { bodyOf } from '../store/codec.ts';
import { RESERVED } from '../store/keys.ts';

/** Reservations of one instance type in one zone. */
export interface ReservedPool {
  readonly type: string;
  readonly zone: string;
  /**
   * Reservations that accept instances now, in the order of the configuration. None: nothing may launch into the pool.
   */
  readonly ids: readonly string[];
  /** Total instances of the reservations, used or not. */
  readonly instances: number;
  /**
   * Engine times at which payment as a reservation began and ended, alternating. Instances outlive their reservation
   * and then cost the on-demand price.
   */
  readonly turnsMs: readonly number[];
}

export const poolOf = ({ type, zone }: Pick<ReservedPool, 'type' | 'zone'>): PoolId => poolKey(type, zone, 'reserved');

export const isReserved = ({ turnsMs }: ReservedPool): boolean => turnsMs.length % 2 === 1;

/** Stored pools; none before the first write. */
export async function readReservedPools(table: Pick<Table, 'get'>): Promise<readonly ReservedPool[]> {
  const item = await table.get(RESERVED);
  return item === undefined ? [] : bodyOf<readonly ReservedPool[]>(item);
}

/** Ids of a pool's reservations that accept instances now and are among `named`. */
export async function openReservations(
  table: Pick<Table, 'get'>,
  pool: PoolId,
  named: readonly string[],
): Promise<readonly string[]> {
  if (named.length === 0 || !isBoughtAs(pool, 'reserved')) return [];
  const found = (await readReservedPools(table)).find((p) => poolOf(p) === pool);
  return (found?.ids ?? []).filter((id) => named.includes(id));
}

/**
 * Price of an hour in a reserved pool. Nothing while it is reserved, because AWS bills a reservation whether or not it
 * is used. Afterwards the on-demand price.
 */
export function reservedPrices({ turnsMs }: ReservedPool, onDemandUsdPerHour: number) {
  return {
    atMs: Float64Array.from(turnsMs),
    usdPerHour: Float64Array.from(turnsMs, (_, change) => (change % 2 === 0 ? 0 : onDemandUsdPerHour)),
  };
}
