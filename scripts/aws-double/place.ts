import type { Pool } from '../../lib/domain/pool.ts';
import type { Clock } from '../../lib/kernel/clock.ts';
import { raw } from '../../lib/kernel/units.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Fleet } from '../../lib/ports/fleet.ts';
import type { Market } from '../../lib/ports/market.ts';
import { hexOf, type EventLog } from './events.ts';
import type { KnobBoard } from './knobs.ts';

export interface Subnet {
  readonly id: string;
  readonly zone: string;
}

/** One account in one region: everything that its services share. */
export interface Place {
  readonly account: string;
  readonly region: string;
  readonly clock: Clock;
  /** Market seconds per wall second. */
  readonly speed: number;
  readonly pools: readonly Pool[];
  /** Public part of the market. */
  readonly market: Market;
  /** Capacity engine, the same as in local mode. */
  readonly fleet: Fleet;
  readonly fleetDir: string;
  readonly knobs: KnobBoard;
  readonly events: EventLog;
  readonly vpcId: string;
  readonly subnets: readonly Subnet[];
}

/** Market time, epoch ms. */
export const nowMs = (place: Place): number => raw(place.clock.now());

export const zonesOf = (place: Place): readonly string[] => [...new Set(place.pools.map((pool) => pool.zone))].sort();

/** Zone id from the zone's name; on AWS ids differ by account. */
export const zoneId = (zone: string): string => `az-${hexOf(zone, 4)}`;

/** Subnet per zone of the market; zones without a given one get a generated id. */
export function subnetsFor(trace: MarketTrace, given: Readonly<Record<string, string>>): readonly Subnet[] {
  const zones = [...new Set(trace.pools.map((pool) => pool.zone))].sort();
  return zones.map((zone) => ({ zone, id: given[zone] ?? `subnet-0${hexOf(zone, 16)}` }));
}

/**
 * True if something made at `sinceMs` can be described.
 * https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
 */
export const isVisible = (place: Place, sinceMs: number): boolean =>
  nowMs(place) - sinceMs >= place.knobs.now.describeDelayS * 1000;
