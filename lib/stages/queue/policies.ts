import { policy } from '../../policy/policy.ts';
import { eachItsPlace, shortTasksQueue } from './queue.ts';

/** Which tasks wait for a place that others have, instead of being bought one. */
export const QUEUE = [
  policy(
    'queue',
    {
      name: 'short-tasks-wait',
      about: 'tasks shorter than an instance’s start share places; programs never run before are tried on a few',
      source: 'ours',
      tunes: ['turnoverS'],
    },
    shortTasksQueue,
  ),
  policy('queue', { name: 'none', about: 'each task is bought a place', source: 'baseline' }, eachItsPlace),
];
