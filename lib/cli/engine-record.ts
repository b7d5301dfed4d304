import { EbbError } from '../kernel/errors.ts';
import { poolId } from '../kernel/ids.ts';
import { epochMs, usdPerHour, type EpochMs } from '../kernel/units.ts';
import type { InstanceList, InstanceView } from '../api/schemas.ts';
import type { RecordSource } from '../drivers/local/datasets/capacity-dataset-folder.ts';
import { recordOf, type KeptInstance } from '../market/capacity-record.ts';
import { all, type Client } from './client.ts';
import { routes } from './routes.ts';

/** Most items that the API gives at once. */
const PAGE = 1000;

/**
 * Capacity record of a remote engine, from its API, up to the time of the first request. `ownRecord` of
 * lib/drivers/local/models reads the same from a directory. A deployment keeps instances for `historyDays`. Throws
 * `not-found`.
 */
export async function engineRecord(client: Client, name: string): Promise<RecordSource> {
  const first = await client.get<InstanceList>(routes.instances, { limit: PAGE });
  const older =
    first.next === null ? [] : await all<InstanceView>(client, routes.instances, { limit: PAGE, cursor: first.next });
  const record = recordOf([...first.items, ...older].map(keptOf), instantOf(first.asOf));
  if (record !== null) return { name, record };
  throw new EbbError('not-found', {
    what: 'this engine has had no spot instance, so it has no record of capacity',
    got: name,
    next: 'train later, or name series of availability with --markets',
  });
}

const keptOf = (i: InstanceView): KeptInstance => ({
  id: i.id,
  pool: poolId(i.pool),
  bid: i.bid === 'uncapped' ? i.bid : usdPerHour(i.bid),
  launchedMs: instantOrNull(i.launchedAt),
  warnedMs: instantOrNull(i.warnedAt),
  endedMs: instantOrNull(i.endedAt),
  endCause: i.endCause,
  ...(i.marketCause === null ? {} : { marketCause: i.marketCause }),
});

const instantOf = (iso: string): EpochMs => epochMs(Date.parse(iso));
const instantOrNull = (iso: string | null): EpochMs | null => (iso === null ? null : instantOf(iso));
