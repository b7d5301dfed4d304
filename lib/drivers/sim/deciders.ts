import { presetList, presetNamed, type OwnPresets, type PresetView } from '../../stages/registry.ts';
import { marketOfPreset } from '../../market/fargate.ts';
import type { MarketTrace } from '../../market/trace.ts';
import { ORACLE } from '../../report/hindsight.ts';
import { oracle, ORACLE_ABOUT } from './oracle.ts';
import type { OwnPolicy } from '../../policy/own/own-policy.ts';
import type { Deciders } from './simulation.ts';
import type { Truth } from './truth.ts';

/** A preset; the oracle has neither policies nor settings. */
export type Decider = Pick<PresetView, 'name' | 'about' | 'source'> & Partial<PresetView>;

/** Deciders of a simulation: the presets of every driver, and the oracle. */
export const deciderList = (own: OwnPresets = {}, ownPolicies: readonly OwnPolicy[] = []): readonly Decider[] => [
  ...presetList(own, ownPolicies),
  { name: ORACLE, about: ORACLE_ABOUT, source: 'ours' },
];

/** True if it brings a forecast of its own. */
export const decidesItself = (name: string): boolean => name === ORACLE;

/** Maker of deciders by name. Only the oracle reads the truth of a run. Throws `usage` for an unknown name. */
export function decidersNamed(
  name: string,
  presets: OwnPresets = {},
  ownPolicies: readonly OwnPolicy[] = [],
): (truth: Truth) => Deciders {
  if (name === ORACLE) return oracle;
  const { stages, asks, own } = presetNamed(name, presets, { ownPolicies, others: [ORACLE] });
  return () => ({ name, stages, asks, ...(own && { own }) });
}

/** The market that a decider of that name needs (lib/market/fargate.ts). Throws `usage` for an unknown name. */
export const marketOfDecider = (
  trace: MarketTrace,
  name: string,
  presets: OwnPresets = {},
  ownPolicies: readonly OwnPolicy[] = [],
): MarketTrace =>
  decidesItself(name)
    ? trace
    : marketOfPreset(trace, presetNamed(name, presets, { ownPolicies, others: [ORACLE] }).stages);
