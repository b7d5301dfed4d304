/**
 * Capacity reservations of the configuration, as EC2 describes their type, zone, size and state. Stored as in
 * known-reservations.ts.
 *
 * One writer: the `prices` Lambda. If EC2 does not answer, nothing is launched into reservations until it does. Running
 * instances are not affected.
 */
import { DescribeCapacityReservationsCommand, type CapacityReservation, type EC2Client } from '@aws-sdk/client-ec2';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import { familyOf, isBareMetal } from '../../../domain/pool.ts';
import { classify } from '../errors.ts';
import { body, number } from '../store/codec.ts';
import { PRICES_STATE, RESERVED } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';
import { isReserved, poolOf, readReservedPools, type ReservedPool } from './known-reservations.ts';

/** Pages of a thousand reservations. */
const MAX_PAGES = 20;
/** Changes kept per pool. No open bill is as old as the ones before them. */
const MAX_CHANGES = 200;

/** Families and zones that a deployment may buy. */
export interface Bought {
  readonly families: readonly string[];
  readonly zones: readonly string[];
}

/**
 * All reservations of the account and region, including those shared by other accounts. Faults are thrown unchanged.
 */
export async function describeReservations(client: EC2Client): Promise<readonly CapacityReservation[]> {
  const found: CapacityReservation[] = [];
  let token: string | undefined;
  // No filter by id: one missing id would fail the request for all.
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const answer = await client.send(
      new DescribeCapacityReservationsCommand(token === undefined ? {} : { NextToken: token }),
    );
    found.push(...(answer.CapacityReservations ?? []));
    token = answer.NextToken;
    if (token === undefined || token === '') break;
  }
  return found;
}

/** Final states, after which a reservation never has capacity (API_CapacityReservation). */
const OVER = ['expired', 'cancelled', 'cancelling', 'failed', 'payment-failed', 'unsupported'];
const ACTIVE = 'active';

/** Issues of the named reservations. `failures`: unusable as they are. `notes`: good to know. */
export function reservationIssues(
  all: readonly CapacityReservation[],
  named: readonly string[],
  bought: Bought,
): { readonly failures: readonly Issue[]; readonly notes: readonly Issue[] } {
  const known = new Map(all.map((r) => [r.CapacityReservationId, r]));
  const failures: Issue[] = [];
  const notes: Issue[] = [];
  for (const id of named) {
    const why = whyNever(known.get(id), bought);
    if (why !== null) failures.push({ at: 'reservations', message: `${id} ${why}` });
    else notes.push(...notesOn(id, known.get(id)).map((message) => ({ at: 'reservations', message })));
  }
  return { failures, notes };
}

function whyNever(found: CapacityReservation | undefined, { families, zones }: Bought): string | null {
  if (found === undefined) return 'is not in this account and region; correct the id, or leave it out';
  const { InstanceType: type = '', AvailabilityZone: zone = '', State: state = '', Tenancy: tenancy = '' } = found;
  if (OVER.includes(state)) return `is ${state}; leave it out, or name one that is active`;
  if (found.ReservationType === 'capacity-block' || found.Interruptible === true)
    return 'is a Capacity Block or interruptible; name an On-Demand Capacity Reservation that is neither';
  if (found.InstancePlatform !== 'Linux/UNIX')
    return `is for ${found.InstancePlatform ?? 'no platform'}, and instances are Linux/UNIX; leave it out`;
  if (tenancy !== 'default') return `has the tenancy ${tenancy}, and instances have default; leave it out`;
  if (!families.includes(familyOf(type)) || isBareMetal(type))
    return `is of ${type}, and ${families.join(', ')} are bought, without bare metal; add its family, or leave it out`;
  if (!zones.includes(zone))
    return `is in ${zone}, and there are subnets in ${zones.join(', ')}; add one there, or leave it out`;
  return null;
}

function notesOn(id: string, { State: state, InstanceMatchCriteria: criteria }: CapacityReservation = {}): string[] {
  const waits = `${id} is ${state ?? 'in no state'}, and used once it is ${ACTIVE}`;
  const open = `${id} is open: any instance of its type in its zone takes its places, on-demand ones of this deployment too; make it targeted to keep them`;
  return [...(state === ACTIVE ? [] : [waits]), ...(criteria === 'open' ? [open] : [])];
}

export interface ReservationParts extends Bought {
  readonly client: EC2Client;
  readonly table: Table;
  /** Ids in the configuration. */
  readonly named: readonly string[];
}

export interface ReservationsRead {
  /** Number of ids in the configuration. */
  readonly named: number;
  /** Reserved instances that can be launched, used or not. */
  readonly instances: number;
  /** Faults of some of them. */
  readonly issues: readonly Issue[];
  /** Reason why EC2 did not answer; null if it did. */
  readonly fault: string | null;
}

/** Reads from EC2 and writes to the table. Null: the configuration names none. Throws only faults of the table. */
export async function refreshReservations(parts: ReservationParts, now: EpochMs): Promise<ReservationsRead | null> {
  const { client, table, named } = parts;
  const before = await readReservedPools(table);
  if (named.length === 0 && before.every((p) => p.ids.length === 0 && !isReserved(p))) return null;
  const asked = named.length === 0 ? [] : await describeReservations(client).catch(faultOf);
  if (asked instanceof EbbError) {
    // Prices stay as they were: a reservation does not end because EC2 cannot be asked.
    await write(
      table,
      before.map((p) => ({ ...p, ids: [] })),
      now,
    );
    return { named: named.length, instances: 0, issues: [], fault: asked.message };
  }
  const { failures } = reservationIssues(asked, named, parts);
  const pools = merged(before, usableOf(asked, named, parts), now);
  await write(table, pools, now);
  const instances = pools.reduce((sum, p) => sum + (p.ids.length === 0 ? 0 : p.instances), 0);
  return { named: named.length, instances, issues: failures, fault: null };
}

const faultOf = (error: unknown): EbbError => classify(error, 'ec2 DescribeCapacityReservations');

type Usable = Omit<ReservedPool, 'turnsMs'>;

function usableOf(all: readonly CapacityReservation[], named: readonly string[], bought: Bought): readonly Usable[] {
  const known = new Map(all.map((r) => [r.CapacityReservationId, r]));
  const usable = named.flatMap((id) => {
    const found = known.get(id);
    if (found?.State !== ACTIVE || whyNever(found, bought) !== null) return [];
    const { InstanceType: type = '', AvailabilityZone: zone = '', TotalInstanceCount: instances = 0 } = found;
    return [{ id, type, zone, instances }];
  });
  return [...Map.groupBy(usable, (r) => `${r.type}/${r.zone}`).values()].flatMap((members) => {
    const [first] = members;
    if (first === undefined) return [];
    const instances = members.reduce((sum, r) => sum + r.instances, 0);
    return [{ type: first.type, zone: first.zone, ids: members.map((r) => r.id), instances }];
  });
}

/** Pools outlive their reservations, because bills of their instances may still be open. */
function merged(before: readonly ReservedPool[], usable: readonly Usable[], now: EpochMs): readonly ReservedPool[] {
  const old = new Map(before.map((p) => [poolOf(p), p]));
  const fresh = new Map(usable.map((p) => [poolOf(p), p]));
  return [...new Set([...old.keys(), ...fresh.keys()])].sort().flatMap((pool) => {
    const [was, is] = [old.get(pool), fresh.get(pool)];
    const changes = was?.turnsMs ?? [];
    const isChange = (changes.length % 2 === 1) !== (is !== undefined);
    const all = isChange ? [...changes, raw(now)] : changes;
    const turnsMs = all.length > MAX_CHANGES ? all.slice(2) : all;
    if (is !== undefined) return [{ ...is, turnsMs }];
    return was === undefined ? [] : [{ ...was, ids: [], turnsMs }];
  });
}

async function write(table: Table, pools: readonly ReservedPool[], now: EpochMs): Promise<void> {
  await table.write({ key: RESERVED, set: { b: body(pools) } });
  await table.write({ key: PRICES_STATE, set: { reservedMs: number(raw(now)) } });
}
