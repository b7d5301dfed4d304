import { seconds } from '../../kernel/units.ts';
import { policy } from '../../policy/policy.ts';
import { appraise } from './appraise.ts';
import { appraiseByPrice, appraiseByPriceAtOnDemand } from './by-price.ts';
import { bidsFor } from './pools.ts';
import { appraiseWithoutSpot } from './without-spot.ts';

/** Expected cost and risk of pools and bids, for a group. */
export const APPRAISE = [
  policy(
    'appraise',
    {
      name: 'cost-and-risk',
      about: 'expected cost with work done again and refunds, risk of interruption and of lateness',
      source: 'Tributary, section 2.2; Stratus, section 3.2.3',
      tunes: ['offersPerGroup'],
      learners: ['neighbours'],
      asks: { bids: bidsFor, horizon: 'any', prices: true },
    },
    appraise,
  ),
  policy(
    'appraise',
    {
      name: 'without-spot',
      about: 'the same of capacity that is not taken away alone',
      source: 'ours',
      tunes: ['offersPerGroup'],
      learners: ['neighbours'],
      asks: { bids: (pool) => (pool.option === 'spot' ? [] : ['uncapped']), horizon: 'any', prices: true },
    },
    appraiseWithoutSpot,
  ),
  policy(
    'appraise',
    {
      name: 'by-price',
      about: 'pools by the price of an instance now; no risk, no lateness',
      source: 'baseline: a request to EC2 Fleet',
      // Of the bids that it offers: the risk recorded with each purchase, whoever takes it into account.
      asks: { bids: (pool) => (pool.option === 'spot' ? ['uncapped'] : []), horizon: seconds(3600) },
    },
    appraiseByPrice,
  ),
  policy(
    'appraise',
    {
      name: 'by-price-at-on-demand',
      about: 'the same, with bids at the on-demand price',
      source: 'Stratus, section 3.2.3',
      asks: { bids: (pool) => (pool.option === 'spot' ? [pool.onDemandUsdPerHour] : []), horizon: seconds(3600) },
    },
    appraiseByPriceAtOnDemand,
  ),
];
