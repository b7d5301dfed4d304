import { STAGES, type StageName } from '../../lib/domain/preset-spec.ts';
import { decidersNamed } from '../../lib/drivers/sim/deciders.ts';
import { ownPolicy, type OwnPolicySpec } from '../../lib/policy/own/own-policy.ts';
import { POLICY_KIT } from '../../lib/stages/kit.ts';
import { presetNamed } from '../../lib/stages/registry.ts';

/** A preset whose stages are policies of the user's own, made of the contracts of the shipped ones. */

/** A function of a stage, whatever its form: `move` has several. */
export type Call = (...asked: readonly unknown[]) => unknown;

/** The policy of a shipped preset for a stage, with each function replaced by what `change` makes of it. */
export function wrapped(preset: string, stage: StageName, change: (call: Call, name: string) => Call): OwnPolicySpec {
  const shipped = POLICY_KIT.shipped(stage, presetNamed(preset).policies[stage]);
  const decide = () => {
    const contract: unknown = shipped.decide();
    if (typeof contract === 'function') return change(contract as Call, stage);
    const calls = Object.entries(contract as Readonly<Record<string, Call>>);
    return Object.fromEntries(calls.map(([name, call]) => [name, change(call, name)]));
  };
  return { ...shipped, name: 'my-own', about: 'under test', decide: decide as never };
}

/** Deciders of the shipped preset with these policies in place of its own. */
export function decidersWith(preset: string, policies: readonly OwnPolicySpec[]) {
  const own = Object.fromEntries(policies.map((p) => [p.stage, p.name]));
  const modules = policies.map((p) => ownPolicy(p, 'test.ts'));
  return decidersNamed('mine', { mine: { extends: preset, ...own } }, modules);
}

/** Every stage wrapped alike. */
export const allWrapped = (preset: string, change: (call: Call, name: string) => Call): readonly OwnPolicySpec[] =>
  STAGES.map((stage) => wrapped(preset, stage, change));

/** Changes whatever can be changed in what it is given, and in all that can be reached from there. */
export function wreck(given: unknown, seen = new Set<unknown>()): void {
  if (typeof given !== 'object' || given === null || seen.has(given)) return;
  seen.add(given);
  const attempt = (change: () => unknown): void => {
    try {
      change();
    } catch {
      // It cannot be changed.
    }
  };
  for (const key of Reflect.ownKeys(given)) {
    const value: unknown = Reflect.get(given, key);
    wreck(value, seen);
    for (const other of [undefined, 0, []])
      attempt(() => typeof value !== 'function' && Reflect.set(given, key, other));
  }
  if (given instanceof Float64Array) given.fill(NaN);
  const { values, clear, set, push } = given as Partial<Map<unknown, unknown> & unknown[]>;
  if (typeof values === 'function' && !ArrayBuffer.isView(given)) {
    for (const value of (values as () => Iterable<unknown>).call(given)) wreck(value, seen);
  }
  attempt(() => push?.call(given, null));
  attempt(() => set?.call(given as never, 'x', 'x'));
  attempt(() => clear?.call(given as never));
  Reflect.set(given, 'nowMs', 0);
}
