/**
 * Asks EC2 about the capacity reservations that the configuration names: type, zone, size and state are EC2's word.
 * How they are kept: known-reservations.ts.
 *
 * One writer: the `prices` Lambda. Where EC2 does not answer, nothing is launched into reservations until it does, and
 * what runs in them runs on.
 */
import { DescribeCapacityReservationsCommand, type CapacityReservation, type EC2Client } from '@aws-sdk/client-ec2';
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import { classify } from '../errors.ts';
import { body, number } from '../store/codec.ts';
import { PRICES_STATE, RESERVED } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';
import { isReserved, poolOf, readReservedPools, type ReservedPool } from './known-reservations.ts';
import { familyOf, isBareMetal } from '../../../domain/pool.ts';

/** A thousand reservations each. */
const MAX_PAGES = 20;
/** Turns of a pool that are kept: of older ones no bill is open. */
const MAX_TURNS = 200;

/** What instances of a deployment may be. */
export interface Bought {
  readonly families: readonly string[];
  readonly zones: readonly string[];
}

/** All reservations of the account and region, also those that others share with it. A fault is thrown as it is. */
export async function describeReservations(client: EC2Client): Promise<readonly CapacityReservation[]> {
  const found: CapacityReservation[] = [];
  let token: string | undefined;
  // Not by their ids: one that does not exist would fail the request for all.
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

/** States after which a reservation never has capacity again (API_CapacityReservation). */
const OVER = ['expired', 'cancelled', 'cancelling', 'failed', 'payment-failed', 'unsupported'];
const ACTIVE = 'active';

/** Whether the named reservations can be used: `failures` never can as things are, `notes` should be known. */
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
  /** Ids that the configuration names. */
  readonly named: readonly string[];
}

export interface ReservationsRead {
  /** How many the configuration names. */
  readonly named: number;
  /** Instances that are reserved and can be launched, in use or not. */
  readonly instances: number;
  /** What is wrong with some of them. */
  readonly issues: readonly Issue[];
  /** Why EC2 did not answer; null: it did. */
  readonly fault: string | null;
}

/** Asks EC2, and writes what it says. Null: the configuration names none. Throws only what the table does. */
export async function refreshReservations(parts: ReservationParts, now: EpochMs): Promise<ReservationsRead | null> {
  const { client, table, named } = parts;
  const before = await readReservedPools(table);
  if (named.length === 0 && before.every((p) => p.ids.length === 0 && !isReserved(p))) return null;
  const asked = named.length === 0 ? [] : await describeReservations(client).catch(faultOf);
  if (asked instanceof EbbError) {
    // What they cost is as it was: a reservation does not end because nobody can ask about it.
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

/** Pools stay when their reservations are gone: instances may be of them, whose bills are to be known. */
function merged(before: readonly ReservedPool[], usable: readonly Usable[], now: EpochMs): readonly ReservedPool[] {
  const old = new Map(before.map((p) => [poolOf(p), p]));
  const fresh = new Map(usable.map((p) => [poolOf(p), p]));
  return [...new Set([...old.keys(), ...fresh.keys()])].sort().flatMap((pool) => {
    const [was, is] = [old.get(pool), fresh.get(pool)];
    const turns = was?.turnsMs ?? [];
    const isTurn = (turns.length % 2 === 1) !== (is !== undefined);
    const all = isTurn ? [...turns, raw(now)] : turns;
    const turnsMs = all.length > MAX_TURNS ? all.slice(2) : all;
    if (is !== undefined) return [{ ...is, turnsMs }];
    return was === undefined ? [] : [{ ...was, ids: [], turnsMs }];
  });
}

async function write(table: Table, pools: readonly ReservedPool[], now: EpochMs): Promise<void> {
  await table.write({ key: RESERVED, set: { b: body(pools) } });
  await table.write({ key: PRICES_STATE, set: { reservedMs: number(raw(now)) } });
}
