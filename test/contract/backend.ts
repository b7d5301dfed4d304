import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import { handler as api } from '../../lambdas/api/handler.ts';
import { handler as intake } from '../../lambdas/intake/handler.ts';
import { provideBackend } from '../../lib/api/provided-backend.ts';
import { dispatcher, type ApiRequest, type ApiResponse } from '../../lib/api/dispatch.ts';
import { forecastList, healthView, jobList, jobView, submitAnswer } from '../../lib/api/schemas.ts';
import { attemptId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, plus, raw, seconds, usdPerHour } from '../../lib/kernel/units.ts';
import type { Backend } from '../../lib/ports/backend.ts';
import { answerOf, problemIn } from '../support/api-answers.ts';
import { codeOf } from '../support/code-of.ts';
import { spec } from './store-samples.ts';

/**
 * What the API's handlers may rely on, whoever composes what is behind them. A driver opens processes one after another
 * on the same data, over a market with prices.
 */

export interface BackendProcess {
  readonly backend: Backend;
  /** Around each request, as whoever serves it does. */
  before(): Promise<void>;
  after(): Promise<void>;
  /** Lets whatever starts cycles do so: whether one has come for what was wanted by now. */
  cycleComes(): Promise<boolean>;
  /** A cycle has begun a long time ago and has not ended. */
  hang(): Promise<void>;
  close(): Promise<void>;
}

export interface BackendDriver {
  process(): Promise<BackendProcess>;
  close(): Promise<void>;
}

export interface BackendDriverMaker {
  make(): Promise<BackendDriver>;
  /** Where tasks find their files: folders of this machine, or places in S3. */
  readonly reaches: 'this machine' | 's3';
}

const DAY_S = seconds(86_400);
const jobFile = (name: string, over: object = {}, stage: object = {}): Record<string, unknown> => ({
  name,
  owner: 'ana',
  class: 'best-effort',
  stages: [{ name: 'main', command: ['true'], workdir: '/tmp', resources: { cpu: 1, memory: '512MiB' }, ...stage }],
  ...over,
});

/** Runs the contract against the backends that `maker` makes. */
export function backendContract(name: string, maker: BackendDriverMaker): void {
  describe(`Backend contract: ${name}`, () => {
    const dispatch = dispatcher({ intake, api });
    let driver: BackendDriver;
    let current: BackendProcess | null = null;

    beforeAll(async () => {
      driver = await maker.make();
    });
    afterEach(async () => {
      await ended();
      provideBackend(null);
    });
    afterAll(() => driver.close());

    async function ended(): Promise<void> {
      await current?.close();
      current = null;
    }
    /** Another process, in place of the one before. */
    async function opened(): Promise<BackendProcess> {
      await ended();
      current = await driver.process();
      return current;
    }
    async function asked(of: BackendProcess, request: ApiRequest): Promise<ApiResponse> {
      provideBackend(of.backend);
      await of.before();
      const answer = await dispatch(request);
      await of.after();
      return answer;
    }
    const get = async <S extends z.ZodType>(of: BackendProcess, path: string, schema: S): Promise<z.output<S>> =>
      answerOf(await asked(of, { method: 'GET', path }), 200, schema);
    const submit = (of: BackendProcess, body: object, key?: string): Promise<ApiResponse> =>
      asked(of, {
        method: 'POST',
        path: '/api/jobs',
        headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
        body: JSON.stringify(body),
      });
    const names = async (of: BackendProcess): Promise<string[]> =>
      (await get(of, '/api/jobs', jobList)).items.map((j) => j.name);

    it('takes a job that another process knows, and answers a repeated key with it', async () => {
      const first = answerOf(await submit(await opened(), jobFile('kept'), 'key-1'), 201, submitAnswer);
      expect(first.admission.feasible).toBe(true);
      const other = await opened();
      expect(await get(other, '/api/jobs/kept', jobView)).toMatchObject({ id: first.job.id, state: 'pending' });
      const again = answerOf(await submit(other, jobFile('kept'), 'key-1'), 200, submitAnswer);
      expect([again.outcome, again.job.id]).toEqual(['repeated', first.job.id]);
      problemIn(await submit(other, jobFile('changed'), 'key-1'), 409, 'conflict');
      expect(await names(other)).toEqual(['kept']);
    });

    it('refuses what no pool holds and what is too late, says why, and keeps nothing of it', async () => {
      const of = await opened();
      const before = await names(of);
      const large = { resources: { cpu: 10_000, memory: '1GiB' } };
      const found = problemIn(await submit(of, jobFile('large', {}, large)), 422, 'job.unplaceable');
      expect(found.got).toMatch(/^\d+ pools: too little CPU excludes \d+/);
      const late = { class: 'deadline', deadline: '2001-01-01T00:00:00Z' };
      problemIn(await submit(of, jobFile('late', late)), 422, 'job.deadline-past');
      const soon = { class: 'deadline', deadline: '1m' };
      const long = jobFile('soon', soon, { expectedRuntime: '10h' });
      problemIn(await submit(of, long), 422, 'job.deadline-impossible');
      expect(await names(of)).toEqual(before);
    });

    it('brings a cycle for what it took, though the process that took it has ended', async () => {
      const of = await opened();
      for (const n of [1, 2, 3]) expect((await submit(of, jobFile(`wakes-${n}`))).status).toBe(201);
      expect(await (await opened()).cycleComes()).toBe(true);
    });

    it('is well, and says so, until a cycle hangs', async () => {
      const of = await opened();
      const well = await get(of, '/api/health', healthView);
      expect(well).toMatchObject({ status: 'ok', preset: 'greedy' });
      expect(well.version).not.toBe('');
      expect(Date.parse(well.market.from)).toBeLessThan(Date.parse(well.market.to));
      expect(Date.parse(well.market.from)).toBeLessThan(well.nowMs);
      await of.hang();
      expect((await get(of, '/api/health', healthView)).status).toBe('degraded');
    });

    it('forecasts those pools that are spot and quote a price, each for some bids', async () => {
      const of = await opened();
      await of.before();
      const { backend } = of;
      const all = backend.market.pools();
      const quoted = all.filter((p) => p.option === 'spot' && backend.market.quote(p.id, backend.clock.now()) !== null);
      expect(quoted.length).toBeGreaterThan(1);
      const { pools } = await backend.forecast(all);
      expect(pools.map((p) => p.pool)).toEqual(quoted.map((p) => p.id));
      for (const { bids, priceUsdPerHour } of pools) {
        expect(raw(priceUsdPerHour)).toBeGreaterThan(0);
        expect(bids.length).toBeGreaterThan(1);
        for (const { curve } of bids) {
          expect(curve.reason).not.toBe('');
          expect(curve.horizonS.length).toBe(curve.pInterrupted.length);
          expect([...curve.horizonS]).toEqual([...curve.horizonS].sort((a, b) => a - b));
          expect([...curve.pInterrupted]).toEqual([...curve.pInterrupted].sort((a, b) => a - b));
          expect(Math.min(...curve.pInterrupted)).toBeGreaterThanOrEqual(0);
          expect(Math.max(...curve.pInterrupted)).toBeLessThanOrEqual(1);
        }
      }
      const onDemand = all.filter((p) => p.option === 'on-demand');
      expect((await backend.forecast(onDemand)).pools).toEqual([]);
      expect((await backend.forecast(quoted.slice(0, 1))).pools.map((p) => p.pool)).toEqual([quoted[0]?.id]);
      expect((await get(of, '/api/forecasts', forecastList)).items.map((p) => p.pool)).toEqual(quoted.map((p) => p.id));
    });

    it('shows no price of the future', async () => {
      const of = await opened();
      await of.before();
      const { market, clock } = of.backend;
      const now = clock.now();
      let changes = 0;
      for (const { id } of market.pools()) {
        const until = market.history(id, epochMs(0), plus(now, DAY_S)).atMs.at(-1) ?? 0;
        expect(until).toBeLessThanOrEqual(raw(clock.now()));
        const later = market.quote(id, plus(now, DAY_S));
        expect(later ?? usdPerHour(0)).toEqual(market.quote(id, clock.now()) ?? usdPerHour(0));
        changes += market.history(id, epochMs(0), now).atMs.length;
      }
      expect(changes).toBeGreaterThan(100);
      expect(raw(market.completeUntil?.() ?? now)).toBeLessThanOrEqual(raw(clock.now()));
    });

    it('has no log of what never ran, and no bill of what never was', async () => {
      const of = await opened();
      await of.before();
      const { fleet, clock } = of.backend;
      const attempt = attemptId('j-none.main.0.1');
      for (const stream of ['stdout', 'stderr'] as const) {
        expect(await fleet.logs(attempt, stream, 0, 100)).toMatchObject({ text: '', nextOffset: 0, totalBytes: 0 });
      }
      expect(await codeOf(fleet.bill(instanceId('i-none'), clock.now()))).toBe('not-found');
    });

    it('places a job where its tasks find their files, or says that they would not', async () => {
      const { backend } = await opened();
      const placed = (workdir: string, inputs: readonly string[]) => {
        const [stage] = spec().stages;
        return backend.place?.(spec({ stages: [{ ...stage!, workdir, inputs, outputs: ['out.txt'] }] }), jobId('j-1'));
      };
      const here = mkdtempSync(join(tmpdir(), 'ebb-place-'));
      writeFileSync(join(here, 'in.csv'), '');
      const near = async (): Promise<unknown> => placed(here, ['in.csv']);
      const far = async (): Promise<unknown> => placed('s3://there/data', ['in.csv']);
      const [good, bad] = maker.reaches === 's3' ? [far, near] : [near, far];
      expect(await good()).toMatchObject({ notes: expect.any(Array) });
      await expect(bad()).rejects.toThrow(expect.objectContaining({ code: 'job-file.invalid' }));
      // To place what is placed changes nothing: a repeated submission is the same job.
      const once = await placed(maker.reaches === 's3' ? 's3://there/data' : here, ['in.csv']);
      const again = once === undefined ? null : await backend.place?.(once.spec, jobId('j-1'));
      expect(again?.spec).toEqual(once?.spec);
      rmSync(here, { recursive: true });
    });

    it('says how long it keeps what is over, and where that is afterwards', async () => {
      const { backend } = await opened();
      const { days = 1, archive = null } = backend.history ?? {};
      expect(days).toBeGreaterThan(0);
      if (archive !== null) expect(archive).toMatch(/^s3:\/\/.+\/$/);
      expect(backend.limits.vcpus).toBeGreaterThan(0);
      const draws = Array.from({ length: 20 }, () => backend.random());
      expect(new Set(draws).size).toBe(20);
      for (const x of draws) expect(x >= 0 && x < 1).toBe(true);
    });
  });
}
