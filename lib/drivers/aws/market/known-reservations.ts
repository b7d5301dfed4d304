/**
 * Capacity reservations as they lie in the table; asked of EC2 by reservations.ts. Who only reads loads nothing of
 * EC2's.
 *
 *   PRICES   RESERVED   pools of the reservations, those included that instances may still be of
 *   PRICES   STATE      `reservedMs`: when that was last written
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
  /** Those that take instances now, in the order of the configuration. None: nothing may be launched into the pool. */
  readonly ids: readonly string[];
  /** How many instances they have in all, in use or not. */
  readonly instances: number;
  /**
   * Engine times at which the pool began to be paid for as a reservation, and ceased to be, in turn. Instances outlive
   * their reservation, and cost what on-demand ones do from then on.
   */
  readonly turnsMs: readonly number[];
}

export const poolOf = ({ type, zone }: Pick<ReservedPool, 'type' | 'zone'>): PoolId => poolKey(type, zone, 'reserved');

export const isReserved = ({ turnsMs }: ReservedPool): boolean => turnsMs.length % 2 === 1;

/** As stored; none when nothing ever was. */
export async function readReservedPools(table: Pick<Table, 'get'>): Promise<readonly ReservedPool[]> {
  const item = await table.get(RESERVED);
  return item === undefined ? [] : bodyOf<readonly ReservedPool[]>(item);
}

/** Ids of the reservations of a pool that take instances now, of those that the deployment names. */
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
 * What an hour in a reserved pool costs: nothing while it is reserved, as AWS bills a reservation at the on-demand
 * price whether it is used or not; then the on-demand price.
 */
export function reservedPrices({ turnsMs }: ReservedPool, onDemandUsdPerHour: number) {
  return {
    atMs: Float64Array.from(turnsMs),
    usdPerHour: Float64Array.from(turnsMs, (_, turn) => (turn % 2 === 0 ? 0 : onDemandUsdPerHour)),
  };
}
