/**
 * Loads modules with policies of the user's own (lib/stages/kit.ts). They run in this process with all its rights, as
 * any program that the user starts. Each thread that decides loads them for itself.
 */
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { statSync } from 'node:fs';
import type { SchedulerConfig } from '../../../domain/config.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { thrownLine } from '../../../policy/own/guarded.ts';
import { ownPolicy, type OwnPolicy } from '../../../policy/own/own-policy.ts';
import { isScaling, ownScaling, type OwnScaling } from '../../../policy/services/own-scaling.ts';
import { SCALING_NAMES } from '../../../stages/services/scalings.ts';
import { POLICY_KIT } from '../../../stages/kit.ts';
import { policyList } from '../../../stages/registry.ts';

const EXTENSIONS: readonly string[] = ['.ts', '.mts', '.js', '.mjs'];
const MOST_POLICIES = 64;

/**
 * Policies of the modules that the settings name, in their order. Throws `usage`, with the module, if a module is
 * missing, throws when loaded, gives no policy, or repeats a name.
 */
export async function loadPolicies({
  policyModules = [],
}: Partial<Pick<SchedulerConfig, 'policyModules'>>): Promise<readonly OwnPolicy[]> {
  const policies: OwnPolicy[] = [];
  for (const path of policyModules) {
    const given = await givenBy(path);
    policies.push(...given.filter((of) => !isScaling(of)).map((of) => ownPolicy(of, path)));
  }
  expectApart(policies);
  return policies;
}

/** Scaling policies of services from the same modules. Throws as `loadPolicies` does. */
export async function loadScalings({
  policyModules = [],
}: Partial<Pick<SchedulerConfig, 'policyModules'>>): Promise<readonly OwnScaling[]> {
  const taken = new Map(SCALING_NAMES.map((name) => [name, 'a shipped policy']));
  const scalings: OwnScaling[] = [];
  for (const path of policyModules) {
    for (const given of (await givenBy(path)).filter(isScaling)) {
      const scaling = ownScaling(given, path);
      const other = taken.get(scaling.name);
      if (other !== undefined) {
        throw refused(path, `the name of a scaling policy is taken: ${scaling.name} is ${other}`);
      }
      taken.set(scaling.name, `one of ${path}`);
      scalings.push(scaling);
    }
  }
  return scalings;
}

/** What a module gives, not checked yet. */
async function givenBy(path: string): Promise<readonly unknown[]> {
  const make = await defaultExport(path);
  let given: unknown;
  try {
    given = await make(POLICY_KIT);
  } catch (error) {
    throw refused(path, 'a module of policies throws when it is called', error);
  }
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length <= MOST_POLICIES) return list;
  throw refused(path, `a module gives ${list.length} policies; allowed: ${MOST_POLICIES}`);
}

async function defaultExport(path: string): Promise<(kit: unknown) => unknown> {
  if (!EXTENSIONS.includes(extname(path))) {
    throw refused(path, `a module of policies ends in ${EXTENSIONS.join(', ')}`);
  }
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    throw refused(path, 'there is no such module of policies');
  }
  let loaded: unknown;
  try {
    loaded = await import(pathToFileURL(path).href);
  } catch (error) {
    throw refused(path, 'a module of policies cannot be loaded', error);
  }
  const make = (loaded as { readonly default?: unknown }).default;
  if (typeof make === 'function') return make as (kit: unknown) => unknown;
  throw refused(path, 'a module of policies has no function as its default export');
}

function expectApart(policies: readonly OwnPolicy[]): void {
  const taken = new Map(policyList().map(({ stage, name }) => [`${stage}: ${name}`, 'a shipped policy']));
  for (const { stage, name, from } of policies) {
    const other = taken.get(`${stage}: ${name}`);
    if (other !== undefined) throw refused(from, `the name of a policy is taken: ${stage}: ${name} is ${other}`);
    taken.set(`${stage}: ${name}`, `one of ${from}`);
  }
}

const refused = (path: string, what: string, error?: unknown): EbbError =>
  new EbbError('usage', {
    what,
    got: error === undefined ? path : `${path}: ${thrownLine(error)}`,
    next: 'see docs/write-a-policy.md; paths in a file of settings start at its folder',
  });
