import { presetList, presetNamed } from '../../stages/presets.ts';
import { EbbError } from '../../kernel/errors.ts';
import { oracle, ORACLE_ABOUT } from './oracle.ts';
import type { Deciders } from './simulation.ts';
import type { Truth } from './truth.ts';

const ORACLE = 'oracle';

/** What may decide in a simulation: the presets of every driver, and the oracle. */
export const deciderList = (): readonly { readonly name: string; readonly about: string }[] => [
  ...presetList(),
  { name: ORACLE, about: ORACLE_ABOUT },
];

/** Whether it brings a forecast of its own. */
export const decidesItself = (name: string): boolean => name === ORACLE;

/** How to make what decides from the truth of a run, of which only the oracle is told. Throws `usage` for a name that is none. */
export function decidersNamed(name: string): (truth: Truth) => Deciders {
  if (name === ORACLE) return oracle;
  if (deciderList().some((d) => d.name === name)) return () => ({ name, stages: presetNamed(name) });
  throw new EbbError('usage', {
    what: 'no such preset',
    got: name,
    allowed: deciderList()
      .map((d) => d.name)
      .join(', '),
    next: 'see `ebb config --presets`; the oracle is for simulations only',
  });
}
