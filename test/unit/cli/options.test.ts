import { describe, expect, it } from '@jest/globals';
import { between, positive, whole } from '../../../lib/cli/options.ts';

describe('a number within bounds', () => {
  const count = between(1, 10, 'a whole number', whole);

  it.each(['1', '10'])('may be %s', (text) => expect(count(text)).toBe(Number(text)));

  it.each(['0', '11', '-1', '2.5', 'x', ''])('is not %j: both bounds are said, whatever is wrong with it', (text) => {
    expect(() => count(text)).toThrow('Allowed: a whole number from 1 to 10.');
  });

  it('lets a defect of its parser through', () => {
    const broken = between(0, 1, 'a share', () => {
      throw new TypeError('broken');
    });
    expect(() => broken('1')).toThrow(TypeError);
    expect(between(0, 1, 'a share', positive)('0.5')).toBe(0.5);
  });
});
