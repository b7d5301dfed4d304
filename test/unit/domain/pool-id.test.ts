import { describe, expect, it } from '@jest/globals';
import { isSpotPool, poolKey, poolParts, typeAndZone } from '../../../lib/domain/pool.ts';
import { poolId } from '../../../lib/kernel/ids.ts';

describe('what a pool id is made of', () => {
  it.each(['reserved', 'on-demand', 'spot'] as const)('reads back a %s pool', (option) => {
    const id = poolKey('m6gd.2xlarge', 'eu-central-1b', option);
    expect(poolParts(id)).toEqual({ type: 'm6gd.2xlarge', family: 'm6gd', zone: 'eu-central-1b', option });
    expect(isSpotPool(id)).toBe(option === 'spot');
    expect(typeAndZone(id)).toBe('m6gd.2xlarge/eu-central-1b');
  });

  it('takes an id of another form for none of the options', () => {
    expect(poolParts(poolId('c5'))).toEqual({ type: 'c5', family: 'c5', zone: '', option: '' });
    expect(isSpotPool(poolId('spot'))).toBe(false);
  });
});
