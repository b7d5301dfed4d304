import type { Asks } from '../../policy/asks.ts';
import { policy } from '../../policy/policy.ts';
import { scaling } from './acquire.ts';
import { cheapestSpot } from './cheapest-spot.ts';
import { onDemandOnly } from './on-demand-only.ts';
import { NEAR_S, priceCapacityOptimized } from './price-capacity-optimized.ts';
import { releaseIdle } from './release.ts';
import { stratusTributary } from './stratus-tributary.ts';

const UNCAPPED: Asks = { bids: (pool) => (pool.option === 'spot' ? ['uncapped'] : []), horizon: NEAR_S };

/** Purchases and releases. Each policy releases empty instances at the end of their paid time. */
export const SCALE = [
  policy(
    'scale',
    {
      name: 'stratus-tributary',
      about: 'groups that fill an instance, spread over pools whose prices do not move together',
      source: 'Stratus, section 3.2.3; Tributary, section 2.2.2',
      tunes: ['correlationPenalty'],
      asks: { correlations: true },
    },
    scaling(stratusTributary, releaseIdle),
  ),
  policy(
    'scale',
    { name: 'on-demand', about: 'on-demand only', source: 'baseline', buys: ({ option }) => option !== 'spot' },
    scaling(onDemandOnly, releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'cheapest-spot',
      about: 'the pool with the lowest price now, whatever its risk',
      source: 'Spot Fleet’s lowestPrice: Tributary, section 2.1.2; Stratus, section 3.1.1',
    },
    scaling(cheapestSpot, releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'price-capacity-optimized',
      about: 'one instance for each task, the lowest price among the pools of least risk',
      source: 'EC2 User Guide, allocation strategies of EC2 Fleet',
      asks: UNCAPPED,
    },
    scaling(priceCapacityOptimized, releaseIdle),
  ),
];
