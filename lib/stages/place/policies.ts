import { policy } from '../../policy/policy.ts';
import { binpack } from './binpack.ts';
import { dotProduct } from './dot-product.ts';
import { firstFit } from './first-fit.ts';
import { freshInstances } from './fresh-instances.ts';
import { onePerInstance } from './one-per-instance.ts';
import { offDearHosts } from '../../policy/colocation/dear-hosts.ts';
import { LEAVING, staying } from '../../policy/leaving.ts';
import { atRandom, roundRobin } from './spread.ts';
import { balancedPack, stratusPack } from './stratus.ts';
import { throughputAware } from './throughput-aware.ts';

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
  policy(
    'place',
    {
      name: 'stratus-balanced',
      about: 'the same, and empty instances are filled with tasks of different proportions together',
      source: 'ours; Stratus, section 3.2.2',
      learners: ['neighbours'],
    },
    // Nothing goes on instances that work is leaving.
    (tasks, hosts, context) => balancedPack(offDearHosts(tasks, context), staying(hosts, context.memory.of(LEAVING))),
  ),
  policy(
    'place',
    {
      name: 'stratus-uncleared',
      about: 'the same, and nothing goes on instances that work is leaving',
      source: 'Stratus, sections 3.2.2 and 3.2.4 (heuristic 2)',
    },
    (tasks, hosts, { memory }) => stratusPack(tasks, staying(hosts, memory.of(LEAVING))),
  ),
  policy('place', { name: 'first-fit', about: 'the first instance by name with room', source: 'baseline' }, firstFit),
  policy(
    'place',
    { name: 'round-robin', about: 'one instance after the other: the one with the least on it', source: 'baseline' },
    roundRobin,
  ),
  policy(
    'place',
    {
      name: 'random',
      about: 'empty instances first, then any with room, drawn at random',
      source: 'Mary, Hugo and Hugo*, section 4.1.3',
    },
    atRandom,
  ),
  policy(
    'place',
    {
      name: 'one-per-instance',
      about: 'each task alone on an instance',
      source: 'baseline: fleets that scale by tasks',
    },
    onePerInstance,
  ),
  policy(
    'place',
    {
      name: 'binpack-cpu',
      about: 'the instance with the least free CPU on which the task fits',
      source: 'Amazon ECS, placement strategy `binpack`; Stratus, section 3.1.1',
    },
    binpack('cpu'),
  ),
  policy(
    'place',
    {
      name: 'binpack-memory',
      about: 'the instance with the least free memory on which the task fits',
      source: 'Amazon ECS, placement strategy `binpack`; Stratus, section 3.1.1',
    },
    binpack('memory'),
  ),
  policy(
    'place',
    {
      name: 'dot-product',
      about: 'the instance whose free resources are the most like the need',
      source: 'Stratus, section 3.4.2 (on-line vector bin packing)',
    },
    dotProduct,
  ),
  policy(
    'place',
    {
      name: 'throughput-aware',
      about: 'where a task adds most to what the tasks of an instance are worth, less what neighbours lose',
      source: 'Eva (EuroSys 2025)',
      learners: ['neighbours'],
    },
    throughputAware,
  ),
  policy(
    'place',
    {
      name: 'fresh-instances',
      about: 'only instances that were bought for the task and run nothing yet; the largest tasks first',
      source: 'SuperCloud-Spot: Stratus, section 3.3.3',
    },
    freshInstances,
  ),
];
