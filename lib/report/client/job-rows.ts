/** Selection and order of jobs in a table. Pure: a hundred thousand rows are searched and sorted at typing speed. */
import type { Jobs } from './columns.ts';

/** Outcome of a job with respect to its deadline. */
export const FATES = ['on time', 'done', 'late', 'failed', 'cancelled', 'unfinished'] as const;
export type Fate = (typeof FATES)[number];

export const FILTERS = ['all', 'missed', 'late', 'interrupted', 'unfinished', 'failed'] as const;
export type Filter = (typeof FILTERS)[number];

export const SORTABLE = [
  'key',
  'name',
  'owner',
  'class',
  'fate',
  'tasks',
  'submittedMs',
  'waitedS',
  'tookS',
  'lateS',
  'costUsd',
  'onDemandUsd',
  'interruptions',
] as const;
export type SortKey = (typeof SORTABLE)[number];

export interface Query {
  /** Text in the key, name or owner, in any case. */
  readonly text: string;
  readonly filter: Filter;
  /** `all` or a class of jobs. */
  readonly class: string;
  readonly sort: SortKey;
  readonly descending: boolean;
}

/** Values derived from the columns, by row. */
export interface JobTable {
  readonly jobs: Jobs;
  readonly fate: readonly Fate[];
  /** 1 for jobs not done by their deadline, as the totals count them. */
  readonly missed: Uint8Array;
  readonly waitedS: Float64Array;
  readonly tookS: Float64Array;
  /** Time past the deadline; negative: early. NaN without a deadline or an end. */
  readonly lateS: Float64Array;
  readonly costUsd: Float64Array;
}

export function jobTable(jobs: Jobs): JobTable {
  const column = (of: (i: number) => number): Float64Array => Float64Array.from({ length: jobs.rows }, (_, i) => of(i));
  const between = (from: Jobs['startedMs'], to: Jobs['startedMs']): Float64Array =>
    column((i) => ((to[i] ?? NaN) - (from[i] ?? NaN)) / 1000);
  const lateS = between(jobs.deadlineMs, jobs.finishedMs);
  const fate = Array.from({ length: jobs.rows }, (_, i) => fateOf(textAt(jobs, 'state', i), lateS[i] ?? NaN));
  return {
    jobs,
    fate,
    missed: Uint8Array.from(fate, (f, i) =>
      Number(!Number.isNaN(jobs.deadlineMs[i] ?? NaN) && f !== 'on time' && f !== 'done'),
    ),
    waitedS: between(jobs.submittedMs, jobs.startedMs),
    tookS: between(jobs.submittedMs, jobs.finishedMs),
    lateS,
    costUsd: column(
      (i) =>
        (jobs.workUsd[i] ?? 0) +
        (jobs.wastedUsd[i] ?? 0) +
        (jobs.speculativeUsd[i] ?? 0) +
        (jobs.movedUsd[i] ?? 0) +
        (jobs.idleUsd[i] ?? 0),
    ),
  };
}

export const textAt = (jobs: Jobs, column: 'key' | 'name' | 'owner' | 'class' | 'state', row: number): string =>
  jobs[column].dictionary[jobs[column].index[row] ?? 0] ?? '';

function fateOf(state: string, lateS: number): Fate {
  if (state === 'failed' || state === 'cancelled') return state;
  if (state !== 'succeeded') return 'unfinished';
  return Number.isNaN(lateS) ? 'done' : lateS > 0 ? 'late' : 'on time';
}

/** Rows of the query in its order; equal rows stay in the order of submission. O(rows log rows). */
export function rowsOf(table: JobTable, query: Query): Uint32Array {
  const { jobs } = table;
  const matches = matcher(table, query);
  const rows = new Uint32Array(jobs.rows);
  let found = 0;
  for (let i = 0; i < jobs.rows; i++) if (matches(i)) rows[found++] = i;
  const order = orderOf(table, query.sort);
  const sign = query.descending ? -1 : 1;
  return rows.subarray(0, found).sort((a, b) => {
    const [x, y] = [order[a] ?? NaN, order[b] ?? NaN];
    // Missing values come last in either direction.
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return sign * (x - y) || a - b;
  });
}

function matcher({ jobs, fate, missed }: JobTable, query: Query): (row: number) => boolean {
  const wanted = query.text.trim().toLowerCase();
  // Each distinct text is searched once; without a search text none is.
  const hits = (wanted === '' ? [] : SEARCHED).map((column) => ({
    index: jobs[column].index,
    hit: Uint8Array.from(inLowerCase(jobs[column].dictionary), (text) => Number(text.includes(wanted))),
  }));
  const textMatches = (i: number): boolean => wanted === '' || hits.some((h) => h.hit[h.index[i] ?? 0] === 1);
  const classMatches = (i: number): boolean => query.class === 'all' || textAt(jobs, 'class', i) === query.class;
  const passes: Record<Filter, (i: number) => boolean> = {
    all: () => true,
    missed: (i) => missed[i] === 1,
    late: (i) => fate[i] === 'late',
    interrupted: (i) => (jobs.interruptions[i] ?? 0) > 0,
    unfinished: (i) => fate[i] === 'unfinished',
    failed: (i) => fate[i] === 'failed' || fate[i] === 'cancelled',
  };
  const passesFilter = passes[query.filter];
  return (i) => passesFilter(i) && classMatches(i) && textMatches(i);
}

const SEARCHED = ['key', 'name', 'owner'] as const;

/** Lower-case dictionaries, kept for repeated searches. */
const lowered = new WeakMap<readonly string[], readonly string[]>();

function inLowerCase(dictionary: readonly string[]): readonly string[] {
  let texts = lowered.get(dictionary);
  if (texts === undefined) lowered.set(dictionary, (texts = dictionary.map((text) => text.toLowerCase())));
  return texts;
}

type Order = Float64Array | Float32Array;

/** Sort orders, kept: comparing 100,000 names again for every letter typed would be noticed. */
const orders = new WeakMap<JobTable, Map<SortKey, Order>>();

function orderOf(table: JobTable, sort: SortKey): Order {
  let known = orders.get(table);
  if (known === undefined) orders.set(table, (known = new Map<SortKey, Order>()));
  let order = known.get(sort);
  if (order === undefined) known.set(sort, (order = makeOrder(table, sort)));
  return order;
}

/** Sort keys of a column; texts have their rank among the distinct ones. */
function makeOrder(table: JobTable, sort: SortKey): Order {
  const { jobs } = table;
  switch (sort) {
    case 'fate':
      return Float64Array.from(table.fate, (f) => FATES.indexOf(f));
    case 'key':
    case 'name':
    case 'owner':
    case 'class': {
      const { dictionary, index } = jobs[sort];
      const ranks = new Float64Array(dictionary.length);
      const compare = new Intl.Collator('en', { numeric: true }).compare;
      [...dictionary.keys()]
        .sort((a, b) => compare(dictionary[a] ?? '', dictionary[b] ?? ''))
        .forEach((place, rank) => (ranks[place] = rank));
      return Float64Array.from(index, (place) => ranks[place] ?? 0);
    }
    case 'waitedS':
    case 'tookS':
    case 'lateS':
    case 'costUsd':
      return table[sort];
    case 'tasks':
    case 'submittedMs':
    case 'onDemandUsd':
    case 'interruptions':
      return jobs[sort];
  }
}
