import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { makeOutput } from '../../../lib/cli/output.ts';
import { costTable, instancesTable, plansTable, poolsTable } from '../../../lib/cli/views/inventory-tables.ts';
import { jobsTable, jobStatus, tasksTable } from '../../../lib/cli/views/job-views.ts';
import { table, type Column } from '../../../lib/cli/views/text-table.ts';
import { HEALTH, instanceOf, jobCostOf, jobOf, moneyOf } from './views.ts';
import { ebb } from '../../support/run-ebb.ts';

const outputOf = (columns: number) =>
  makeOutput({ stdout: { write: () => true, columns }, stderr: { write: () => true }, env: {}, noColor: true });
const widest = (text: string): number => Math.max(...text.split('\n').map((line) => [...line].length));

describe('a table', () => {
  const columns: Column<Record<string, string>>[] = [
    { title: 'NAME', cell: (r) => r['name'] ?? '', wrap: 10 },
    { title: 'NOTE', cell: (r) => r['note'] ?? '', wrap: 20 },
    { title: 'SECOND', cell: () => '22222222', optional: 1 },
    { title: 'FIRST', cell: () => '11111111', right: true, optional: 2 },
  ];
  const row = { name: 'a name', note: 'some words that can go on in lines' };

  it('is as wide as its cells where there is room', () => {
    const shown = table(outputOf(120), columns, [row], 'none').split('\n');
    expect(shown).toHaveLength(2);
    expect(shown[1]).toBe('a name  some words that can go on in lines  22222222  11111111');
  });

  it('wraps before it leaves a column out, and no more than it must', () => {
    const shown = table(outputOf(50), columns, [row], 'none').split('\n');
    expect(shown[0]).toMatch(/^NAME +NOTE +SECOND +FIRST$/);
    expect(shown[1]).toBe('a name  some words that can go  22222222  11111111');
    expect(shown[2]).toBe('        on in lines');
  });

  it('leaves out the columns that may be, and names them', () => {
    const shown = table(outputOf(40), columns, [row], 'none');
    expect(shown).toMatch(/^NAME +NOTE +SECOND$/m);
    expect(shown).toContain('not shown in 40 columns: FIRST');
  });

  it('fits whatever it holds', () => {
    const cell = fc.string({ unit: 'grapheme-ascii', maxLength: 60 });
    fc.assert(
      fc.property(fc.array(fc.record({ name: cell, note: cell }), { minLength: 1, maxLength: 5 }), (rows) => {
        expect(widest(table(outputOf(60), columns, rows, 'none'))).toBeLessThanOrEqual(60);
      }),
    );
  });
});

describe('the tables of the program fit 80 columns', () => {
  const output = outputOf(80);
  const pool = 'c6gd.12xlarge/ap-southeast-2a/on-demand';
  const job = jobOf({
    id: 'j-1mpewm44qwp11yb',
    name: 'a-rather-long-name-of-a-nightly-rendering-job',
    owner: 'somebody-with-a-name',
    deadlineAt: '2026-03-01T13:45:30.000Z',
  });

  it.each([
    ['jobs', () => jobsTable(output, [job], HEALTH.now)],
    ['status', () => jobStatus(output, job, jobCostOf()).split('\n\n').at(-1) ?? ''],
    [
      'tasks',
      () =>
        tasksTable(output, [
          {
            stage: 's'.repeat(60),
            index: 99_999,
            state: 'succeeded',
            attempts: 10,
            failures: 2,
            keptS: 1e6,
            notBeforeAt: null,
          },
        ]),
    ],
    [
      'cost',
      () =>
        costTable(output, {
          by: 'pool',
          asOf: HEALTH.now,
          rows: [{ key: pool, ...moneyOf({ workUsd: 12_345.67, totalUsd: 23_456.78, onDemandUsd: 99_999.99 }) }],
          next: null,
          total: moneyOf({ totalUsd: 23_456.78, onDemandUsd: 99_999.99 }),
        }),
    ],
    [
      'instances',
      () =>
        instancesTable(output, [
          instanceOf({
            id: 'i-bc1e5b081231e2f5',
            pool,
            costUsd: 0.001234,
            running: [0, 1, 2, 3].map((index) => ({ attempt: 'x', job: 'j', stage: 'a-stage', index })),
          }),
        ]),
    ],
    [
      'pools',
      () =>
        poolsTable(output, [
          {
            id: pool,
            instanceType: 'c6gd.12xlarge',
            family: 'c6gd',
            generation: 6,
            arch: 'x86_64',
            zone: 'ap-southeast-2a',
            option: 'on-demand',
            capacity: { cpus: 48, memoryMiB: 98_304, gpus: 0, diskMiB: 0 },
            priceUsdPerHour: 12.3456,
            lowUsdPerHour: 1.2345,
            highUsdPerHour: 12.3456,
            onDemandUsdPerHour: 12.3456,
            liveInstances: 12,
          },
        ]),
    ],
    [
      'plans',
      () =>
        plansTable(output, [
          {
            id: 'p-1mpewm44qwp11yb',
            at: HEALTH.now,
            token: 1,
            preset: 'ebbtide',
            effects: ['launch', 'start', 'stop', 'release'].map((kind) => ({ kind })) as never,
            jobs: [],
            forecast: null,
            solve: {
              used: 'greedy',
              status: 'no-solution',
              objective: 12_345.6,
              greedyObjective: 1,
              bound: null,
              boundKind: null,
              gap: 0.123,
              gapOfCost: null,
              variables: 0,
              constraints: 0,
              elapsedMs: 12_345,
            },
          },
        ]),
    ],
  ])('%s', (_name, drawn) => {
    expect(widest(drawn())).toBeLessThanOrEqual(80);
  });

  it.each([['config'], ['config --presets'], ['models list']])('%s', async (line) => {
    const { code, stdout } = await ebb(line.split(' '));
    expect(code).toBe(0);
    const rows = stdout.split('\n').filter((each) => / {2}/.test(each));
    expect(rows.length).toBeGreaterThan(2);
    expect(widest(rows.join('\n'))).toBeLessThanOrEqual(80);
  });
});
