import { describe, expect, it } from '@jest/globals';
import { deviations, rulesOf } from '../../../../../lib/drivers/aws/traffic/group-rules.ts';
import { groupName, isGroupOf } from '../../../../../lib/drivers/aws/traffic/group-names.ts';
import { seconds } from '../../../../../lib/kernel/units.ts';

const health = (intervalS: number, timeoutS: number, failures = 3) => ({
  path: '/healthz',
  intervalS: seconds(intervalS),
  timeoutS: seconds(timeoutS),
  graceS: seconds(60),
  failures,
});

describe('rules of a target group', () => {
  it.each([
    ['within the limits', health(10, 4, 5), { intervalS: 10, timeoutS: 4, failures: 5 }, 0],
    ['of fractions of a second', health(0.5, 0.2), { intervalS: 5, timeoutS: 2, failures: 3 }, 2],
    ['of one failure', health(5, 2, 1), { intervalS: 5, timeoutS: 2, failures: 2 }, 1],
    ['longer than AWS waits', health(300, 300, 50), { intervalS: 300, timeoutS: 120, failures: 10 }, 2],
    ['a check that lasts until the next', health(10, 10), { intervalS: 10, timeoutS: 9, failures: 3 }, 1],
  ])('%s', (_, given, rules, notes) => {
    const spec = { health: given, drainS: seconds(7.5), concurrency: null };
    expect(rulesOf(spec)).toEqual({ path: '/healthz', drainS: 8, ...rules });
    expect(deviations(spec)).toHaveLength(notes);
  });

  it('say that a limit of requests at once has no effect', () => {
    const said = deviations({ health: health(5, 2), drainS: seconds(5), concurrency: 10 });
    expect(said).toEqual([expect.stringMatching(/^`concurrency` has no effect/)]);
  });
});

describe('names of target groups', () => {
  it('fit the limits of AWS, and tell services and deployments apart', () => {
    const longest = 'a'.repeat(24);
    expect(groupName(longest, 'web')).toMatch(/^[a-z0-9-]{32}$/);
    expect(groupName('ebbtide', 'web')).not.toBe(groupName('ebbtide', 'web2'));
    expect(isGroupOf('ebbtide', groupName('ebbtide', 'web'))).toBe(true);
    expect(isGroupOf('ebbtide', groupName('ebbtide-a', 'web'))).toBe(false);
    expect(isGroupOf('ebbtide-a', groupName('ebbtide', 'web'))).toBe(false);
  });
});
