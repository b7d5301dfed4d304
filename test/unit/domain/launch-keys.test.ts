import { describe, expect, it } from '@jest/globals';
import { planId } from '../../../lib/kernel/ids.ts';
import { allocationKey, launchKey, ordinalOfLaunch, planOfAllocation } from '../../../lib/domain/launch-keys.ts';

describe('keys of launches', () => {
  const allocation = allocationKey(planId('plan-7'), 2);

  it('name plan, purchase and ordinal', () => {
    expect(launchKey(allocation, 11)).toBe('plan-7/launch/2/11');
    expect(planOfAllocation(allocation)).toBe('plan-7');
    expect(ordinalOfLaunch(launchKey(allocation, 11), allocation)).toBe(11);
  });

  it.each(['plan-7/launch/2', 'plan-7/launch/2/', 'plan-7/launch/2/x', 'plan-7/launch/3/1', 'release/i-1'])(
    'hold no ordinal in the form %s',
    (key) => {
      expect(ordinalOfLaunch(key, allocation)).toBeNull();
    },
  );
});
