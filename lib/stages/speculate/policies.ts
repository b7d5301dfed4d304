import { policy } from '../../policy/policy.ts';
import { late, mantri } from '../../policy/speculation/copy-rules.ts';
import { hopper, srpt } from '../../policy/turns/by-job.ts';
import { copiesInDollars } from './in-dollars.ts';
import { copiesInTurn, copiesOnRoomLeft } from './in-turn.ts';

/** Running tasks that get a second attempt. */
export const SPECULATE = [
  policy('speculate', { name: 'none', about: 'every task runs once', source: 'baseline' }, () => []),
  policy(
    'speculate',
    {
      name: 'late',
      about: 'the slowest quarter of each stage, on a tenth of the slots, on room that nothing else takes',
      source: 'LATE (OSDI 2008)',
    },
    copiesOnRoomLeft(late),
  ),
  policy(
    'speculate',
    {
      name: 'mantri',
      about: 'tasks that would probably take more than twice as long as a copy, on room that nothing else takes',
      source: 'Mantri (OSDI 2010)',
    },
    copiesOnRoomLeft(mantri),
  ),
  policy(
    'speculate',
    {
      name: 'hopper',
      about: 'slow tasks (`copyRule`), then others, where the plan `hopper` has a slot for a copy',
      source: 'Hopper, sections 2 and 3',
    },
    copiesInTurn(hopper),
  ),
  policy(
    'speculate',
    {
      name: 'srpt-copies',
      about: 'slow tasks (`copyRule`), a copy being one more task of its job under the plan `srpt-copies`',
      source: 'ours, after Hopper, section 1',
      learners: ['copy-wins'],
    },
    copiesInTurn(srpt),
  ),
  policy(
    'speculate',
    {
      name: 'worth-dollars',
      about: 'slow tasks whose earlier end is worth more than their copy costs, on room left or a bought instance',
      source: 'ours, after Mantri (OSDI 2010) and Hopper, section 2',
      learners: ['copy-wins', 'lateness'],
    },
    copiesInDollars,
  ),
];
