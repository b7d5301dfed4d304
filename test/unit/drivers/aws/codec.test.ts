import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { bodyOf, decode, encode } from '../../../../lib/drivers/aws/store/codec.ts';
import { memoryKey, memoryPrefix, padded, unpadded } from '../../../../lib/drivers/aws/store/keys.ts';
import { FIRST_VERSION, SCHEMA_VERSION } from '../../../../lib/drivers/aws/store/upgrades.ts';

const SEED = 20261121;
const AT = { pk: 'J#j1', sk: 'JOB', attribute: 'j' };
const codeOf = (work: () => unknown): string => {
  try {
    work();
    return 'no error';
  } catch (error) {
    return error instanceof EbbError ? error.code : String(error);
  }
};

describe('values as bytes', () => {
  it('come back as they were, and long ones become short', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        // JSON itself has no negative zero.
        const expected = JSON.parse(JSON.stringify(value)) as unknown;
        expect(decode(encode(value), AT)).toEqual(expected);
      }),
      { seed: SEED, numRuns: 300 },
    );
    const alike = Array.from({ length: 1000 }, (_, index) => ({ index, state: 'running' }));
    expect(encode(alike).length).toBeLessThan(JSON.stringify(alike).length / 5);
  });

  it('of a later version or an unknown form are refused, and none is made up for those that are missing', () => {
    const b = { B: encode({ a: 1 }) };
    expect(bodyOf({ v: { N: String(SCHEMA_VERSION) }, b })).toEqual({ a: 1 });
    expect(codeOf(() => bodyOf({ v: { N: String(SCHEMA_VERSION + 1) }, b }))).toBe('store.newer');
    expect(codeOf(() => bodyOf({ v: { N: '1' } }))).toBe('store.corrupt');
    expect(codeOf(() => bodyOf({ v: { N: String(SCHEMA_VERSION) } }))).toBe('store.corrupt');
    expect(codeOf(() => decode(Uint8Array.of(9, 1, 2), AT))).toBe('store.corrupt');
  });

  it('bear the version that wrote them, whatever item they lie in', () => {
    const [form = 0, version, ...rest] = encode({ a: 1 });
    expect(version).toBe(SCHEMA_VERSION);
    const newer = Uint8Array.of(form, SCHEMA_VERSION + 1, ...rest);
    expect(codeOf(() => bodyOf({ v: { N: String(SCHEMA_VERSION) }, b: { B: newer } }))).toBe('store.newer');
    expect(codeOf(() => decode(Uint8Array.of(form, FIRST_VERSION - 1, ...rest), AT))).toBe('store.corrupt');
  });
});

describe('keys', () => {
  it('with numbers sort as the numbers do', () => {
    const number = fc.nat({ max: 999_999_999_999_999 });
    fc.assert(
      fc.property(number, number, (a, b) => {
        expect(padded(a) < padded(b)).toBe(a < b);
        expect(unpadded(`x#${padded(a)}`)).toBe(a);
      }),
      { seed: SEED },
    );
  });

  it('of memory are found by any beginning, differ where the keys differ, and fit', () => {
    const key = fc.oneof(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
      fc.string({ unit: 'grapheme', minLength: 500, maxLength: 900 }),
    );
    fc.assert(
      fc.property(key, key, fc.nat(1000), (a, b, length) => {
        const prefix = Array.from(a).slice(0, length).join('');
        expect(memoryKey(a).sk.startsWith(memoryPrefix(prefix))).toBe(true);
        expect(memoryKey(a).sk === memoryKey(b).sk).toBe(a === b);
        expect(Buffer.byteLength(memoryKey(a).sk)).toBeLessThanOrEqual(1024);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });
});
