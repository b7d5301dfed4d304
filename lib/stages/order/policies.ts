import { policy } from '../../policy/policy.ts';
import { anywhere } from './anywhere.ts';
import { orderBy } from './starts.ts';

/** Order of starts on the room there is. */
export const ORDER = [
  policy(
    'order',
    {
      name: 'urgent-first',
      about: 'what may be late begins before everything else; starts keep to spot or to on-demand as planned',
      source: 'ours',
    },
    orderBy({ urgentFirst: true, keepsOption: true, keepsStages: true, sharesPools: true }),
  ),
  policy(
    'order',
    {
      name: 'as-packed',
      about: 'as the packer has it, on any instance that the constraints allow',
      source: 'baseline',
    },
    orderBy({ urgentFirst: false, keepsOption: false, keepsStages: false, sharesPools: false }),
  ),
  policy(
    'order',
    {
      name: 'anywhere',
      about: 'all starts in one packing, on any instance that the constraints allow',
      source: 'Stratus, section 3.2.2',
    },
    anywhere,
  ),
];
