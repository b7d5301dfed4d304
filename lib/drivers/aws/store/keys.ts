import { createHash } from 'node:crypto';
import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';

/**
 * One table, and in it every key. What is read together lies together: a job with its tasks and attempts in one
 * partition, an instance with its visits and its ledger in another. docs/aws-store.md says who reads what by which key.
 */
export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Tasks whose records share an item: a lone change rewrites about 1 KB, a start of thousands writes few items. */
const TASKS_PER_ITEM = 32;
/** Jobs in one item of the list of all: some 30 bytes each, so that an item is about a kilobyte. */
export const JOBS_PER_ITEM = 32;
/** Bytes of a sort key that may be text of a user; the rest of the 1,024 holds a hash. */
const SORT_KEY_TEXT_BYTES = 800;

const DIGITS = 15;
/** Numbers in sort keys, so that their order is that of the numbers. */
export const padded = (n: number): string => String(n).padStart(DIGITS, '0');
export const unpadded = (sk: string): number => Number(sk.slice(-DIGITS));

export const HEAD: Key = { pk: 'HEAD', sk: 'HEAD' };

export const jobKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'JOB' });
export const specKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'SPEC' });
/** The latest explanation of a job that the newest plan does not explain. */
export const explanationKey = (job: string): Key => ({ pk: `J#${job}`, sk: 'WHY' });
export const RUNS = 'RUN#';
export const runsKey = (job: string, stage: string, index: number): Key => ({
  pk: `J#${job}`,
  sk: `${RUNS}${stage}#${padded(Math.floor(index / TASKS_PER_ITEM))}`,
});
/**
 * Where the records of a small job's tasks would lie if not in its own item; ended attempts moved out of that lie
 * behind it.
 */
export const innerRunsKey = (job: string): Key => ({ pk: `J#${job}`, sk: `${RUNS}~` });
/** From the job's item to the last of its `RUN#` items. */
export const RUNS_RANGE = { from: 'JOB', to: `${RUNS}\uffff` } as const;
/** Ended attempts that made a `RUN#` item too large. Sorts behind it, and is found with it. */
export const spillKey = (runs: Key, ordinal: number): Key => ({ pk: runs.pk, sk: `${runs.sk}#${padded(ordinal)}` });
export const LEDGER = 'LEDGER#';
export const ledgerOfJobKey = (job: string, instance: string): Key => ({ pk: `J#${job}`, sk: `${LEDGER}${instance}` });

export const instanceKey = (instance: string): Key => ({ pk: `I#${instance}`, sk: 'INSTANCE' });
export const VISITS = 'RUN#';
/** Attempts placed on the instance by one commit. */
export const visitsKey = (instance: string, commit: number): Key => ({
  pk: `I#${instance}`,
  sk: `${VISITS}${padded(commit)}`,
});
export const ledgerKey = (instance: string, part: number): Key => ({
  pk: `I#${instance}`,
  sk: `${LEDGER}${padded(part)}`,
});

/** What is not over, some dozens of jobs and instances to an item: what a process reads that has just begun. */
export const ACTIVE = 'ACTIVE';
export const activeKey = (part: number): Key => ({ pk: ACTIVE, sk: padded(part) });
/** What was submitted and no commit knows of yet: what a look reads (arrivals.ts). Named by the first of its jobs. */
export const NEW = 'NEW';
export const newKey = (job: string): Key => ({ pk: NEW, sk: `J#${job}` });
/** The item of a job or an instance, whose partition is listed somewhere. */
export const itemOfPartition = (pk: string): Key => ({ pk, sk: pk.startsWith('J#') ? 'JOB' : 'INSTANCE' });

export const EFFECTS = 'EFFECTS';
export const effectsKey = (commit: number, part: number): Key => ({
  pk: EFFECTS,
  sk: `${padded(commit)}#${padded(part)}`,
});

/** What the newest plan explains, of all jobs together. */
export const EXPLAINED: Key = { pk: 'EXPLAINED', sk: 'NEWEST' };
export const planKey = (plan: string): Key => ({ pk: `P#${plan}`, sk: 'PLAN' });
export const EVENTS = 'EVENTS';
export const eventsKey = (first: number): Key => ({ pk: EVENTS, sk: padded(first) });
/** All jobs in order of their arrival, numbered from 1 without gaps. */
export const JOBS = 'JOBS';
export const jobsKey = (arrival: number): Key => ({ pk: JOBS, sk: padded(Math.floor((arrival - 1) / JOBS_PER_ITEM)) });
/** The newest job of a name. */
export const namedKey = (name: string): Key => ({ pk: `N#${name}`, sk: 'NEWEST' });
export const submittedKey = (key: string): Key => ({ pk: `K#${sha256(key)}`, sk: 'KEY' });
/** Only for attempts whose id does not begin with their job's id and a dot. */
export const attemptKey = (attempt: string): Key => ({ pk: `A#${attempt}`, sk: 'ATTEMPT' });

/** What was settled on one day (cost-days.ts). */
export const COSTS = 'COSTS';
/** `day`: `2026-01-31`. */
export const costsKey = (day: string): Key => ({ pk: COSTS, sk: day });

export const MEMORY = 'MEMORY';
/** The key itself as far as a sort key takes it, so that it is found by its beginning. */
export const memoryKey = (key: string): Key => {
  const start = memoryPrefix(key);
  return { pk: MEMORY, sk: start === key ? `${key}|` : `${start}|${sha256(key)}` };
};
export const memoryPrefix = (prefix: string): string => {
  let text = prefix;
  while (Buffer.byteLength(text) > SORT_KEY_TEXT_BYTES) text = text.slice(0, -1);
  // Half of a surrogate pair would become another character.
  return text.isWellFormed() ? text : text.slice(0, -1);
};

/**
 * What the fleet knows of an instance, by our id and by EC2's; what an attempt was to run; what has news
 * (fleet/inbox.ts).
 */
export const fleetKey = (instance: string): Key => ({ pk: `I#${instance}`, sk: 'FLEET' });
export const ec2Key = (ec2: string): Key => ({ pk: `E#${ec2}`, sk: 'FLEET' });
/** Launches that are bought by one request (fleet/launch-groups.ts). */
export const launchKey = (group: string): Key => ({ pk: `L#${group}`, sk: 'FLEET' });
export const markKey = (mark: string): Key => ({ pk: `A#${mark}`, sk: 'ORDER' });
export const NEWS = 'NEWS';
export const newsKey = (instance: string): Key => ({ pk: NEWS, sk: `I#${instance}` });

/** Whether a cycle runs or is wanted (wake.ts), and which one-off schedules will want one (window-ends.ts). */
export const WAKE: Key = { pk: 'WAKE', sk: 'WAKE' };
export const WINDOWS: Key = { pk: 'WINDOWS', sk: 'WINDOWS' };
/** What was spent on a day, `2026-01-31` (spent.ts). */
export const spentKey = (day: string): Key => ({ pk: 'SPENT', sk: day });

/**
 * When prices were asked for, on-demand prices, capacity reservations, and changes of spot prices by day and pool
 * (price-book.ts, on-demand-prices.ts, known-reservations.ts).
 */
export const PRICES_STATE: Key = { pk: 'PRICES', sk: 'STATE' };
export const PRICE_LIST: Key = { pk: 'PRICES', sk: 'LIST' };
export const RESERVED: Key = { pk: 'PRICES', sk: 'RESERVED' };
export const pricesOf = (day: string): string => `PRICES#${day}`;
export const pricesKey = (day: string, pool: string): Key => ({ pk: pricesOf(day), sk: pool });

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Names a key, in maps. */
export const textOf = ({ pk, sk }: Key): string => `${pk}\u0000${sk}`;

/** What commits wrote, by their numbers. */
export const LOG = 'LOG';
/** Where large commits lie in the bucket. */
export const COMMITS_PREFIX = 'commits/';
export const SPECS_PREFIX = 'specs/';
export const MEMORY_PREFIX = 'memory/';
export const PLANS_PREFIX = 'plans/';
export const COSTS_PREFIX = `${MEMORY_PREFIX}costs/`;
/** Superseded within a minute; what a crash leaves expires with commits. */
export const ARRIVALS_PREFIX = `${COMMITS_PREFIX}arrivals/`;
/** All objects of the store: values that are too large for an item. */
export const STORE_PREFIXES: readonly string[] = [COMMITS_PREFIX, SPECS_PREFIX, MEMORY_PREFIX, PLANS_PREFIX];
/** Tag of objects that nothing names any more: a lifecycle rule deletes them (lib/infra/data.ts). */
export const SUPERSEDED_TAG = { Key: 'superseded', Value: 'yes' } as const;
/**
 * Age from which S3 deletes a superseded object: longer than any process takes from reading a name to reading its
 * object.
 */
export const KEEP_SUPERSEDED_DAYS = 1;
/** What is over, out of the table's stream (docs/archive.md). */
export const ARCHIVE_PREFIX = 'archive/';
/**
 * How long a commit stays, in the table and in the bucket: long after it was carried over to the items (journal.ts).
 */
export const KEEP_COMMITS_DAYS = 60;
export const logKey = (commit: number): Key => ({ pk: LOG, sk: padded(commit) });

/** Index of what is listed newest first: `l` names the list, `a` is the number of arrival. */
export const LISTED = 'listed';
export type List = 'instances' | 'plans' | 'ledger';

/** What `CreateTable` takes; the CDK construct and the tests make the table from the same description. */
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
      // What is listed is then read from the table itself, as it is now.
      Projection: { ProjectionType: 'KEYS_ONLY' },
    },
  ],
});
