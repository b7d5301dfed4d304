import { describe, expect, it } from '@jest/globals';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { RuntimeForecast } from '../../../../lib/domain/forecast.ts';
import { forecastStages } from '../../../../lib/stages/estimate/stage-forecasts.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { job, spec, stage } from '../../../support/builders.ts';

describe('forecasts of stages', () => {
  const asked: string[] = [];
  const made = (name: string): RuntimeForecast => ({ runtime: certain(seconds(60)), basis: 'hint', reason: name });
  const of = job({ id: jobId('j-1'), spec: spec({ stages: [stage({ name: 'map' }), stage({ name: 'reduce' })] }) });
  const jobs = new Map([[of.id, of]]);
  const forecasts = () => {
    asked.length = 0;
    return forecastStages({ jobs }, (_, { name }) => {
      asked.push(name);
      return made(name);
    });
  };

  it('are made when they are asked for, and once', () => {
    const there = forecasts();
    expect(asked).toEqual([]);
    expect(there.get('j-1/reduce')).toEqual(made('reduce'));
    expect(there.get('j-1/reduce')).toBe(there.get('j-1/reduce'));
    expect(asked).toEqual(['reduce']);
    expect([...there].map(([key]) => key)).toEqual(['j-1/map', 'j-1/reduce']);
    expect(asked).toEqual(['reduce', 'map']);
  });

  it('are not there of jobs and stages that are not', () => {
    const there = forecasts();
    for (const key of ['j-2/map', 'j-1/sort', 'j-1']) expect(there.get(key)).toBeUndefined();
    expect(asked).toEqual([]);
  });
});
