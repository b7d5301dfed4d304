import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import type { PresetSpec } from '../../../lib/domain/preset-spec.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { ownPolicy } from '../../../lib/policy/own/own-policy.ts';
import { POLICY_KIT } from '../../../lib/stages/kit.ts';
import { policyList, presetList, presetNamed, withStandIns, type OwnPresets } from '../../../lib/stages/registry.ts';

/** Policies that no shipped preset names: they are there to be mixed in. */
const MIXED_IN_ONLY = [
  'estimate jvupredict',
  'estimate told-expinc',
  'estimate told-incby1',
  'move guard-and-return',
  'place binpack-memory',
  'speculate mantri',
];

function refusal(make: () => unknown): { readonly code: string; readonly text: string } {
  try {
    make();
  } catch (error) {
    if (error instanceof EbbError) return { code: error.code, text: error.message };
    throw error;
  }
  throw new Error('nothing was refused');
}

const mine = (spec: PresetSpec): OwnPresets => ({ mine: spec });
const made = (spec: PresetSpec) => presetNamed('mine', mine(spec));

describe('a preset', () => {
  it.each<[string, string, OwnPresets, string]>([
    ['the preset that is asked for', 'ebbtode', {}, 'did you mean ebbtide?'],
    ['the user’s own preset', 'nihgtly', { nightly: { extends: 'ebbtide' } }, 'did you mean nightly?'],
    ['the preset that one extends', 'mine', mine({ extends: 'flet' }), 'did you mean fleet?'],
    ['a policy', 'mine', mine({ extends: 'ebbtide', plan: 'fcsf' }), 'did you mean fcfs?'],
    ['a policy with settings', 'mine', mine({ extends: 'ebbtide', plan: { policy: 'mlip' } }), 'did you mean milp?'],
    [
      'a setting',
      'mine',
      mine({ extends: 'ebbtide', plan: { policy: 'milp', solverGup: 600 } }),
      'solverGup is no setting of it (did you mean solverGap?)',
    ],
  ])('gets the nearest name for a wrong one: %s', (_, name, own, text) => {
    expect(refusal(() => presetNamed(name, own))).toEqual({ code: 'usage', text: expect.stringContaining(text) });
  });

  it('gets all names where none is near', () => {
    const { text } = refusal(() =>
      presetNamed('zzzzzzzzzz', { nightly: { extends: 'ebbtide' } }, { others: ['oracle'] }),
    );
    for (const { name } of [...presetList(), { name: 'nightly' }, { name: 'oracle' }]) expect(text).toContain(name);
    expect(text).toContain('allowed: ebbtide, ');
    expect(refusal(() => made({ extends: 'ebbtide', speculate: 'zzzzzzzz' })).text).toContain('allowed: none');
  });

  it.each<[string, OwnPresets, string]>([
    ['itself', { a: { extends: 'a' } }, 'a -> a'],
    ['one that extends it', { a: { extends: 'b' }, b: { extends: 'a' } }, 'a -> b -> a'],
    [
      'a circle that it is not in',
      { a: { extends: 'b' }, b: { extends: 'c' }, c: { extends: 'b' } },
      'the preset b extends itself',
    ],
  ])('may not extend %s', (_, own, text) => {
    expect(refusal(() => presetNamed('a', own))).toEqual({ code: 'usage', text: expect.stringContaining(text) });
  });

  it('of the user’s may not take a shipped name', () => {
    for (const { name } of presetList()) {
      const { code, text } = refusal(() => presetNamed(name, { [name]: { extends: 'ebbtide' } }));
      expect([name, code, text]).toEqual([name, 'usage', expect.stringContaining('may not replace a shipped preset')]);
    }
    expect(refusal(() => presetList({ fleet: { extends: 'ebbtide' } })).text).toContain('may not replace');
  });

  it('without `extends` names every stage', () => {
    const { policies } = presetNamed('ebbtide');
    expect(made(policies).policies).toEqual(policies);
    for (const stage of Object.keys(policies)) {
      const rest = Object.fromEntries(Object.entries(policies).filter(([named]) => named !== stage));
      expect(refusal(() => made(rest)).text).toContain(`names no policy for the stage ${stage}`);
    }
  });

  it('takes what it does not name from what it extends, through several', () => {
    const own: OwnPresets = {
      a: { extends: 'fleet', plan: 'greedy', forecast: 'model' },
      b: { extends: 'a', scale: 'cheapest-spot', plan: { policy: 'milp', solverGap: 0.5 } },
    };
    const b = presetNamed('b', own);
    expect(b.policies).toEqual({ ...presetNamed('fleet').policies, plan: 'milp', scale: 'cheapest-spot' });
    expect(b.forecast).toBe('model');
    expect(presetList(own).map((p) => p.name)).toEqual([...presetList().map((p) => p.name), 'a', 'b']);
  });

  it('is described by itself, not by what it extends', () => {
    const own: OwnPresets = {
      a: { extends: 'fleet', plan: { policy: 'milp', solverGap: 0.5 } },
      b: { extends: 'a', about: 'mine', source: 'a paper' },
    };
    const [a, b] = presetList(own).slice(-2);
    expect(a).toMatchObject({
      about: 'your own, from fleet',
      source: 'your own',
      settings: { plan: { solverGap: 0.5 } },
    });
    expect(b).toMatchObject({ about: 'mine', source: 'a paper', settings: { plan: { solverGap: 0.5 } } });
    expect(presetNamed('fleet')).toMatchObject({ settings: {}, source: expect.stringContaining('EC2') });
  });

  it('refuses settings that a policy does not have, or of another type', () => {
    const plan = (settings: Record<string, unknown>): string =>
      refusal(() => made({ extends: 'ebbtide', plan: { policy: 'milp', ...settings } })).text;
    expect(plan({ solverGap: '600' })).toContain('solverGap: ');
    expect(plan({ solverGap: -1 })).toContain('solverGap: ');
    expect(plan({ solverMaxOptions: 2.5 })).toContain('solverMaxOptions: ');
    // A setting of the deployment, and of another policy, but not of this one.
    expect(plan({ offersPerGroup: 5 })).toContain('offersPerGroup is no setting of it');
    const both = plan({ solverGap: '600', colour: 'red' });
    expect(both).toContain('solverGap: ');
    expect(both).toContain('colour is no setting of it');
    const none = refusal(() => made({ extends: 'ebbtide', plan: { policy: 'fcfs', solverGap: 60 } })).text;
    expect(none).toContain('it has no settings');
  });

  it('finds nothing under names that every object has', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect([name, refusal(() => presetNamed(name)).code]).toEqual([name, 'usage']);
      expect([name, refusal(() => made({ extends: name })).code]).toEqual([name, 'usage']);
      expect([name, refusal(() => made({ extends: 'ebbtide', plan: name })).code]).toEqual([name, 'usage']);
      const given = JSON.parse(`{"policy": "milp", "${name}": 1}`) as { policy: string };
      expect([name, refusal(() => made({ extends: 'ebbtide', plan: given })).code]).toEqual([name, 'usage']);
    }
  });
});

describe('`presets` in the settings', () => {
  const parsed = (presets: unknown) => schedulerConfig.safeParse({ presets });
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`mine-${i}`, { extends: 'ebbtide' }]));

  it('are at most 32', () => {
    expect(parsed(many(32)).success).toBe(true);
    expect(parsed(many(33)).error?.issues.map((i) => i.message)).toEqual(['at most 32 presets']);
  });

  it('take policies by name or with settings beside it, and know no other keys', () => {
    expect(
      parsed({ a: { extends: 'ebbtide', plan: { policy: 'milp', solverGap: 0.5 }, scale: 'on-demand' } }).success,
    ).toBe(true);
    expect(parsed({ a: { extends: 'ebbtide', plann: 'milp' } }).success).toBe(false);
    expect(parsed({ a: { extends: 'ebbtide', plan: { slotS: 60 } } }).success).toBe(false);
    expect(parsed({ a: { extends: 'ebbtide', plan: 7 } }).success).toBe(false);
    expect(parsed({ A: { extends: 'ebbtide' } }).success).toBe(false);
    expect(parsed({ a: 'ebbtide' }).success).toBe(false);
  });

  it('are never the prototype of anything', () => {
    for (const name of ['__proto__', 'constructor']) {
      const settings: unknown = JSON.parse(`{"${name}": {"extends": "ebbtide"}}`);
      const { data } = parsed(settings);
      expect(Object.getPrototypeOf(data?.presets ?? {})).toBe(Object.prototype);
      if (data !== undefined && !Object.hasOwn(data.presets, name)) {
        expect(refusal(() => presetNamed(name, data.presets)).code).toBe('usage');
      }
    }
  });
});

describe('the stand-ins of a preset', () => {
  const ownPolicies = [
    ownPolicy(
      { stage: 'place', name: 'my-own', about: 'under test', decide: POLICY_KIT.shipped('place', 'stratus').decide },
      'test.ts',
    ),
  ];

  it('take the places of the user’s own policies, and all else stays as it is set', () => {
    const own: OwnPresets = {
      parent: { extends: 'fleet', place: 'one-per-instance' },
      mine: { extends: 'parent', place: 'my-own', plan: { policy: 'milp', solverGap: 0.5 } },
      other: { extends: 'fleet', place: 'my-own' },
    };
    const replaced = withStandIns('mine', own, { ownPolicies });
    const { policies, own: left } = presetNamed('mine', replaced);
    expect(left).toBeUndefined();
    expect(policies).toEqual({ ...presetNamed('parent', own).policies, plan: 'milp' });
    expect(replaced['mine']).toMatchObject({ plan: { policy: 'milp', solverGap: 0.5 } });
    expect(replaced['other']).toEqual(own['other']);
  });

  it('change nothing of a preset of shipped policies', () => {
    const own: OwnPresets = { mine: { extends: 'fleet', place: 'my-own' }, mixed: { extends: 'fleet', plan: 'fcfs' } };
    expect(withStandIns('mixed', own, { ownPolicies })).toBe(own);
    expect(withStandIns('ebbtide', own, { ownPolicies })).toBe(own);
  });
});

describe('every policy', () => {
  it('is named by a shipped preset, or here', () => {
    const named = new Set(
      presetList().flatMap(({ policies }) => Object.entries(policies).map(([stage, name]) => `${stage} ${name}`)),
    );
    const unused = policyList()
      .map(({ stage, name }) => `${stage} ${name}`)
      .filter((p) => !named.has(p));
    expect(unused).toEqual(MIXED_IN_ONLY);
  });

  it('has a name of its own in its stage, a line about it and a source', () => {
    const all = policyList();
    expect(new Set(all.map(({ stage, name }) => `${stage} ${name}`)).size).toBe(all.length);
    expect(all.filter(({ about, source }) => about === '' || source === '')).toEqual([]);
  });

  it('can be mixed into the default by its name', () => {
    for (const { stage, name } of policyList()) {
      expect(made({ extends: 'ebbtide', [stage]: name }).policies).toMatchObject({ [stage]: name });
    }
  });
});
