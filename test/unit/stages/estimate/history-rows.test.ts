import { describe, expect, it } from '@jest/globals';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import { JvuPredict } from '../../../../lib/stages/estimate/predictor.ts';
import { features } from '../../../support/runs.ts';

function codeOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    return error instanceof EbbError ? error.code : String(error);
  }
  return 'no error';
}

describe('stored histories', () => {
  const predictor = new JvuPredict();
  predictor.learn(features({ owner: 'a/b %', jobName: '\ud800lone' }), seconds(10));
  predictor.learn(features({ owner: 'a/b %', jobName: '\ud800lone' }), seconds(30));
  const rows = predictor.export();

  it('have keys under one prefix, whatever the names hold', () => {
    expect(rows.length).toBe(predictor.size);
    expect(rows.every(([key]) => key.startsWith(predictor.prefix))).toBe(true);
    expect(new Set(rows.map(([key]) => key)).size).toBe(rows.length);
    expect(rows.find(([key]) => key.startsWith('history/owner/'))?.[0]).toBe('history/owner/a%2Fb%20%25');
  });

  it('are exported once, and again when they could not be stored', () => {
    expect(predictor.export()).toEqual([]);
    predictor.markChanged(rows.map(([key]) => key));
    expect(new Map(predictor.export())).toEqual(new Map(rows));
  });

  it('are refused when they are not what was written', () => {
    const [key, value] = rows[0] ?? ['', ''];
    const damaged: [string, string][] = [
      [key, value.slice(0, -5)],
      [key, '{}'],
      [key, value.replace('"n":2', '"n":3')],
      [key, value.replace(/"c":\[10,30\]/, '"c":[30,10]')],
      ['history/unknown/x', value],
      ['history/owner/%ZZ', value],
      ['other/owner/x', value],
    ];
    for (const row of damaged)
      expect([row, codeOf(() => new JvuPredict().import([row]))]).toEqual([row, 'store.corrupt']);
  });

  it('skips rows of forgotten feature-values', () => {
    const other = new JvuPredict();
    other.import([['history/owner/gone', '']]);
    expect(other.size).toBe(0);
  });
});

it('refuses a runtime that is no number and takes a zero for a millisecond', () => {
  const predictor = new JvuPredict();
  expect(() => predictor.learn(features(), seconds(NaN))).toThrow(RangeError);
  expect(() => predictor.learn(features(), seconds(Infinity))).toThrow(RangeError);
  expect(predictor.predict(features())).toBeNull();
  predictor.learn(features(), seconds(0));
  expect(raw(predictor.predict(features())?.evidence.pointS ?? seconds(-1))).toBe(0.001);
});

it('tells stages of one job apart', () => {
  const predictor = new JvuPredict();
  for (let i = 0; i < 5; i++) {
    predictor.learn(features({ stage: 'map' }), seconds(10));
    predictor.learn(features({ stage: 'reduce' }), seconds(1000));
  }
  expect(raw(predictor.predict(features({ stage: 'map' }))?.evidence.pointS ?? seconds(0))).toBe(10);
  expect(raw(predictor.predict(features({ stage: 'reduce' }))?.evidence.pointS ?? seconds(0))).toBe(1000);
});
