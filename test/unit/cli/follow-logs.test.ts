import { expect, it } from '@jest/globals';
import type { LogView } from '../../../lib/api/schemas.ts';
import { logs } from '../../../lib/cli/actions/logs.ts';
import type { Client, Query } from '../../../lib/cli/client.ts';
import type { Context } from '../../../lib/cli/context.ts';
import { PLAIN } from '../../support/run-ebb.ts';

type Outcome = LogView['outcome'];

/** Follows the log of a task of which the engine answers so, one state of its attempts after the other. */
async function followed(...states: readonly (readonly Outcome[])[]): Promise<string> {
  let looks = 0;
  const get = async (path: string, query: Query = {}): Promise<unknown> => {
    const outcomes = states[Math.min(looks, states.length - 1)]!;
    if (path.endsWith('/attempts')) return { items: outcomes.map((outcome) => ({ outcome })) };
    const won = outcomes.indexOf('succeeded');
    const decisive = won === -1 ? outcomes.length : won + 1;
    const number = Number(query['attempt'] ?? decisive);
    const outcome = outcomes[number - 1] ?? null;
    looks++;
    const text = query['offset'] === 0 ? `log of ${number}\n` : '';
    const rest = { stream: 'stdout', totalBytes: 9, nextOffset: 9, merged: false, url: null, reason: null };
    return { ...rest, text, number, outcome, ended: outcome !== null, latest: number === decisive };
  };
  let written = '';
  const output = {
    ...PLAIN,
    live: false,
    note: (t: string) => void (written += `${t}\n`),
    write: (t: string) => void (written += t),
  };
  const context = { output, json: false, client: async () => ({ get }) as unknown as Client } as unknown as Context;
  await logs(context, ['j'], { follow: true, task: 0 });
  return written;
}

it('a log that is followed goes on with the copy that has won', async () => {
  expect(await followed([null], ['superseded', 'succeeded'])).toBe('log of 1\n--- attempt 2 ---\nlog of 2\n');
});

it('a log that is followed ends with the winner, though other attempts came after it', async () => {
  expect(await followed([null], ['succeeded', 'superseded'])).toBe('log of 1\n');
});

it('a log that is followed from a copy on ends with the original that has won', async () => {
  expect(await followed([null, null], ['succeeded', 'superseded'])).toBe('log of 2\n--- attempt 1 ---\nlog of 1\n');
});
