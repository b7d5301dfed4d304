import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import {
  applyAnswer,
  serviceAnswer,
  serviceExplanation,
  serviceList,
  serviceView,
} from '../../../lib/api/services/schemas.ts';
import { problem } from '../../../lib/api/schemas.ts';
import { templateOf } from '../../../lib/domain/job-features.ts';
import type { Service } from '../../../lib/domain/service.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { instanceId, jobId } from '../../../lib/kernel/ids.ts';
import type { Backend } from '../../../lib/ports/backend.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { MemoryStore } from '../../../lib/drivers/sim/memory-store.ts';
import { apiUnderTest, type ApiUnderTest } from '../../support/api.ts';
import { job, ledgerRow } from '../store-samples.ts';

const FILE = { name: 'web', command: './serve', target: { latency: '1s' }, workdir: '/srv/web', min: 2, max: 5 };

type Under = ApiUnderTest & { readonly woken: () => number };

function services(over: Partial<Backend> = {}): Under {
  let woken = 0;
  const api = apiUnderTest({
    services: {
      scalings: ['reactive'],
      admit: async () => ({ feasible: true, notes: ['a note'] }),
      address: async (name) => `http://127.0.0.1:1/${name}`,
      wake: () => void (woken += 1),
    },
    ...over,
  });
  return { ...api, woken: () => woken };
}

async function told<S extends z.ZodType>(
  asked: ReturnType<ApiUnderTest['get']>,
  schema: S,
): Promise<{ status: number; body: z.output<S> }> {
  const { status, body } = await asked;
  return { status, body: schema.parse(JSON.parse(String(body))) };
}

const apply = (api: Under, file: unknown = FILE) => told(api.post('/api/services', file), applyAnswer);
const refusal = async (asked: ReturnType<ApiUnderTest['get']>) => {
  const { status, body } = await told(asked, problem);
  return [status, body.code, body.detail] as const;
};
const stored = async (api: Under): Promise<Service> => {
  const service = await api.store.service('web');
  if (service === null) throw new Error('there is a service');
  return service;
};

describe('services in the API', () => {
  it('are created, updated, or left as they are, and the controller is woken', async () => {
    const api = services();
    const created = await apply(api);
    expect([created.status, created.body.outcome, created.body.service.revision]).toEqual([201, 'created', 1]);
    expect(created.body.admission).toEqual({ feasible: true, notes: ['a note'] });
    expect((await apply(api)).body.outcome).toBe('unchanged');
    // The order of keys is no change.
    expect((await apply(api, Object.fromEntries(Object.entries(FILE).reverse()))).body.outcome).toBe('unchanged');
    const updated = await apply(api, { ...FILE, env: { A: '1' } });
    expect([updated.status, updated.body.outcome, updated.body.service.revision]).toEqual([200, 'updated', 2]);
    expect((await stored(api)).rollout).toMatchObject({ revision: 2, from: null });
    expect(api.woken()).toBe(4);
    expect((await api.store.events(0, 10)).map((e) => e.text)).toEqual([
      'service web: revision 1 applied',
      'service web: revision 2 applied',
    ]);
  });

  it('are listed and shown, with replicas, load and cost', async () => {
    const api = services();
    await apply(api);
    const list = await told(api.get('/api/services'), serviceList);
    expect(list.body.items.map((s) => [s.name, s.state, s.url])).toEqual([
      ['web', 'deploying', 'http://127.0.0.1:1/web'],
    ]);
    await api.store.submit([{ job: job('j1'), idempotency: null }]);
    const now = await stored(api);
    const replica = {
      number: 1,
      revision: 1,
      job: jobId('j1'),
      port: 20_000,
      phase: 'healthy',
      hasServed: true,
    } as const;
    const replicas = [{ ...replica, sinceMs: now.createdMs, seenMs: now.createdMs, detail: null }];
    await api.store.putService({ ...now, version: now.version + 1, replicas }, []);
    const { body } = await told(api.get('/api/services/web'), serviceView);
    expect(body.replicas).toEqual({ healthy: 1, wanted: 2, all: 1, min: 2, max: 5 });
    expect(body.replicaList).toMatchObject([{ number: 1, phase: 'healthy', job: 'j1', instance: null }]);
    expect(body.cost.totalUsd).toBe(0);
    const explained = await told(api.get('/api/services/web/explain'), serviceExplanation);
    expect(explained.body.scaling).toBe('2 replicas are wanted: nothing has been measured yet');
    expect(explained.body.replicas).toMatchObject([{ number: 1, explanation: { job: 'j1' } }]);
  });

  it('cost what the replicas of all their revisions did, whatever those ran', async () => {
    const api = services();
    await apply(api);
    await apply(api, { ...FILE, command: './other' });
    const token = await api.store.takeLease('test');
    const templates = (await stored(api)).revisions.map(({ spec }) => templateOf({ ...spec.replica, name: 'web-7' }));
    expect(new Set(templates).size).toBe(2);
    const value = [...templates, 'ana/nightly/sh'].map((template, i) => ledgerRow({ template, usd: 0.5 + i }));
    await api.store.commit(token, [{ put: 'ledger', instance: instanceId('i-1'), value }]);
    const { cost } = (await told(api.get('/api/services/web'), serviceView)).body;
    expect([cost.totalUsd, cost.onDemandUsd]).toEqual([2, 0.17]);
  });

  it('have a number of replicas set within `max`, or none', async () => {
    const api = services();
    await apply(api);
    const scale = (replicas: unknown) => api.post('/api/services/web/scale', { replicas });
    expect((await told(scale(4), serviceAnswer)).status).toBe(202);
    expect((await stored(api)).fixedReplicas).toBe(4);
    expect((await told(scale(null), serviceAnswer)).status).toBe(202);
    expect((await stored(api)).fixedReplicas).toBeNull();
    expect(await refusal(scale(6))).toMatchObject([400, 'usage', expect.stringContaining('more replicas than')]);
    for (const wrong of ['4', -1, 1.5, undefined]) expect((await refusal(scale(wrong)))[0]).toBe(400);
    expect((await refusal(api.post('/api/services/web/scale', { replicas: 1, force: true })))[1]).toBe('usage');
  });

  it('are deleted once', async () => {
    const api = services();
    await apply(api);
    const remove = () => api.dispatch({ method: 'DELETE', path: '/api/services/web', headers: {} });
    expect((await told(remove(), serviceAnswer)).body.service.state).toBe('deleting');
    const { version } = await stored(api);
    expect((await remove()).status).toBe(202);
    expect((await stored(api)).version).toBe(version);
  });

  it('that are not there are not found, with the nearest name', async () => {
    const api = services();
    await apply(api);
    expect(await refusal(api.get('/api/services/wbe'))).toMatchObject([
      404,
      'not-found',
      expect.stringContaining('no such'),
    ]);
    const { body } = await told(api.get('/api/services/wbe'), problem);
    expect(JSON.stringify(body)).toContain('Did you mean');
    expect((await refusal(api.post('/api/services/other/scale', { replicas: 1 })))[0]).toBe(404);
    expect((await refusal(api.get('/api/services/no%20name')))[0]).toBe(400);
  });

  it('with faults are refused with all of them, and nothing is stored', async () => {
    const api = services();
    const { status, body } = await told(
      api.post('/api/services', { ...FILE, min: 'two', target: { latency: 'soon' }, replicas: 3 }),
      problem,
    );
    expect([status, body.code]).toEqual([400, 'service-file.invalid']);
    expect(body.issues?.map((i) => i.at).sort()).toEqual(['min', 'replicas', 'target.latency']);
    expect((await refusal(api.post('/api/services', [])))[0]).toBe(400);
    expect((await refusal(api.post('/api/services', 'web')))[0]).toBe(400);
    expect((await refusal(api.post('/api/services', null)))[0]).toBe(400);
    expect(await api.store.services()).toEqual([]);
  });

  it('are refused where no pool can hold a replica', async () => {
    const unplaceable = new EbbError('job.unplaceable', { what: 'no pool can hold it' });
    const refuses = {
      scalings: ['reactive'],
      admit: () => Promise.reject(unplaceable),
      address: async () => null,
      wake: () => undefined,
    };
    const api = services({ services: refuses });
    expect((await refusal(api.post('/api/services', FILE)))[1]).toBe('job.unplaceable');
    expect(await api.store.services()).toEqual([]);
  });

  it('are refused with a clear word where they are not turned on', async () => {
    const api = apiUnderTest();
    for (const asked of [api.get('/api/services'), api.get('/api/services/web'), api.post('/api/services', FILE)]) {
      expect(await refusal(asked)).toMatchObject([422, 'job.not-in-version', expect.stringContaining('not turned on')]);
    }
  });

  it('keep both changes of two callers at once', async () => {
    const inner = new MemoryStore();
    let between: (() => Promise<unknown>) | null = null;
    const store = new Proxy<Store>(inner, {
      get: (of, name: keyof Store) => {
        const method = of[name];
        if (typeof method !== 'function') return method;
        if (name !== 'putService') return method.bind(of);
        return async (...args: Parameters<Store['putService']>) => {
          const meanwhile = between;
          between = null;
          await meanwhile?.();
          return of.putService(...args);
        };
      },
    });
    const api = services({ store });
    await apply(api);
    between = () => api.post('/api/services/web/scale', { replicas: 3 });
    await apply(api, { ...FILE, env: { A: '1' } });
    const service = await stored(api);
    expect([service.fixedReplicas, service.revisions.length]).toEqual([3, 2]);
  });
});
