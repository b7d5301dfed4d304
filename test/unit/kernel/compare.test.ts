import { expect, it } from '@jest/globals';
import { compareText } from '../../../lib/kernel/compare.ts';

it('orders texts by code unit, whatever the locale', () => {
  expect(['b', 'a', 'Z', 'ä', 'a'].sort(compareText)).toEqual(['Z', 'a', 'a', 'b', 'ä']);
});
