import { number } from './codec.ts';
import { jobKey } from './keys.ts';
import type { Table } from './table.ts';

/** From now on the job is not stored under a number up to this one. False when it is there. */
export async function giveUp(table: Table, job: string, upTo: number): Promise<boolean> {
  const { status, item } = await table.write({
    key: jobKey(job),
    set: { x: number(upTo) },
    condition: {
      expression: 'attribute_not_exists(st) AND (attribute_not_exists(x) OR x < :x)',
      values: { ':x': number(upTo) },
    },
  });
  return status === 'done' || item['st'] === undefined;
}
