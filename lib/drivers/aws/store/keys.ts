import { createHash } from 'node:crypto';
import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';

/**
 * Keys of the one table. Things that are read together share a partition: a job with its tasks and attempts, an
 * instance with its visits and ledger. docs/aws-store.md lists readers and keys.
 */
export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/**
 * Tasks whose records share an item. A single change rewrites about 1 KB, and a start of thousands writes few items.
 */
const TASKS_PER_ITEM = 32;
/** Jobs per item in the list of all, some 30 bytes each, so an item has about a kilobyte. */
export const JOBS_PER_ITEM = 32;
/** Bytes of a user's text in a sort key. The rest of the 1,024 holds a hash. */
const SORT_KEY_TEXT_BYTES = 800;

const DIGITS = 15;
/** Number in a sort key, padded so that text order is number order. */
export const padded = (n: number): string => String(n).padStart(DIGITS, '0');
export const unpadded = (sk: string): number => Number(sk.slice(-DIGITS));

export const HEAD: Key = { pk: 'HEAD', sk: 'HEAD' };

export const jobKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'JOB' });
export const specKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'SPEC' });
/** Latest explanation of a job that the newest plan does not explain. */
export const explanationKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'WHY' });
export const RUNS = 'RUN#';
export const runsKey = (job: string, stage: string, index: number): Key => ({
  pk: `J#${job}`,
  sk: `${RUNS}${stage}#${padded(Math.floor(index / TASKS_PER_ITEM))}`,
});
/** Task records of a small job if they were not in its own item. Attempts moved out of the item sort behind it. */
export const innerRunsKey = (job: string): Key => ({ pk: `J#${job}`, sk: `${RUNS}~` });
/** Range from the job's item to the last of its `RUN#` items. */
export const RUNS_RANGE = { from: 'JOB', to: `${RUNS}\uffff` } as const;
/** Ended attempts that were moved out of a `RUN#` item. They sort behind it and are read with it. */
export const spillKey = (runs: Key, ordinal: number): Key => ({ pk: runs.pk, sk: `${runs.sk}#${padded(ordinal)}` });
export const LEDGER = 'LEDGER#';
export const ledgerOfJobKey = (job: string, instance: string): Key => ({ pk: `J#${job}`, sk: `${LEDGER}${instance}` });

export const instanceKey = (instance: string): Key => ({ pk: `I#${instance}`, sk: 'INSTANCE' });
export const VISITS = 'RUN#';
/** Attempts that one commit placed on the instance. */
export const visitsKey = (instance: string, commit: number): Key => ({
  pk: `I#${instance}`,
  sk: `${VISITS}${padded(commit)}`,
});
export const ledgerKey = (instance: string, part: number): Key => ({
  pk: `I#${instance}`,
  sk: `${LEDGER}${padded(part)}`,
});

/** Open work, some dozens of jobs and instances per item. A new process reads it first. */
export const ACTIVE = 'ACTIVE';
export const activeKey = (part: number): Key => ({ pk: ACTIVE, sk: padded(part) });
/** Submissions that no commit knows yet (arrivals.ts), named by their first job. */
export const NEW = 'NEW';
export const newKey = (job: string): Key => ({ pk: NEW, sk: `J#${job}` });
/** Item of a job or an instance whose partition is listed somewhere. */
export const itemOfPartition = (pk: string): Key => ({ pk, sk: pk.startsWith('J#') ? 'JOB' : 'INSTANCE' });

export const EFFECTS = 'EFFECTS';
export const effectsKey = (commit: number, part: number): Key => ({
  pk: EFFECTS,
  sk: `${padded(commit)}#${padded(part)}`,
});

/** Explanations of the newest plan, for all its jobs. */
export const EXPLAINED: Key = { pk: 'EXPLAINED', sk: 'NEWEST' };
export const planKey = (plan: string): Key => ({ pk: `P#${plan}`, sk: 'PLAN' });
export const EVENTS = 'EVENTS';
export const eventsKey = (first: number): Key => ({ pk: EVENTS, sk: padded(first) });
/** All jobs in order of arrival, numbered from 1 without gaps. */
export const JOBS = 'JOBS';
export const jobsKey = (arrival: number): Key => ({ pk: JOBS, sk: padded(Math.floor((arrival - 1) / JOBS_PER_ITEM)) });
/** Newest job of a name. */
export const namedKey = (name: string): Key => ({ pk: `N#${name}`, sk: 'NEWEST' });
export const submittedKey = (key: string): Key => ({ pk: `K#${sha256(key)}`, sk: 'KEY' });
/** Place of an attempt whose id does not begin with its job's id and a dot. */
export const attemptKey = (attempt: string): Key => ({ pk: `A#${attempt}`, sk: 'ATTEMPT' });

/** Costs by day of settlement (cost-days.ts). */
export const COSTS = 'COSTS';
/** `day`: `2026-01-31`. */
export const costsKey = (day: string): Key => ({ pk: COSTS, sk: day });

export const MEMORY = 'MEMORY';
/** Key of a memory row: the text as far as a sort key allows, so that prefixes can be read. */
export const memoryKey = (key: string): Key => {
  const start = memoryPrefix(key);
  return { pk: MEMORY, sk: start === key ? `${key}|` : `${start}|${sha256(key)}` };
};
export const memoryPrefix = (prefix: string): string => {
  let text = prefix;
  while (Buffer.byteLength(text) > SORT_KEY_TEXT_BYTES) text = text.slice(0, -1);
  // Half of a surrogate pair is dropped: it would become another character.
  return text.isWellFormed() ? text : text.slice(0, -1);
};

/** Services, by name. */
export const SERVICES = 'SERVICES';
export const serviceKey = (name: string): Key => ({ pk: SERVICES, sk: name });
/** Port of a service at the load balancer, by target group (traffic/service-addresses.ts). */
export const trafficKey = (group: string): Key => ({ pk: 'TRAFFIC', sk: group });

/** Fleet's record of an instance, by our id and by EC2's; orders of attempts; news (fleet/inbox.ts). */
export const fleetKey = (instance: string): Key => ({ pk: `I#${instance}`, sk: 'FLEET' });
export const ec2Key = (ec2: string): Key => ({ pk: `E#${ec2}`, sk: 'FLEET' });
/** Launches of one purchase request (fleet/launch-groups.ts). */
export const launchKey = (group: string): Key => ({ pk: `L#${group}`, sk: 'FLEET' });
export const markKey = (mark: string): Key => ({ pk: `A#${mark}`, sk: 'ORDER' });
export const NEWS = 'NEWS';
export const newsKey = (instance: string): Key => ({ pk: NEWS, sk: `I#${instance}` });

/** State of the cycle's executions (wake.ts), and of one-off schedules (window-ends.ts). */
export const WAKE: Key = { pk: 'WAKE', sk: 'WAKE' };
/** The same of the controller of services (lambdas/serve). */
export const SERVICE_WAKE: Key = { pk: 'WAKE', sk: 'SERVICES' };
export const WINDOWS: Key = { pk: 'WINDOWS', sk: 'WINDOWS' };
/** Spending of a day, `2026-01-31` (spent.ts). */
export const spentKey = (day: string): Key => ({ pk: 'SPENT', sk: day });

/**
 * Times of fetches, on-demand prices, capacity reservations, and changes of spot prices by day and pool (price-book.ts,
 * on-demand-prices.ts, known-reservations.ts).
 */
export const PRICES_STATE: Key = { pk: 'PRICES', sk: 'STATE' };
export const PRICE_LIST: Key = { pk: 'PRICES', sk: 'LIST' };
export const RESERVED: Key = { pk: 'PRICES', sk: 'RESERVED' };
export const pricesOf = (day: string): string => `PRICES#${day}`;
export const pricesKey = (day: string, pool: string): Key => ({ pk: pricesOf(day), sk: pool });

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Text of a key, for maps. */
export const textOf = ({ pk, sk }: Key): string => `${pk}\u0000${sk}`;

/** Commits, by number. */
export const LOG = 'LOG';
/** Objects of large commits. */
export const COMMITS_PREFIX = 'commits/';
export const SPECS_PREFIX = 'specs/';
export const MEMORY_PREFIX = 'memory/';
export const PLANS_PREFIX = 'plans/';
export const COSTS_PREFIX = `${MEMORY_PREFIX}costs/`;
/** Objects of large submissions. They are superseded within a minute; after a crash they expire like commits. */
export const ARRIVALS_PREFIX = `${COMMITS_PREFIX}arrivals/`;
/** Prefixes of all objects of the store: values too large for an item. */
export const STORE_PREFIXES: readonly string[] = [COMMITS_PREFIX, SPECS_PREFIX, MEMORY_PREFIX, PLANS_PREFIX];
/** Tag of superseded objects, which a lifecycle rule deletes (lib/infra/data.ts). */
export const SUPERSEDED_TAG = { Key: 'superseded', Value: 'yes' } as const;
/** Days until S3 deletes a superseded object: longer than any process takes from its name to its content. */
export const KEEP_SUPERSEDED_DAYS = 1;
/** Finished records from the table's stream (docs/archive.md). */
export const ARCHIVE_PREFIX = 'archive/';
/** Days that commits are kept, in the table and the bucket: long after their compaction (journal.ts). */
export const KEEP_COMMITS_DAYS = 60;
export const logKey = (commit: number): Key => ({ pk: LOG, sk: padded(commit) });

/** Index of lists, newest first. `l` names the list, `a` is the arrival number. */
export const LISTED = 'listed';
export type List = 'instances' | 'plans' | 'ledger';

/** Input of `CreateTable`. The CDK construct and tests make the table from it. */
export const tableDefinition = (name: string): CreateTableCommandInput => ({
  TableName: name,
  BillingMode: 'PAY_PER_REQUEST',
  KeySchema: [
    { AttributeName: 'pk', KeyType: 'HASH' },
    { AttributeName: 'sk', KeyType: 'RANGE' },
  ],
  AttributeDefinitions: [
    { AttributeName: 'pk', AttributeType: 'S' },
    { AttributeName: 'sk', AttributeType: 'S' },
    { AttributeName: 'l', AttributeType: 'S' },
    { AttributeName: 'a', AttributeType: 'N' },
  ],
  GlobalSecondaryIndexes: [
    {
      IndexName: LISTED,
      KeySchema: [
        { AttributeName: 'l', KeyType: 'HASH' },
        { AttributeName: 'a', KeyType: 'RANGE' },
      ],
      // Listed items are read from the table itself, in their current state.
      Projection: { ProjectionType: 'KEYS_ONLY' },
    },
  ],
});
