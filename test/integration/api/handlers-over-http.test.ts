import { afterEach, describe, expect, it } from '@jest/globals';
import { httpClient } from '../../../lib/cli/client.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import type { JobView, SubmitAnswer } from '../../../lib/api/schemas.ts';
import { serveApi, type ApiServer } from '../../../lib/api/server/server.ts';
import { apiUnderTest, jobFile, NOW } from '../../support/api.ts';

const TOKEN = 'a-token-that-is-long-enough';
let server: ApiServer | null = null;
afterEach(async () => {
  await server?.close(0);
  server = null;
});

describe('the exported handlers behind the local server, asked by the client of the command line', () => {
  it('take a job, answer for it, and tell what happens to it as it happens', async () => {
    const api = apiUnderTest();
    server = await serveApi({ dispatch: api.dispatch, port: 0, token: TOKEN });
    const client = httpClient(server.url, TOKEN);
    const { job } = await client.post<SubmitAnswer>('/api/jobs', { body: jobFile() });
    expect((await client.get<JobView>('/api/jobs/render')).id).toBe(job.id);

    const token = await api.store.takeLease('test');
    const happen = (text: string): Promise<void> =>
      api.store.commit(token, [
        { put: 'event', value: { atMs: NOW, type: 'test.happened', job: jobId(job.id), text, data: {} } },
      ]);
    await happen('first');
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const event of client.events(0, stop.signal, 'render')) {
      if (event.type !== 'test.happened') continue;
      seen.push(event.text);
      if (event.text === 'first') await happen('second');
      if (event.text === 'second') break;
    }
    stop.abort();
    expect(seen).toEqual(['first', 'second']);
  });

  it('refuse a client with another token, in the words of the problem', async () => {
    const api = apiUnderTest();
    server = await serveApi({ dispatch: api.dispatch, port: 0, token: TOKEN });
    await expect(httpClient(server.url, `${TOKEN}x`).get('/api/jobs')).rejects.toMatchObject({
      code: 'unauthorized',
      facts: { next: expect.stringContaining('EBB_TOKEN') },
    });
  });
});
