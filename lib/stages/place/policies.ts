import { policy } from '../../policy/policy.ts';
import { firstFit } from './first-fit.ts';
import { onePerInstance } from './one-per-instance.ts';
import { stratusPack } from './stratus.ts';

/** Placement of tasks on instances. */
export const PLACE = [
  policy(
    'place',
    {
      name: 'stratus',
      about: 'tasks that end together share an instance (runtime bins)',
      source: 'Stratus, section 3.2.2',
    },
    stratusPack,
  ),
  policy('place', { name: 'first-fit', about: 'the first instance by name with room', source: 'baseline' }, firstFit),
  policy(
    'place',
    {
      name: 'one-per-instance',
      about: 'each task alone on an instance',
      source: 'baseline: fleets that scale by tasks',
    },
    onePerInstance,
  ),
];
