/**
 * A service on one machine, as a user runs it: real processes behind the proxy, on a market that takes its instances
 * again and again. No request fails, whatever happens to the replicas by notice or by update.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import type { EventView } from '../../lib/api/schemas.ts';
import type { ServiceView } from '../../lib/api/services/schemas.ts';
import { httpClient } from '../../lib/cli/client.ts';
import { tokenIn } from '../../lib/api/server/token.ts';
import { writeMarket } from '../../lib/drivers/local/market/file.ts';
import { generateLoad, type LoadResult } from '../../lib/drivers/local/traffic/load-generator.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import { traceOf } from '../../lib/market/price-steps.ts';
import { pool } from '../support/builders.ts';
import { ebb, type Ran } from '../support/run-ebb.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.ts');
const SERVER = join(process.cwd(), 'examples', 'service');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-service-'));
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
/** For a machine that does other things beside. */
const PATIENCE_MS = 300_000;
const START = Date.UTC(2026, 0, 5);
const MINUTE_MS = 60_000;

/** Two zones whose spot capacity is there in turn, a quarter of an hour each, and together for a few minutes. */
function inTurn(): string {
  const { type } = pool();
  const days = 2;
  const zone = (name: string, first: number) => {
    const turns = Array.from({ length: days * 48 }, (_, i) => START + (i * 30 + first) * MINUTE_MS);
    const steps = [
      [START - MINUTE_MS, first === 0 ? 1 : 0],
      ...turns.flatMap((at) => [
        [at, 1],
        [at + 18 * MINUTE_MS, 0],
      ]),
    ];
    return {
      type,
      zone: name,
      onDemandUsdPerHour: 1,
      prices: { atMs: Float64Array.of(START - MINUTE_MS), usdPerHour: Float64Array.of(0.3) },
      availability: {
        atMs: Float64Array.from(steps, ([at]) => at ?? 0),
        available: Uint8Array.from(steps, ([, up]) => up ?? 0),
      },
    };
  };
  const span = {
    name: 'in turn',
    startMs: epochMs(START - MINUTE_MS),
    endMs: epochMs(START + days * 1440 * MINUTE_MS),
  };
  const path = join(mkdtempSync(join(scratch, 'market-')), 'market.sqlite');
  writeMarket(path, traceOf(span, [zone('test-1a', 0), zone('test-1b', 15)]), {
    name: 'in turn',
    source: 'a test',
    notes: [],
  });
  return path;
}

interface Engine {
  readonly child: ChildProcess;
  readonly url: string;
  readonly run: (...args: string[]) => Promise<Ran>;
  readonly show: () => Promise<ServiceView>;
  readonly events: () => Promise<readonly EventView[]>;
}

async function up(dir: string, ...options: string[]): Promise<Engine> {
  const args = [EBB, 'up', '--dir', dir, '--port', '0', '--json', ...options];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const { url } = await new Promise<{ url: string }>((resolve, reject) => {
    child.stdout.once('data', (text: Buffer) => resolve(JSON.parse(text.toString()) as { url: string }));
    child.once('exit', (code) => reject(new Error(`ebb up ended with ${code}`)));
  });
  const env = { EBB_URL: url, EBB_TOKEN: tokenIn(join(dir, 'token')) };
  const run = (...given: string[]): Promise<Ran> => ebb(given, { env });
  const asked = async (path: string): Promise<string> => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${env.EBB_TOKEN}` } });
    return answer.text();
  };
  return {
    child,
    url,
    run,
    show: async () => JSON.parse(await asked('/api/services/web')) as ServiceView,
    events: async () => {
      const found: EventView[] = [];
      for await (const event of httpClient(url, env.EBB_TOKEN).events(0, AbortSignal.timeout(1000))) found.push(event);
      return found;
    },
  };
}

function serviceFile(over: Readonly<Record<string, unknown>> = {}): string {
  const path = join(mkdtempSync(join(scratch, 'file-')), 'service.json');
  const file = {
    name: 'web',
    class: 'service',
    command: [process.execPath, 'server.mjs'],
    workdir: SERVER,
    inputs: 'server.mjs',
    env: { ITERATIONS: 100 },
    resources: { cpu: 1, memory: '128MiB' },
    target: { latency: '2s' },
    capacity: { perReplica: '100 rps' },
    min: 2,
    max: 4,
    health: { path: '/healthz', interval: '1s', grace: '60s' },
    drain: '5s',
    update: { maxSurge: 1, maxUnavailable: 0 },
    ...over,
  };
  writeFileSync(path, JSON.stringify(file));
  return path;
}

const until = async (isTrue: () => Promise<boolean>): Promise<void> => {
  while (!(await isTrue())) await delay(250);
};

/** Requests until it is told to stop. */
function loading(url: string): { readonly stop: () => Promise<LoadResult> } {
  let isOver = false;
  const result = generateLoad({
    url,
    path: '/',
    rateAt: () => (isOver ? null : 20),
    random: randomStream(24, 'load'),
    signal: new AbortController().signal,
    slowS: null,
  });
  return {
    stop: () => {
      isOver = true;
      return result;
    },
  };
}

describe('a service on one machine', () => {
  it(
    'fails no request while its instances are lost twice, it is updated, and an update is rolled back',
    async () => {
      const engine = await up(mkdtempSync(join(scratch, 'dir-')), '--market', inTurn(), '--speed', '60');
      const begun = await engine.run('service', 'apply', serviceFile(), '--wait');
      expect(begun.stderr).toContain('web is healthy: 2 replicas');
      expect(begun.code).toBe(0);
      const { url } = await engine.show();
      const load = loading(url ?? '');
      const lost = async (): Promise<number> =>
        (await engine.events()).filter((e) => e.type === 'instance-interrupted').length;

      const updated = await engine.run('service', 'apply', serviceFile({ env: { ITERATIONS: 50 } }), '--wait');
      expect([updated.code, updated.stderr]).toEqual([0, expect.stringContaining('web is healthy') as unknown]);
      const failing = serviceFile({ command: [process.execPath, 'missing.mjs'] });
      const refused = await engine.run('service', 'apply', failing, '--wait');
      expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('was replaced by 4') as unknown]);
      await until(async () => (await lost()) >= 2);
      await until(async () => (await engine.show()).state === 'healthy');

      const result = await load.stop();
      expect([result.errors, result.broken, result.withheld]).toEqual([{}, {}, 0]);
      expect(result.answered).toBe(result.sent);
      expect(result.sent).toBeGreaterThan(100);
      const shown = await engine.show();
      expect(shown.revision).toBe(4);
      expect(shown.load.failed).toBe(0);
      expect(shown.cost.totalUsd).toBeGreaterThan(0);

      const status = await engine.run('service', 'status', 'web');
      expect(status.stdout).toMatch(/^web healthy/);
      const explained = await engine.run('service', 'explain', 'web');
      expect(explained.stdout).toMatch(/replicas are wanted/);
      expect(explained.stdout).toMatch(/Placed/);
      await engine.run('service', 'delete', 'web');
      await until(async () => (await engine.run('service', 'list')).stdout.startsWith('no services'));
      expect(await fetch(url ?? '').catch(() => 'nobody')).toBe('nobody');
    },
    PATIENCE_MS,
  );

  it(
    'goes on with an update where the engine was killed in the middle of it',
    async () => {
      const dir = mkdtempSync(join(scratch, 'dir-'));
      const engine = await up(dir, '--speed', '60');
      await engine.run('service', 'apply', serviceFile({ min: 3 }), '--wait');
      await engine.run('service', 'apply', serviceFile({ min: 3, env: { ITERATIONS: 50 } }));
      await until(async () => (await engine.show()).replicaList.some((r) => r.revision === 2));
      const killed = new Promise((resolve) => engine.child.once('exit', resolve));
      engine.child.kill('SIGKILL');
      await killed;
      const next = await up(dir);
      await until(async () => {
        const { state, update } = await next.show();
        return state === 'healthy' && update === null;
      });
      const { replicaList, revision, url } = await next.show();
      expect(revision).toBe(2);
      const healthy = replicaList.filter((r) => r.phase === 'healthy');
      // Three by the file; a fourth may be spare, as the market takes instances.
      expect([
        [2, 2, 2],
        [2, 2, 2, 2],
      ]).toContainEqual(healthy.map((r) => r.revision));
      expect((await fetch(url ?? '')).status).toBe(200);
      // Each replica that is left has its own job, and no other job of the service runs.
      await until(async () => {
        const { stdout } = await next.run('jobs', '--state', 'running', 'pending', '--json');
        const { items } = JSON.parse(stdout) as { items: { id: string }[] };
        const { replicaList: now } = await next.show();
        return items.length === now.length && items.every((j) => now.some((r) => r.job === j.id));
      });
    },
    PATIENCE_MS,
  );

  it(
    'is refused where it cannot be, and nothing is left of it',
    async () => {
      const engine = await up(mkdtempSync(join(scratch, 'dir-')), '--speed', '60');
      const refused: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
        [{ replcas: 3 }, /unknown key "replcas"/],
        [{ min: 9 }, /min.*must be at most `max`; got 9, and `max` is 4/],
        [{ scaling: 'reactiv' }, /no scaling policy is called "reactiv"; did you mean reactive\?/],
        [{ resources: { cpu: 5000 } }, /too little CPU excludes/],
        [{ env: { PORT: 80 } }, /PORT: is given to each replica by Ebbtide/],
        [{ update: { maxSurge: 0, maxUnavailable: 0 } }, /leaves no way to update/],
        [{ target: { latency: '1s', percent: 0.95 } }, /is in per cent: write 95 for that share/],
        [{ inputs: 'absent.mjs' }, /absent\.mjs/],
      ];
      for (const [over, told] of refused) {
        const answer = await engine.run('service', 'apply', serviceFile(over));
        expect([answer.code, answer.stderr]).toEqual([2, expect.stringMatching(told) as unknown]);
      }
      const asJob = await engine.run('submit', serviceFile());
      expect(asJob.stderr).toMatch(/a service is no job: apply it by `ebb service apply FILE`/);
      expect((await engine.run('service', 'list')).stdout).toMatch(/^no services/);
    },
    PATIENCE_MS,
  );
});
