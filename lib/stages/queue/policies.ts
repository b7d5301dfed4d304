import { policy } from '../../policy/policy.ts';
import { eachItsPlace, shortTasksQueue } from './queue.ts';

/** Tasks that wait for slot reuse instead of a purchase. */
export const QUEUE = [
  policy(
    'queue',
    {
      name: 'short-tasks-wait',
      about: 'tasks shorter than an instance’s start share places; programs never run before are tried on a few',
      source: 'ours',
      reusesSlots: true,
    },
    shortTasksQueue,
  ),
  policy('queue', { name: 'none', about: 'each task is bought a place', source: 'baseline' }, eachItsPlace),
];
