import { describe, expect, it } from '@jest/globals';
import { standing } from '../../../../lib/cli/simulation/progress.ts';

const HOUR_MS = 3_600_000;
const at = (hours: number, arrived: number, mostJobs: number | null) => ({
  is: 'progress' as const,
  fromMs: 0,
  toMs: 100 * HOUR_MS,
  nowMs: hours * HOUR_MS,
  steps: 1000,
  submitted: arrived,
  arrived,
  mostJobs,
});

describe('the time that a simulation has left', () => {
  it('goes by the window where nobody knows how many jobs there are', () => {
    expect(standing(at(25, 400, null), 60)).toEqual({ share: 0.25, left: 'at most 3m 00s left' });
  });

  it('goes by the jobs where their number is known: the window may be much longer than their work', () => {
    expect(standing(at(5, 500, 1000), 60)).toEqual({ share: 0.5, left: 'about 1m 00s left' });
    expect(standing(at(50, 100, 1000), 60)).toEqual({ share: 0.5, left: 'at most 1m 00s left' });
  });

  it('promises nothing before it has begun, nor when only the last jobs run', () => {
    expect(standing(at(0, 0, 1000), 1)).toEqual({ share: 0, left: '' });
    expect(standing(at(5, 1000, 1000), 60)).toEqual({ share: 1, left: 'last jobs end' });
  });
});
