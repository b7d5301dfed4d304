import { describe, expect, it } from '@jest/globals';
import { between, diskBytes, durationS, fromOne, path, positive, share, whole } from '../../../lib/cli/options.ts';

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

describe('a disk budget', () => {
  it.each([
    ['32MiB', 32 * 1024 ** 2],
    ['20 GB', 19_074 * 1024 ** 2],
    ['1.5TiB', 1.5 * 1024 ** 4],
  ])('%s is %d bytes, in whole MiB', (text, bytes) => expect(diskBytes(text)).toBe(bytes));

  it.each(['0', '0GB', '31MiB', '-5GB', '20', '10%', 'abc', '', '1e9', '9999999TB'])('is not %j', (text) => {
    expect(() => diskBytes(text)).toThrow('Allowed: a size with a unit, from 32MiB, such as 500MB, 20GB or 1.5TiB.');
  });
});

describe('a duration', () => {
  it.each([
    ['90', 90],
    ['1.5', 1.5],
    ['10m', 600],
    ['1h', 3600],
  ])('%j is %d seconds', (text, s) => expect(durationS(text)).toBe(s));

  it.each(['', '0', '0s', '-5m', 'soon', '10 parsecs'])('is not %j', (text) => {
    expect(() => durationS(text)).toThrow('Allowed: a duration above 0');
  });
});

describe('a path', () => {
  it('is taken as it is', () => expect(path(' a/b ')).toBe(' a/b '));

  it.each(['', '  ', 'a\0b'])('is not %j, which would mean another place', (text) => {
    expect(() => path(text)).toThrow(/Allowed: (a|the) path/);
  });
});
