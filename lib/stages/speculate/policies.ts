import { policy } from '../../policy/policy.ts';
import { fair, hopper, srpt } from '../../policy/speculation/turn-taking.ts';
import { copiesInTurn } from './in-turn.ts';

/** Running tasks that get a second attempt. */
export const SPECULATE = [
  policy('speculate', { name: 'none', about: 'every task runs once', source: 'baseline' }, () => []),
  policy(
    'speculate',
    {
      name: 'hopper',
      about: 'slow tasks (`copyRule`), where the plan `hopper` has a slot for a copy',
      source: 'Hopper, sections 3 and 5.2',
    },
    copiesInTurn(hopper),
  ),
  policy(
    'speculate',
    {
      name: 'srpt',
      about: 'slow tasks (`copyRule`), a copy being one more task of its job under the plan `srpt-copies`',
      source: 'best-effort speculation: Hopper, section 2.2',
    },
    copiesInTurn(srpt),
  ),
  policy(
    'speculate',
    {
      name: 'fair',
      about: 'slow tasks (`copyRule`), a copy being one more task of its job under the plan `fair`',
      source: 'best-effort speculation: Hopper, section 2.2',
    },
    copiesInTurn(fair),
  ),
];
