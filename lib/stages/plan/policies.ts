import { policy, type Policy } from '../../policy/policy.ts';
import { multiQueue, multiQueueSettings } from '../../policy/turns/multi-queue.ts';
import { fair, hopper, srpt } from '../../policy/turns/by-job.ts';
import { byClass } from './by-class.ts';
import { fcfsPlan } from './fcfs.ts';
import { fifo, jobOrderBy, jobOrderPlan, shortestLeft } from './job-order.ts';
import { greedyPlan } from './greedy.ts';
import { inTurnPlan } from './in-turn.ts';
import { goodNeighboursFirst, neighbourSettings } from './good-neighbours.ts';
import { milpPlan } from './milp.ts';
import { oneJobAtATime } from './one-job-at-a-time.ts';
import { spotGreedyPlan } from './spot-greedy.ts';
import { uniformProgressPlan } from './uniform-progress.ts';
import { withoutExchanges } from './without-exchanges.ts';

/** Starts, waits and preemptions, now and in the look-ahead window. */
export const PLAN: readonly Policy<'plan'>[] = [
  policy(
    'plan',
    {
      name: 'milp',
      about: 'one mixed-integer program over a window of slots; no task is exchanged for another of its stage',
      source: 'JamaisVu, section 4.2 (STRL and its MILP)',
      tunes: ['solverSeconds', 'solverGap', 'solverMaxOptions'],
      asks: { prices: true, capacity: true },
      learners: ['lateness'],
    },
    withoutExchanges(byClass(milpPlan)),
  ),
  policy(
    'plan',
    {
      name: 'one-job-at-a-time',
      about:
        'jobs with a deadline one by one, as submitted, each with all running work in one program; then best effort',
      source: 'JamaisVu, section 4.1.4 (greedy mode)',
      asks: { prices: true, capacity: true },
    },
    withoutExchanges(oneJobAtATime),
  ),
  policy(
    'plan',
    {
      name: 'greedy',
      about: 'the best of three greedy fills over the same window; no solver',
      source: 'ours',
      asks: { prices: true, capacity: true },
      learners: ['lateness'],
    },
    withoutExchanges(byClass(greedyPlan)),
  ),
  policy(
    'plan',
    {
      name: 'spot-greedy',
      about: 'spot until the last safe moment, then on-demand',
      source: '"Can’t Be Late" (NSDI 2024, section 4)',
      asks: { prices: true },
    },
    withoutExchanges(spotGreedyPlan),
  ),
  policy(
    'plan',
    {
      name: 'uniform-progress',
      about: 'spot where there is some, on-demand when behind a line of even progress',
      source: '"Can’t Be Late" (NSDI 2024, section 4)',
      asks: { prices: true },
    },
    withoutExchanges(uniformProgressPlan),
  ),
  policy(
    'plan',
    {
      name: 'fcfs',
      about: 'first come, first served, deadline work first; knows no last safe moment',
      source: '"prio" of JamaisVu, section 5',
      asks: { prices: true },
    },
    fcfsPlan,
  ),
  policy(
    'plan',
    {
      name: 'fifo',
      about: 'jobs in the order of submission, whatever their deadlines',
      source: 'baseline',
      asks: { prices: true },
    },
    jobOrderPlan(fifo),
  ),
  policy(
    'plan',
    {
      name: 'srpt',
      about: 'the job with the least work left first',
      source: 'shortest remaining processing time: baseline of Hopper',
      asks: { prices: true },
    },
    jobOrderPlan(shortestLeft),
  ),
  {
    name: 'neighbours',
    about: 'the job that shares machines best with what runs there, by what was learned; drawn by its chances',
    source: 'Mary, Hugo and Hugo*, section 4',
    settings: neighbourSettings,
    learners: ['neighbours'],
    asks: { prices: true },
    decide: (settings) => jobOrderBy(goodNeighboursFirst(neighbourSettings.parse(settings))),
  },
  {
    name: 'multi-queue',
    about: 'queues by the size of jobs, which share the slots by weights; first in, first out in each',
    source: 'GS: SLearn, section 5.1',
    settings: multiQueueSettings,
    learners: ['sampling-ratio'],
    asks: { prices: true },
    decide: (settings) => {
      const taking = multiQueue(multiQueueSettings.parse(settings));
      return inTurnPlan(() => taking);
    },
  },
  policy(
    'plan',
    {
      name: 'hopper',
      about: 'slot by slot to the job that is furthest below its share, which has room for copies of slow tasks',
      source: 'Hopper, section 3 (algorithms 1 to 3)',
      asks: { prices: true },
    },
    inTurnPlan(hopper),
  ),
  policy(
    'plan',
    {
      name: 'srpt-copies',
      about: 'the job with the least work left first, copies of its slow tasks among its tasks',
      source: 'ours, after Hopper, section 1',
      asks: { prices: true },
      learners: ['copy-wins'],
    },
    inTurnPlan(srpt),
  ),
  policy(
    'plan',
    {
      name: 'fair',
      about: 'slot by slot to the job that has the fewest',
      source: 'fair sharing: baseline of Hopper',
      asks: { prices: true },
    },
    inTurnPlan(fair),
  ),
];
