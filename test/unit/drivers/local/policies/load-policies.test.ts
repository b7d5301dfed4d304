import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { EbbError } from '../../../../../lib/kernel/errors.ts';
import { givenSettings } from '../../../../../lib/cli/engine-options.ts';
import { loadPolicies, loadScalings } from '../../../../../lib/drivers/local/policies/load-policies.ts';
import { presetNamed } from '../../../../../lib/stages/registry.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-policies-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GOOD = `({ z }) => ({
  stage: 'place',
  name: 'nowhere',
  about: 'places nothing',
  settings: z.strictObject({ spare: z.number().default(1) }),
  decide: () => () => [],
})`;

let written = 0;
function moduleOf(code: string, extension = '.mjs'): string {
  const path = join(folder, `module-${++written}${extension}`);
  writeFileSync(path, code);
  return path;
}
const refusal = async (...policyModules: readonly string[]): Promise<string> => {
  try {
    await loadPolicies({ policyModules: [...policyModules] });
  } catch (error) {
    return `${String(error)} ${JSON.stringify((error as EbbError).facts)}`;
  }
  return 'nothing was refused';
};

describe('modules of policies', () => {
  it('give policies that presets name, with settings of their own', async () => {
    const ownPolicies = await loadPolicies({ policyModules: [moduleOf(`export default ${GOOD}`, '.ts')] });
    const named = (place: object) =>
      presetNamed('mine', { mine: { extends: 'ebbtide', place } as never }, { ownPolicies });
    expect(named({ policy: 'nowhere', spare: 2 }).policies.place).toBe('nowhere');
    expect(() => named({ policy: 'nowhere', spare: 'two' })).toThrow('spare: ');
    expect(() => named({ policy: 'nowere' })).toThrow('did you mean nowhere?');
  });

  it.each([
    ['a file that is not there', () => join(folder, 'none.mjs'), 'there is no such module'],
    ['a folder', () => (mkdirSync(join(folder, 'folder.mjs')), join(folder, 'folder.mjs')), 'there is no such module'],
    ['another kind of file', () => moduleOf('{}', '.json'), 'ends in .ts, .mts, .js, .mjs'],
    ['no function', () => moduleOf('export default 5'), 'no function as its default export'],
    ['a module that throws', () => moduleOf('throw new Error("at load")'), 'at load'],
    ['a function that throws', () => moduleOf('export default () => { throw new Error("at call") }'), 'at call'],
    ['what is no policy', () => moduleOf('export default () => ({ stage: "palce" })'), 'expected one of'],
    [
      'a shipped name',
      () => moduleOf(`export default (kit) => ({ ...(${GOOD})(kit), name: 'stratus' })`),
      'place: stratus is a shipped policy',
    ],
    [
      'bids without a horizon',
      () => moduleOf(`export default (kit) => ({ ...(${GOOD})(kit), asks: { bids: () => [] } })`),
      'it needs a `horizon`',
    ],
    [
      'too many',
      () => moduleOf(`export default (kit) => Array.from({ length: 65 }, () => (${GOOD})(kit))`),
      'gives 65 policies; allowed: 64',
    ],
  ])('that are %s are refused, with their path', async (_, path, text) => {
    const of = path();
    const said = await refusal(of);
    expect(said).toContain(text);
    expect(said).toContain(of);
  });

  it('may not give one name twice', async () => {
    expect(await refusal(moduleOf(`export default ${GOOD}`), moduleOf(`export default ${GOOD}`))).toContain(
      'the name of a policy is taken: place: nowhere',
    );
  });

  it('a policy that throws when a preset makes it is refused by its name', async () => {
    const throwing = `export default (kit) => ({ ...(${GOOD})(kit), decide: () => { throw new Error('made') } })`;
    const ownPolicies = await loadPolicies({ policyModules: [moduleOf(throwing)] });
    const make = () => presetNamed('mine', { mine: { extends: 'ebbtide', place: 'nowhere' } }, { ownPolicies });
    expect(make).toThrow('the policy nowhere throws when it is made');
    expect(make).toThrow('made');
  });
});

it('paths of modules start at the folder of the settings, or where the command is given', () => {
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'sub', 'settings.yaml'), 'policyModules: [mine.ts]');
  expect(givenSettings({ settings: 'sub/settings.yaml' }, folder).policyModules).toEqual([
    join(folder, 'sub', 'mine.ts'),
  ]);
  expect(givenSettings({ set: { policyModules: ['mine.ts'] } }, folder).policyModules).toEqual([
    join(folder, 'mine.ts'),
  ]);
});

describe('modules with scaling policies', () => {
  const scaling = (name: string, decide = '() => ({ rps }) => 2 * (rps.at(-1) ?? 0)'): string =>
    `({ scaling }) => scaling({ name: '${name}', about: 'twice what came last', decide: ${decide} })`;
  const told = async (code: string): Promise<string> => {
    try {
      await loadScalings({ policyModules: [moduleOf(`export default ${code}`)] });
      return 'nothing was refused';
    } catch (error) {
      return `${String(error)} ${JSON.stringify((error as EbbError).facts)}`;
    }
  };

  it('give them beside policies of stages, each to its own loader', async () => {
    const both = moduleOf(`export default (kit) => [(${GOOD})(kit), (${scaling('twice')})(kit)]`);
    const [twice, ...more] = await loadScalings({ policyModules: [both] });
    expect(more).toEqual([]);
    expect(twice?.policy({ periodS: 60, rps: [1, 4] })).toBe(8);
    expect((await loadPolicies({ policyModules: [both] })).map((p) => p.name)).toEqual(['nowhere']);
  });

  it.each([
    ['the name of a shipped one', scaling('reactive'), 'is taken: reactive is a shipped policy'],
    ['no function', scaling('none', '() => 5'), 'must return a function; got number'],
    ['a name that is none', scaling('Not A Name'), 'name'],
  ])('are refused with %s', async (_what, code, why) => {
    expect(await told(code)).toContain(why);
  });
});
