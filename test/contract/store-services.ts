import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Service } from '../../lib/domain/service.ts';
import { normaliseService } from '../../lib/domain/service-file/service-file.ts';
import { jobId } from '../../lib/kernel/ids.ts';
import { epochMs, seconds } from '../../lib/kernel/units.ts';
import type { Store } from '../../lib/ports/store.ts';
import type { OpenStore } from './open-store.ts';

const FILE = { name: 'web', command: './serve', target: { latency: '1s' } };

export const serviceSample = (name: string, version = 1, over: Partial<Service> = {}): Service => ({
  name,
  version,
  revisions: [
    {
      number: 1,
      spec: normaliseService({ ...FILE, name }, { baseDir: '/srv', defaultOwner: 'ana', scalings: ['reactive'] }),
      atMs: epochMs(5),
    },
  ],
  createdMs: epochMs(5),
  state: 'deploying',
  detail: 'begins',
  wanted: { replicas: 1, spare: 0, reason: 'min' },
  fixedReplicas: null,
  isDeleting: false,
  replicas: [
    {
      number: 1,
      revision: 1,
      job: jobId('j1'),
      port: 20_001,
      phase: 'starting',
      sinceMs: epochMs(6),
      seenMs: null,
      hasServed: false,
      detail: null,
    },
  ],
  nextReplica: 2,
  good: null,
  rollout: null,
  notBeforeMs: null,
  failuresInARow: 0,
  lastFailure: null,
  load: {
    periodS: seconds(60),
    rps: [1.5, null],
    endMs: epochMs(7),
    last: null,
    learned: null,
    requests: 90,
    slow: 0,
    failed: 0,
  },
  ...over,
});

const event = (text: string) => ({ atMs: epochMs(5), type: 'service', job: null, text, data: { service: 'web' } });

/** Services in a store: each is one record, which only the writer of the version before replaces. */
export function servicesContract(name: string, open: OpenStore): void {
  describe(`services in a store: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open({ plans: 3, events: 50, historyDays: null }, Date.now);
    });
    afterEach(() => store.close());

    it('keeps a service as given, with its events, and lists all by name', async () => {
      const [web, api] = [serviceSample('web'), serviceSample('api')];
      expect(await store.putService(web, [event('made web')])).toBe(true);
      expect(await store.putService(api, [])).toBe(true);
      expect(await store.service('web')).toEqual(web);
      expect(await store.service('absent')).toBeNull();
      expect(await store.services()).toEqual([api, web]);
      expect((await store.events(0, 10)).map((e) => e.text)).toEqual(['made web']);
    });

    it('refuses a write of another version, and writes nothing of it', async () => {
      await store.putService(serviceSample('web'), []);
      expect(await store.putService(serviceSample('web'), [event('again')])).toBe(false);
      expect(await store.putService(serviceSample('web', 3), [event('too new')])).toBe(false);
      expect(await store.putService(serviceSample('api', 2), [event('not there')])).toBe(false);
      expect(await store.services()).toEqual([serviceSample('web')]);
      expect(await store.events(0, 10)).toEqual([]);
    });

    it('lets one of many writers at once win', async () => {
      await store.putService(serviceSample('web'), []);
      const writers = Array.from({ length: 10 }, (_, i) =>
        store.putService(serviceSample('web', 2, { detail: `writer ${i}` }), [event(`writer ${i}`)]),
      );
      const won = (await Promise.all(writers)).flatMap((isWinner, i) => (isWinner ? [`writer ${i}`] : []));
      expect(won).toHaveLength(1);
      expect((await store.service('web'))?.detail).toBe(won[0]);
      expect((await store.events(0, 10)).map((e) => e.text)).toEqual(won);
    });

    it('drops the version that is named alone; the name can then be used again', async () => {
      await store.putService(serviceSample('web'), []);
      expect(await store.dropService({ name: 'web', version: 2 }, [event('no')])).toBe(false);
      expect(await store.dropService({ name: 'web', version: 1 }, [event('gone')])).toBe(true);
      expect(await store.dropService({ name: 'web', version: 1 }, [])).toBe(false);
      expect(await store.service('web')).toBeNull();
      expect(await store.services()).toEqual([]);
      expect(await store.putService(serviceSample('web'), [])).toBe(true);
      expect((await store.events(0, 10)).map((e) => e.text)).toEqual(['gone']);
    });

    it('keeps commits of the engine apart', async () => {
      const token = await store.takeLease('engine');
      await store.putService(serviceSample('web'), [event('made')]);
      await store.commit(token, [{ put: 'event', value: event('of the engine') }]);
      await store.putService(serviceSample('web', 2), []);
      expect((await store.events(0, 10)).map((e) => e.text)).toEqual(['made', 'of the engine']);
      expect((await store.service('web'))?.version).toBe(2);
    });
  });
}
