import { beforeAll, describe, expect, it } from '@jest/globals';
import { decodeJobs } from '../../../lib/report/client/columns.ts';
import { FILTERS, jobTable, rowsOf, SORTABLE, type JobTable, type Query } from '../../../lib/report/client/job-rows.ts';
import { compare } from '../../../lib/report/comparison.ts';
import { detailsOf } from '../../../lib/report/details.ts';
import { fabricated } from './outcomes.ts';

const run = fabricated({ preset: 'p', jobs: 3000, late: 0.05 });
const ALL: Query = { text: '', filter: 'all', class: 'all', sort: 'submittedMs', descending: false };
let table: JobTable;

beforeAll(async () => {
  const { payload, blobs } = await detailsOf([run], compare([run]), { prices: [] });
  const jobs = payload.runs[0]?.jobs;
  if (jobs === undefined || jobs === null) throw new Error('the jobs are not there');
  table = jobTable(await decodeJobs(jobs, (i) => blobs[i] ?? ''));
});

const rows = (query: Partial<Query>): number[] => [...rowsOf(table, { ...ALL, ...query })];
const at = (column: 'deadlineMs' | 'finishedMs' | 'interruptions' | 'tasks', i: number): number =>
  run.jobs[column][i] ?? NaN;

describe('what is shown', () => {
  it('missed deadlines are as many as the totals say', () => {
    expect(run.totals.missed).toBeGreaterThan(50);
    expect(rows({ filter: 'missed' })).toHaveLength(run.totals.missed);
  });

  it.each(FILTERS)('%s: the rows that the run itself has', (filter) => {
    const passes = (i: number): boolean => {
      const state = run.jobs.state[i] ?? '';
      const late = state === 'succeeded' && at('finishedMs', i) > at('deadlineMs', i);
      switch (filter) {
        case 'all':
          return true;
        case 'late':
          return late;
        case 'missed':
          return !Number.isNaN(at('deadlineMs', i)) && (late || state !== 'succeeded');
        case 'interrupted':
          return at('interruptions', i) > 0;
        case 'unfinished':
          return state === 'running';
        case 'failed':
          return state === 'failed';
      }
    };
    const expected = run.jobs.key.flatMap((_, i) => (passes(i) ? [i] : []));
    expect(expected.length).toBeGreaterThan(0);
    expect(rows({ filter })).toEqual(expected);
  });

  it('a search is in the key, the name and the owner, in any case, and joins with the rest', () => {
    const found = rows({ text: ' TEMPLATE-7 ', class: 'deadline' });
    const expected = run.jobs.name.flatMap((name, i) =>
      name.includes('template-7') && run.jobs.class[i] === 'deadline' ? [i] : [],
    );
    expect(expected.length).toBeGreaterThan(10);
    expect(found).toEqual(expected);
    expect(rows({ text: 'job-2999' })).toEqual([2999]);
    expect(rows({ text: 'no such thing' })).toEqual([]);
  });
});

describe('order', () => {
  it.each(SORTABLE)('%s: every row once; the other way round the other way round', (sort) => {
    const up = rows({ sort });
    expect(up.toSorted((a, b) => a - b)).toEqual([...run.jobs.key.keys()]);
    expect(new Set(rows({ sort, descending: true }))).toEqual(new Set(up));
    expect(rows({ sort, descending: true })).not.toEqual(up);
  });

  it('is by number, and equal rows stay in order of submission', () => {
    const up = rows({ sort: 'tasks' });
    const expected = [...run.jobs.key.keys()].sort((a, b) => at('tasks', a) - at('tasks', b) || a - b);
    expect(up).toEqual(expected);
  });

  it('jobs without a deadline come last whichever way lateness is sorted', () => {
    for (const descending of [false, true]) {
      const values = rows({ sort: 'lateS', descending }).map((i) => at('finishedMs', i) - at('deadlineMs', i));
      const known = values.findIndex(Number.isNaN);
      expect(known).toBeGreaterThan(100);
      expect(values.slice(known).every(Number.isNaN)).toBe(true);
      const seen = values.slice(0, known);
      expect(seen).toEqual(seen.toSorted((a, b) => (descending ? b - a : a - b)));
    }
  });

  it('names with numbers in them are in the order of the numbers', () => {
    const names = rows({ sort: 'name' }).map((i) => run.jobs.name[i] ?? '');
    expect(names.indexOf('template-2')).toBeLessThan(names.indexOf('template-10'));
    expect(names.indexOf('template-10')).toBeGreaterThan(0);
  });
});
