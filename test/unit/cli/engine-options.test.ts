import { describe, expect, it } from '@jest/globals';
import { checkedSettings, embeddedOptions } from '../../../lib/cli/engine-options.ts';
import { instantMs, setting } from '../../../lib/cli/options.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';

describe('settings', () => {
  it('keeps only what was given, as the type it has', () => {
    const given = setting('refundRule=none', setting('maxLateProbability=0.01'));
    expect(checkedSettings(given)).toEqual({ maxLateProbability: 0.01, refundRule: 'none' });
  });

  it('reports every finding, and the nearest name of a misspelt one', () => {
    const attempt = (): unknown => checkedSettings({ maxLatePropability: 0.1, slotS: -1 });
    expect(attempt).toThrow(EbbError);
    try {
      attempt();
    } catch (error) {
      const issues = (error as EbbError).facts.issues ?? [];
      expect(issues.map((i) => i.at).sort()).toEqual(['maxLatePropability', 'slotS']);
      expect(issues.find((i) => i.at === 'maxLatePropability')?.message).toContain('maxLateProbability');
    }
  });
});

describe('what an engine is opened with', () => {
  it('leaves open what was not given', () => {
    expect(embeddedOptions({ dir: '.ebb' }, '/home/ada')).toEqual({
      dir: '/home/ada/.ebb',
      market: null,
      fromMs: null,
      speed: null,
      seed: null,
      preset: null,
      config: {},
      dumpModel: null,
    });
  });

  it('takes a preset named as a setting for what it is', () => {
    const { preset, config } = embeddedOptions({ dir: 'd', set: { preset: 'ebbtide', slotS: 300 } }, '/');
    expect(preset).toBe('ebbtide');
    expect(config).toEqual({ slotS: 300 });
  });

  it('refuses two different presets', () => {
    expect(() => embeddedOptions({ dir: 'd', preset: 'a', set: { preset: 'b' } }, '/')).toThrow('two presets');
    expect(() => embeddedOptions({ dir: 'd' }, '/', 'no-such-folder/m.lp')).toThrow(/ENOENT.*no-such-folder/);
  });
});

describe('instants', () => {
  it.each([
    ['2016-04-09', Date.UTC(2016, 3, 9)],
    ['2016-04-09T12:30', Date.UTC(2016, 3, 9, 12, 30)],
    ['2016-04-09T12:30:15Z', Date.UTC(2016, 3, 9, 12, 30, 15)],
    ['2016-04-09 12:30:15+02:00', Date.UTC(2016, 3, 9, 10, 30, 15)],
  ])('%s is read in UTC unless it says otherwise', (text, ms) => expect(instantMs(text)).toBe(ms));

  it.each(['', '09.04.2016', '2016-13-01', '2016', 'now'])('%j is refused', (text) => {
    expect(() => instantMs(text)).toThrow('ISO 8601');
  });
});
