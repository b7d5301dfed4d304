import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { HttpResponse } from '@smithy/core/protocols';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TaskLogs } from '../../../../lib/drivers/aws/fleet/task-logs.ts';
import { endMarkOf } from '../../../../lib/drivers/aws/fleet/request-names.ts';
import { attemptId } from '../../../../lib/kernel/ids.ts';

const ATTEMPT = attemptId('1.1');
const REPORT = `${endMarkOf(ATTEMPT)} max-rss-bytes 1 cpu-microseconds 1`;

/** A log of these pages, which answers as GetLogEvents does: a token per page, the same one at the end. */
function logOf(pages: readonly (readonly string[])[]): { logs: TaskLogs; asked: number[] } {
  const asked: number[] = [];
  const client = new CloudWatchLogsClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestHandler: {
      handle: async (request: { body: Uint8Array }) => {
        const { nextToken } = JSON.parse(Buffer.from(request.body).toString()) as { nextToken?: string };
        const n = Number(nextToken ?? 0);
        asked.push(n);
        const events = (pages[n] ?? []).map((message) => ({ message, timestamp: 0, ingestionTime: 0 }));
        const body = JSON.stringify({ events, nextForwardToken: String(Math.min(n + 1, pages.length)) });
        return { response: new HttpResponse({ statusCode: 200, headers: {}, body: new Blob([body]).stream() }) };
      },
    },
  });
  const logs = new TaskLogs({ client, region: 'us-east-1', logGroup: 'tasks', streamOf: async () => 'ebb/task/1' });
  return { logs, asked };
}

async function inPieces(logs: TaskLogs, maxBytes: number): Promise<string> {
  let text = '';
  for (let offset = 0; ;) {
    const chunk = await logs.read(ATTEMPT, 'stdout', offset, maxBytes);
    text += chunk.text;
    offset = chunk.nextOffset;
    if (offset >= chunk.totalBytes) return text;
  }
}

describe('the log of a task', () => {
  it('has an end that one request finds, without the report of the entrypoint', async () => {
    const { logs, asked } = logOf([['one', 'two', REPORT]]);
    expect(await logs.end(ATTEMPT)).toEqual({ text: 'one\ntwo', isMerged: true });
    expect(asked).toHaveLength(1);
  });

  it('is the same in pieces of any size, whatever pages it comes in', async () => {
    const line = fc.oneof(fc.constant(REPORT), fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }));
    const pages = fc.array(fc.array(line, { maxLength: 4 }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(pages, fc.integer({ min: 4, max: 40 }), async (all, maxBytes) => {
        const shown = all.flat().filter((l) => l !== REPORT);
        expect(await inPieces(logOf(all).logs, maxBytes)).toBe(shown.join('\n'));
      }),
      { seed: 7, numRuns: 60 },
    );
  });

  it('is read no further than what was asked for, and from there on', async () => {
    const pages = Array.from({ length: 20 }, (_, n) => Array.from({ length: 100 }, () => `page ${n}`));
    const { logs, asked } = logOf(pages);
    const first = await logs.read(ATTEMPT, 'stdout', 0, 100);
    expect(asked).toEqual([0]);
    expect(first.totalBytes).toBeGreaterThan(first.nextOffset);
    expect(await inPieces(logs, 2000)).toBe(pages.flat().join('\n'));
    // Some eight pieces to ten pages, each read again from the page that it begins in.
    expect(asked.length).toBeLessThan(60);
  });

  it('is found at its end in one call for each page', async () => {
    const lines = Array.from({ length: 10_000 }, (_, n) => `line ${n} ${'x'.repeat(80)}`);
    const pages = [lines, lines, lines];
    const { logs, asked } = logOf(pages);
    const whole = Buffer.byteLength(pages.flat().join('\n'));
    const { text, totalBytes } = await logs.read(ATTEMPT, 'stdout', whole - 10, 100);
    expect(text).toBe('x'.repeat(10));
    expect(totalBytes).toBe(whole);
    expect(asked).toHaveLength(pages.length + 1);
  });
});
