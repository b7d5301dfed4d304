import { expect, it } from '@jest/globals';
import type { CostReport, CostRowView, JobList } from '../../../lib/api/schemas.ts';
import { cost } from '../../../lib/cli/actions/inventory.ts';
import type { Client } from '../../../lib/cli/client.ts';
import type { Context } from '../../../lib/cli/context.ts';
import { HEALTH, jobOf, moneyOf } from './views.ts';
import { PLAIN } from '../../support/run-ebb.ts';

const NOW = HEALTH.now;

it('cost names every job, on whatever page of the jobs it is', async () => {
  const money = moneyOf({ workUsd: 1, totalUsd: 1, onDemandUsd: 2, instanceHours: 1 });
  const rows: CostRowView[] = ['j-new', 'j-old', '(aged out)'].map((key) => ({ key, ...money }));
  const pages: Record<string, JobList> = {
    first: { items: [jobOf({ id: 'j-new', name: 'young' })], next: 'second', asOf: NOW },
    second: { items: [jobOf({ id: 'j-old', name: 'grey' })], next: 'third', asOf: NOW },
  };
  const asked: string[] = [];
  const get = async (path: string, query: { cursor?: string } = {}): Promise<unknown> => {
    if (path === '/api/costs') return { by: 'job', asOf: NOW, rows, next: null, total: money } satisfies CostReport;
    asked.push(query.cursor ?? 'first');
    return pages[query.cursor ?? 'first'];
  };
  const lines: string[] = [];
  const output = { ...PLAIN, columns: 200, line: (text: string) => void lines.push(text) };
  const context = { output, json: false, client: async () => ({ get }) as unknown as Client } as unknown as Context;
  await cost(context, [], { by: 'job', idle: 'shared' });
  expect(lines.join('\n')).toMatch(/^j-new {2}young .*\nj-old {2}grey .*\n\(aged out\) /m);
  // Nobody is left to be named, so no third page is asked for.
  expect(asked).toEqual(['first', 'second']);
});
