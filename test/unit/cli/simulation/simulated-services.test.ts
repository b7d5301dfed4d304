import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { SimulateOptions } from '../../../../lib/cli/flags/simulate-flags.ts';
import { ordersOf } from '../../../../lib/cli/simulation/make-orders.ts';
import { servicesOf } from '../../../../lib/cli/simulation/simulated-services.ts';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-simulated-services-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const file = (name: string, over: Readonly<Record<string, unknown>> = {}): string => {
  const content = {
    name,
    command: './serve',
    resources: { cpu: 2, memory: '1GiB' },
    target: { latency: '1s' },
    capacity: { perReplica: '40 rps' },
    ...over,
  };
  writeFileSync(join(cwd, `${name}.json`), JSON.stringify(content));
  return `${name}.json`;
};
writeFileSync(join(cwd, 'trace.csv'), 'minute_index,tweets\n0,60\n1,180\n3,120\n');
writeFileSync(join(cwd, 'silence.csv'), 'minute_index,tweets\n0,0\n1,0\n');

const options = (over: Partial<SimulateOptions>): SimulateOptions => ({
  windows: 1,
  seeds: 1,
  setup: 0,
  migrationRate: 160,
  dir: '.ebb',
  ...over,
});
const services = async (over: Partial<SimulateOptions>) => servicesOf(options(over), cwd, []);

describe('services of a simulation', () => {
  it('get the requests of a trace, for as long as is asked', async () => {
    const { services: made, notes } = await services({ service: [file('web'), file('api')], requests: 'trace.csv' });
    expect(made.map((of) => of.spec.name)).toEqual(['web', 'api']);
    expect([...(made[1]?.perMinute ?? [])]).toEqual([60, 180, NaN, 120]);
    expect(notes.join('\n')).toMatch(/^web: 2\.00 requests per second on average/m);
    const short = await services({ service: ['web.json'], requests: 'trace.csv', for: 90 });
    expect([...(short.services[0]?.perMinute ?? [])]).toEqual([60, 180]);
  });

  it('get a constant rate, or the shape of a trace at a rate', async () => {
    const constant = await services({ service: [file('web')], rate: 5, for: 180 });
    expect([...(constant.services[0]?.perMinute ?? [])]).toEqual([300, 300, 300]);
    expect((await services({ service: ['web.json'], rate: 5 })).services[0]?.perMinute).toHaveLength(1440);
    const scaled = await services({ service: ['web.json'], rate: 4, requests: 'trace.csv' });
    expect([...(scaled.services[0]?.perMinute ?? [])]).toEqual([120, 360, NaN, 240]);
  });

  it('take a request time from the stated capacity, else from the paper, else from the flag', async () => {
    const timeOf = async (over: Partial<SimulateOptions>): Promise<number | undefined> =>
      (await services({ rate: 1, for: 60, ...over })).services[0]?.serviceS;
    expect(await timeOf({ service: [file('web')] })).toBe(0.05);
    expect(await timeOf({ service: [file('plain', { capacity: undefined })] })).toBe(0.1);
    expect(await timeOf({ service: ['web.json'], requestTime: 0.3 })).toBe(0.3);
  });

  it('are refused with the flag to mend', async () => {
    const service = [file('web')];
    await expect(services({ rate: 5 })).rejects.toThrow(/need a service/);
    await expect(services({ service })).rejects.toThrow(/nobody asks/);
    await expect(services({ service: [...service, ...service], rate: 1 })).rejects.toThrow(/one name/);
    await expect(services({ service, rate: 1, requests: 'silence.csv' })).rejects.toThrow(/without requests/);
    await expect(services({ service, rate: 1, replay: '.ebb' })).rejects.toThrow(/cannot be replayed/);
    await expect(services({ service: [file('odd', { scaling: 'psychic' })], rate: 1 })).rejects.toThrow(/psychic/);
  });

  it('run alone where no workload is named, and without references of jobs', async () => {
    const alone = (await ordersOf(options({ service: [file('web')], rate: 1 }), cwd)).orders[0];
    expect(alone).toMatchObject({ workload: null, references: false, services: [{ spec: { name: 'web' } }] });
    const both = (await ordersOf(options({ service: ['web.json'], rate: 1, workload: 'synthetic' }), cwd)).orders[0];
    expect(both).toMatchObject({ workload: { path: 'synthetic' }, services: [{ spec: { name: 'web' } }] });
  });
});
