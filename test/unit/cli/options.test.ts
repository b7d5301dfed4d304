import { describe, expect, it } from '@jest/globals';
import { between, fromOne, positive, share, whole } from '../../../lib/cli/options.ts';

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

describe('a count and a share', () => {
  it.each([
    [fromOne, '1', 1],
    [share, '0', 0],
    [share, '.25', 0.25],
  ])('%p reads %s', (parse, text, value) => expect(parse(text)).toBe(value));

  it.each(['0', '-1', '1.5', '', 'x'])('a count is not %j', (text) => {
    expect(() => fromOne(text)).toThrow('Allowed: a whole number from 1.');
  });

  it.each(['1', '-0.1', 'NaN', '', 'x'])('a share is not %j', (text) => {
    expect(() => share(text)).toThrow('Allowed: a share, from 0 to below 1.');
  });
});
