import type { Bid, Pool } from '../../domain/pool.ts';
import type { Asks } from '../../policy/asks.ts';
import { policy } from '../../policy/policy.ts';
import { movesToCheaper } from './cheaper-instance.ts';
import { clearing, clearingAndCheaper } from './clearing.ts';
import { guarded, guardedAndConsolidating, guardedAndReturning, guardedAndUniform, staying } from './moves.ts';
import { byDotProduct, byRuntimeBin } from './repack.ts';
import { movingWhole } from './whole-instance.ts';

/** Any horizon, because the time at risk is the running time. */
const GUARD = { held: true, horizon: 'any', prices: true } satisfies Asks;

const bidsWhileConsolidating = (pool: Pool): Bid[] =>
  pool.option === 'spot' ? ['uncapped', pool.onDemandUsdPerHour] : [];

/** Moves of running work. */
export const MOVE = [
  policy(
    'move',
    {
      name: 'guard-and-return',
      about: 'off spot to keep a deadline, back to spot where it pays',
      source: 'ours, with the margin of "Can’t Be Late" (NSDI 2024, section 4)',
      asks: { ...GUARD, capacity: true, bids: (pool: Pool): Bid[] => (pool.option === 'spot' ? ['uncapped'] : []) },
      learners: ['lateness'],
    },
    guardedAndReturning,
  ),
  policy(
    'move',
    {
      name: 'guard-return-and-consolidate',
      about: 'the same, and work leaves instances that are given back, where that saves twice what it disrupts',
      source: 'ours; Stratus, section 3.2.4 (heuristic 2)',
      asks: { ...GUARD, capacity: true, bids: bidsWhileConsolidating },
      learners: ['lateness', 'neighbours'],
    },
    guardedAndConsolidating,
  ),
  policy('move', { name: 'guard', about: 'off spot to keep a deadline', source: 'ours', asks: GUARD }, guarded),
  policy(
    'move',
    {
      name: 'uniform-progress',
      about: 'off spot to keep a deadline, back to spot once ahead of a line of even progress',
      source: '"Can’t Be Late" (NSDI 2024, section 4)',
      asks: GUARD,
    },
    guardedAndUniform,
  ),
  policy(
    'move',
    {
      name: 'clearing',
      about: 'all work leaves an instance that is used to less than half for long',
      source: 'Stratus, section 3.2.4 (heuristic 2)',
    },
    movingWhole(clearing(byRuntimeBin)),
  ),
  policy(
    'move',
    {
      name: 'cheaper-instance',
      about: 'all work leaves an instance for a cheaper one that holds it, once that pays',
      source: 'HotSpot: Stratus, sections 3.1.2 and 3.3.3',
    },
    movingWhole(movesToCheaper),
  ),
  policy(
    'move',
    {
      name: 'cheaper-and-clearing',
      about: 'both, with room found by dot product',
      source: 'Stratus, section 3.4.2',
    },
    movingWhole(clearingAndCheaper(byDotProduct)),
  ),
  policy('move', { name: 'stay', about: 'work stays where it began', source: 'baseline' }, staying),
];
