import { describe, expect, it } from '@jest/globals';
import { certain, distribution, type Distribution } from '../../../../lib/domain/distribution.ts';
import type { RuntimeForecast } from '../../../../lib/domain/forecast.ts';
import { epochMs, seconds } from '../../../../lib/kernel/units.ts';
import { assessAdmission } from '../../../../lib/stages/value/admission.ts';
import { spec, stage } from '../../../support/builders.ts';

const config = { safetyQuantile: 0.95, startDelayMeanS: 100, startDelayMaxS: 160 };
const known = (runtime: Distribution, basis: RuntimeForecast['basis'] = 'history'): RuntimeForecast => ({
  runtime,
  basis,
  reason: 'test',
});

function admit(windowS: number | null, over: { tasks?: number; vcpus?: number; forecast?: RuntimeForecast } = {}) {
  const forecast = over.forecast ?? known(certain(seconds(1000)));
  const job = spec({ stages: [stage({ name: 'a', tasks: over.tasks ?? 1 }), stage({ name: 'b', dependsOn: ['a'] })] });
  return assessAdmission(job, {
    nowMs: epochMs(0),
    deadlineMs: windowS === null ? null : epochMs(windowS * 1000),
    forecasts: new Map([
      ['a', forecast],
      ['b', forecast],
    ]),
    vcpus: over.vcpus ?? 100,
    config,
  });
}

describe('admission', () => {
  it('follows the longest path with start-up: two stages of 1000 s need 2200 s, 2260 s to be sure', () => {
    expect(admit(2199).feasible).toBe(false);
    expect(admit(2199).notes.join()).toMatch(/cannot be met.*36.7 min away.*on-demand.*36.7 min/);
    expect(admit(2201).feasible).toBe(true);
    expect(admit(2201).notes.join()).toMatch(/tight/);
    expect(admit(2261)).toEqual({ feasible: true, notes: [] });
  });

  it('counts waves under the vCPU limit and says so', () => {
    const three = admit(4300, { tasks: 12, vcpus: 5 });
    expect(three.notes.join()).toContain('12 tasks of 1 vCPU take 3 waves under the limit of 5 vCPUs');
    expect(admit(4199, { tasks: 12, vcpus: 5 }).feasible).toBe(false);
    expect(admit(4201, { tasks: 12, vcpus: 5 }).feasible).toBe(true);
  });

  it('doubts what the slowest of parallel tasks would miss, and tries it', () => {
    const spread = distribution([
      [100, 0.9],
      [1000, 0.1],
    ]);
    expect(admit(600, { forecast: known(spread, 'hint') }).notes.join()).toMatch(/tight/);
    const many = admit(600, { forecast: known(spread, 'hint'), tasks: 20 });
    expect(many.feasible).toBe(true);
    expect(many.notes.join()).toMatch(/likely be missed.*10 min away.*21.7 min/);
  });

  it('tries what only earlier runs speak against, and says so', () => {
    const spread = distribution([
      [100, 0.4],
      [1000, 0.6],
    ]);
    const { feasible, notes } = admit(600, { forecast: known(spread) });
    expect(feasible).toBe(true);
    expect(notes.join()).toMatch(/likely be missed.*10 min away.*what is known.*36.7 min/);
    expect(admit(600, { forecast: known(spread, 'hint') }).feasible).toBe(false);
  });

  it('refuses nothing for want of knowledge, but says that it knows nothing', () => {
    const wide = distribution(Array.from({ length: 20 }, (_, i) => [10 + i * 500, 1]));
    const { feasible, notes } = admit(600, { forecast: known(wide, 'prior') });
    expect(feasible).toBe(true);
    expect(notes.join(' ')).toMatch(/Cold start.*stages a, b.*expectedRuntime/);
    expect(admit(150, { forecast: known(wide, 'prior') }).feasible).toBe(false);
  });

  it('has nothing against best effort', () => {
    expect(admit(null)).toEqual({ feasible: true, notes: [] });
  });
});
