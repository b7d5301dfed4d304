import { z } from 'zod';
import type { Pool } from '../../../lib/domain/pool.ts';
import type { PoolId } from '../../../lib/kernel/ids.ts';
import { action, type Actions } from '../api.ts';
import { hexOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import { zoneId, type Place } from '../place.ts';
import { filters, form, page, passes, type XmlValue } from '../query.ts';
import type { Instances } from './instances.ts';

/**
 * On-Demand Capacity Reservations: one per reserved pool of the market, with as many instances. Knobs set what the
 * market does not tell. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
 */
const describe = z.strictObject({
  CapacityReservationId: z.array(z.string()).default([]),
  Filter: filters,
  MaxResults: form.number.min(1).max(1000).default(1000),
  NextToken: z.string().optional(),
});

export interface Reservation {
  readonly id: string;
  readonly pool: Pool;
}

const RESERVATION_ID = /^cr-[0-9a-f]{17}$/;
const idOf = (pool: PoolId): string => `cr-0${hexOf(pool, 16)}`;

export const reservationIds = (pools: readonly Pool[]): ReadonlyMap<PoolId, string> =>
  new Map(pools.filter((p) => p.option === 'reserved').map((p) => [p.id, idOf(p.id)]));

export class Reservations {
  readonly #place: Place;
  readonly #instances: Instances;

  constructor(place: Place, instances: Instances) {
    this.#place = place;
    this.#instances = instances;
  }

  readonly actions: Actions<{ readonly [name: string]: XmlValue }> = {
    // https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
    DescribeCapacityReservations: action(describe, (asked) => {
      const ids = asked.CapacityReservationId;
      const candidates = ids.length === 0 ? this.#all : ids.map((id) => this.find(id));
      const found = candidates.filter((r) => passes(asked.Filter, (name) => this.#filterValues(r, name)));
      const { items, nextToken } = page(found, { token: asked.NextToken, size: asked.MaxResults });
      return { capacityReservationSet: items.map((r) => this.#shown(r)), nextToken };
    }),
  };

  get #all(): Reservation[] {
    return this.#place.pools.flatMap((pool) => (pool.option === 'reserved' ? [{ id: idOf(pool.id), pool }] : []));
  }

  /** Throws InvalidCapacityReservationId.* for an unknown id. */
  find(id: string): Reservation {
    if (!RESERVATION_ID.test(id)) {
      throw new AwsFault('InvalidCapacityReservationId.Malformed', `The ID '${id}' is malformed`);
    }
    const found = this.#all.find((r) => r.id === id);
    if (found !== undefined) return found;
    throw new AwsFault('InvalidCapacityReservationId.NotFound', `The capacity reservation '${id}' does not exist`);
  }

  /** Free places. */
  room({ id, pool }: Reservation): number {
    if (this.#place.knobs.reservation(pool.id).state !== 'active') return 0;
    return Math.max(0, (pool.reservedInstances ?? 0) - this.#instances.inReservation(id));
  }

  /** Open reservation that on-demand instances of a pool use without a request. */
  openFor({ type, zone }: Pool): Reservation | undefined {
    return this.#all.find(
      (r) =>
        r.pool.type.name === type.name &&
        r.pool.zone === zone &&
        this.#place.knobs.reservation(r.pool.id).instanceMatchCriteria === 'open' &&
        this.room(r) > 0,
    );
  }

  #filterValues({ pool }: Reservation, name: string): readonly string[] | null {
    const { state, instanceMatchCriteria, tenancy, instancePlatform } = this.#place.knobs.reservation(pool.id);
    const known: Readonly<Record<string, string>> = {
      state,
      tenancy,
      'instance-type': pool.type.name,
      'availability-zone': pool.zone,
      'instance-platform': instancePlatform,
      'instance-match-criteria': instanceMatchCriteria,
    };
    const value = known[name];
    return value === undefined ? null : [value];
  }

  #shown(of: Reservation): XmlValue {
    const { id, pool } = of;
    const { account, region, knobs } = this.#place;
    return {
      capacityReservationId: id,
      ownerId: account,
      capacityReservationArn: `arn:aws:ec2:${region}:${account}:capacity-reservation/${id}`,
      instanceType: pool.type.name,
      availabilityZone: pool.zone,
      availabilityZoneId: zoneId(pool.zone),
      totalInstanceCount: pool.reservedInstances ?? 0,
      availableInstanceCount: this.room(of),
      ebsOptimized: false,
      endDateType: 'unlimited',
      ...knobs.reservation(pool.id),
    };
  }
}
