/** A model of capacity from its files to decisions: chosen, asked, refused. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { clientOver } from '../../../lib/cli/client.ts';
import { engineRecord } from '../../../lib/cli/engine-record.ts';
import { VirtualClock } from '../../../lib/kernel/clock.ts';
import { poolId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { ownRecord } from '../../../lib/drivers/local/models/own-history.ts';
import type { CapacityRecord } from '../../../lib/market/capacity-record.ts';
import { openCapacity } from '../../../lib/models/preemption.ts';
import { CAPACITY_FEATURES } from '../../../lib/market/features/capacity-features.ts';
import { isSpotPool } from '../../../lib/domain/pool.ts';
import { apiUnderTest } from '../../support/api.ts';
import { job as submitted } from '../../support/builders.ts';
import { livedBy } from '../../support/recorded-engine.ts';
import { always, alwaysCapacity } from '../../support/constant-model.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-capacity-model-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
/** A series as "Can't Be Late" publishes them: up for an hour and a half, down for half an hour, again and again. */
const series = join(scratch, 'aws-10-26-2022', 'us-west-2a_v100_1.json');
const POOL = 'p3.2xlarge/us-west-2a';
const DAYS = 40;

beforeAll(() => {
  mkdirSync(join(scratch, 'aws-10-26-2022'));
  const data = Array.from({ length: DAYS * 144 }, (_, tick) => (tick % 12 < 9 ? 1 : 0));
  writeFileSync(series, JSON.stringify({ metadata: { gap_seconds: 600 }, data }));
});

function ebb(...args: string[]) {
  return spawnSync(process.execPath, [EBB, ...args], { cwd: scratch, encoding: 'utf8', timeout: 60_000 });
}
function ask<T>(...args: string[]): T {
  const { status, stdout, stderr } = ebb(...args, '--json');
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
let directories = 0;
const newDir = (): string => join(scratch, `dir${++directories}`);
const ownOf = (dir: string): string => join(dir, 'models', 'capacity');

describe('a model of capacity', () => {
  it('that is missing, damaged or made of other features is refused, with the reason', async () => {
    const own = ownOf(newDir());
    const opened = (chosen: string) => openCapacity(chosen, { shipped: null, own }, CAPACITY_FEATURES);
    expect(await opened('observed')).toMatchObject({ chosen: 'observed', model: null, refused: null, fault: null });
    expect(await opened('model')).toMatchObject({ fault: 'missing', refused: 'no trained model is deployed' });
    alwaysCapacity(join(own, 'mine'), 0.3, { pools: [POOL] });
    expect(await opened('yours')).toMatchObject({
      fault: 'missing',
      refused: expect.stringContaining('there are mine'),
    });
    appendFileSync(join(own, 'mine', 'model.onnx'), 'x');
    expect(await opened('mine')).toMatchObject({ fault: 'damaged', refused: expect.stringContaining('SHA-256') });
    always(join(own, 'prices'), 0.3);
    expect(await opened('prices')).toMatchObject({
      fault: 'mismatch',
      refused: expect.stringContaining('takes features that this version does not compute'),
    });
  });
});

describe('a simulation', () => {
  const job = {
    name: 'long',
    command: 'true',
    class: 'best-effort',
    expectedRuntime: '8h',
    checkpoint: { signal: 'SIGTERM', grace: '1m' },
    resources: { cpu: 8, memory: '60GiB' },
  };
  beforeAll(() => writeFileSync(join(scratch, 'long.json'), JSON.stringify(job)));
  interface Simulated {
    readonly presets: readonly { readonly instanceHours: number; readonly interruptions: { readonly value: number } }[];
  }
  const simulated = (dir: string, version: string) => {
    const of = ['--market', series, '--from', '2022-10-28T00:05:00Z', '--dir', dir];
    const { presets } = ask<Simulated>(
      'simulate',
      '--workload',
      'long.json',
      ...of,
      '--set',
      `capacityForecast=${version}`,
    );
    return presets[0];
  };

  it('decides by the version that it is told to ask', () => {
    const dir = newDir();
    alwaysCapacity(join(ownOf(dir), 'gloomy'), 0.999, { pools: [POOL] });
    alwaysCapacity(join(ownOf(dir), 'strange'), 0.999, { pools: ['p3.2xlarge/us-west-2b'] });
    const observed = simulated(dir, 'observed');
    // Who expects to lose spot at once has left it after the first interruption.
    expect(observed?.interruptions.value).toBeGreaterThan(1);
    expect(simulated(dir, 'gloomy')?.interruptions.value).toBe(1);
    // A version that was not trained on the pool has no say in it.
    expect(simulated(dir, 'strange')).toEqual(observed);
  }, 120_000);

  it('does not begin with a model that cannot be asked', () => {
    const dir = newDir();
    alwaysCapacity(join(ownOf(dir), 'mine'), 0.3, { pools: [POOL] });
    appendFileSync(join(ownOf(dir), 'mine', 'model.onnx'), 'x');
    const { status, stderr } = ebb(
      ...['simulate', '--workload', 'long.json', '--market', series, '--dir', dir, '--set', 'capacityForecast=mine'],
    );
    expect(status).toBe(2);
    expect(stderr).toMatch(/forecast capacity cannot be asked[^]*SHA-256[^]*capacityForecast=observed/);
  });
});

describe('an engine', () => {
  it('keeps in its plans who forecast capacity', async () => {
    const dir = newDir();
    alwaysCapacity(join(ownOf(dir), 'mine'), 0.25, { pools: [POOL] });
    expect(ebb('models', 'use', 'mine', '--risk', 'capacity', '--dir', dir)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('in use: mine'),
    });
    const job = { name: 'some', command: 'sleep 2', tasks: 2, resources: { cpu: 5, memory: '64MiB' } };
    writeFileSync(join(scratch, 'some.json'), JSON.stringify(job));
    const from = ['--market', series, '--from', '2022-10-28T00:05:00Z', '--speed', '600'];
    expect(ebb('run', 'some.json', '--dir', dir, ...from, '--set', 'capacityForecast=model').status).toBe(0);
    const store = openSqliteStore({ path: join(dir, 'ebb.db') });
    const plans = (await store.plans(200, null)).items;
    const bought = (await store.instances(null, 200, null)).items.filter((i) => isSpotPool(i.pool));
    await store.close();
    const origins = plans.flatMap((plan) => plan.forecast?.capacity ?? []);
    // Nothing was known of the pool at first.
    expect(origins.at(-1)).toMatchObject({
      version: null,
      byObserved: [{ why: 'nothing was seen of it yet', pools: 1 }],
    });
    expect(origins).toContainEqual({ chosen: 'model', refused: null, version: 'mine', byModel: 1, byObserved: [] });
    // So was the first instance bought; that is kept with it.
    expect(bought.at(-1)?.forecast?.capacity?.by).toBe('observed');
  }, 60_000);
});

describe('its life', () => {
  /** Called as Python is: the program that trains and its arguments. */
  const python = join(scratch, 'python');
  beforeAll(() => {
    const trainer = join(process.cwd(), 'test', 'support', 'fake-trainer.ts');
    const flags = '--disable-warning=ExperimentalWarning';
    writeFileSync(python, `#!/bin/sh\nexec "${process.execPath}" ${flags} "${trainer}" "$@"\n`, { mode: 0o755 });
  });
  const train = (dir: string, outcome: string, ...more: string[]) =>
    spawnSync(
      process.execPath,
      [EBB, 'models', 'train', '--risk', 'capacity', '--dir', dir, '--python', python, ...more],
      {
        cwd: scratch,
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, EBB_FAKE_TRAINER: outcome },
      },
    );
  const models = (dir: string, ...args: string[]) => ebb('models', ...args, '--risk', 'capacity', '--dir', dir);

  it('begins with training on series: taken if better than the one in use, or than observed interruptions', () => {
    const dir = newDir();
    const none = train(dir, '0.05', '--markets', series, '--name', 'hopeful', '--json');
    expect(JSON.parse(none.stdout)).toMatchObject({ version: 'hopeful', rival: 'observed', taken: false });
    expect(models(dir, 'use', 'hopeful').status).toBe(0);
    // Two in three are lost within the hour.
    const first = train(dir, '0.65', '--markets', series, '--name', 'first', '--json');
    expect(JSON.parse(first.stdout)).toMatchObject({ version: 'first', rival: 'hopeful', taken: true });
    const second = train(dir, '0.99', '--markets', series, '--name', 'second');
    expect(second.stdout).toContain('second is not shown to be better than first, which stays');
    expect(models(dir, 'list').stdout).toContain('in use (*): first');
    const shown = models(dir, 'show');
    expect(shown.stdout).toContain(`Pools (it is asked about no others): ${POOL}`);
    expect(shown.stdout).toMatch(/Lost within 1h 00m: \d[\d,]* moments on \d+ days/);
    expect(shown.stdout).toContain('Drift: no engine has worked in this directory');
    const judged = models(dir, 'evaluate', 'second', '--markets', series);
    expect(judged.stdout).toMatch(/second against first: worse[^]*second against observed/);
    // Versions of prices are another matter.
    expect(ebb('models', 'list', '--dir', dir).stdout).not.toContain('first');
    expect(models(dir, 'use', '--rollback').stdout).toContain('in use: hopeful');
    expect(models(dir, 'use', '--rollback').stdout).toContain('falls back on observed interruptions');
  }, 120_000);

  /** A directory whose engine has kept instances for so many days, given back after two hours on average. */
  async function workedFor(days: number): Promise<string> {
    const dir = newDir();
    const startMs = Date.UTC(2026, 0, 5);
    const [pools, hazard] = [[poolId(`${POOL}/spot`)], () => 0.3];
    const instances = livedBy({ seed: 1, pools, startMs, days, hazard, givenBackAfterH: 2, outageH: 0.5, idleH: 0.5 });
    mkdirSync(dir);
    const store = openSqliteStore({ path: join(dir, 'ebb.db') });
    await store.submit([{ job: submitted({ submittedMs: epochMs(startMs + days * 86_400_000) }), idempotency: null }]);
    const token = await store.takeLease('test');
    await store.commit(
      token,
      instances.map((value) => ({ put: 'instance', value })),
    );
    await store.close();
    return dir;
  }

  it('goes on with what the engine has seen itself: given back is no loss and no life, but watched as far as that', async () => {
    const dir = await workedFor(40);
    const versions = ['right', 'dear', 'cheap'].map((name, i) => {
      const p = [0.26, 0.6, 0.01][i];
      return JSON.parse(train(dir, String(p), '--name', name, '--instants', '1500', '--json').stdout) as {
        readonly taken: boolean;
        readonly rival: string;
        readonly judgement: { readonly record: { readonly lostShare: number; readonly bids: number } };
      };
    });
    // 0.3 an hour: 26 % are lost within it. Of those whose fate is known it would be a third and more.
    expect(versions[0]?.judgement.record.lostShare).toBeGreaterThan(0.2);
    expect(versions[0]?.judgement.record.lostShare).toBeLessThan(0.32);
    expect(versions.map((v) => v.rival)).toEqual(['observed', 'observed', 'observed']);
    expect(versions.slice(1).map((v) => v.taken)).toEqual([false, false]);
    const judged = models(dir, 'evaluate', 'dear', '--instants', '1500');
    expect(judged.stdout).toMatch(/dear against observed: worse/);
  }, 120_000);

  it('asks an engine elsewhere for its instances, which tell the same', async () => {
    const dir = await workedFor(90);
    const { record } = await ownRecord(dir);
    const store = openSqliteStore({ path: join(dir, 'ebb.db') });
    const api = apiUnderTest({ store, clock: new VirtualClock(record.endMs) });
    const asked = await engineRecord(
      clientOver(({ path }) => api.get(path)),
      'there',
    );
    await store.close();
    // The newest come first there.
    const inOrder = (of: CapacityRecord) => ({ ...of, lives: of.lives.toSorted((a, b) => a.fromMs - b.fromMs) });
    expect({ ...asked, record: inOrder(asked.record) }).toEqual({ name: 'there', record: inOrder(record) });
    // One page is not all.
    expect(record.lives.length + record.refusals.length).toBeGreaterThan(1000);
  });

  it('asks one that is not there, and for capacity alone', () => {
    const nobody = ['--dir', newDir(), '--url', 'http://127.0.0.1:9'];
    const absent = ebb('models', 'train', '--risk', 'capacity', ...nobody);
    expect(absent).toMatchObject({ status: 10, stderr: expect.stringContaining('no engine answers at this address') });
    const prices = ebb('models', 'train', ...nobody);
    expect(prices).toMatchObject({ status: 2, stderr: expect.stringContaining('--url http://127.0.0.1:9') });
  });

  it('says what is missing where the engine has seen too little', async () => {
    const none = train(newDir(), '0.5');
    expect(none.status).not.toBe(0);
    expect(none.stderr).toMatch(/no engine has worked in this directory[^]*--markets/);
    const little = train(await workedFor(10), '0.5');
    expect(little.stderr).toMatch(
      /seen too little[^]*within 10\.0 days; capacity that was held ended \d+ times[^]*at least 28 days[^]*60 times/,
    );
  }, 60_000);

  it('needs long series, and trees', () => {
    const dir = newDir();
    const short = join(scratch, 'aws-04-19-2023', 'us-west-2a_v100_1.json');
    mkdirSync(join(scratch, 'aws-04-19-2023'));
    const data = Array.from({ length: 20 * 144 }, (_, tick) => (tick % 12 < 9 ? 1 : 0));
    writeFileSync(short, JSON.stringify({ metadata: { gap_seconds: 600 }, data }));
    expect(train(dir, '0.5', '--markets', short).stderr).toMatch(/20\.0 days[^]*at least 26 days of availability/);
    expect(train(dir, '0.5', '--markets', series, '--model', 'lstm').stderr).toContain('leave out --model lstm');
  }, 120_000);
});
