import type { Asks } from '../../policy/asks.ts';
import { policy } from '../../policy/policy.ts';
import { scaling } from './acquire.ts';
import { isFargate } from '../../domain/pool.ts';
import type { AcquireInput } from '../../policy/contracts.ts';
import { cheapestFit } from './cheapest-fit.ts';
import { cheapestSpot } from './cheapest-spot.ts';
import { AT_ON_DEMAND } from '../../policy/on-demand-bids.ts';
import { onDemandOnly } from './on-demand-only.ts';
import { NEAR_S, priceCapacityOptimized } from './price-capacity-optimized.ts';
import { releaseIdle } from './release.ts';
import { stratusScaler } from './stratus.ts';
import { stratusTributary } from './stratus-tributary.ts';
import { supercloud } from './supercloud.ts';
import { throughputAware } from './throughput-aware.ts';
import { keptWithWork, onWholeCluster } from './whole-cluster.ts';

const UNCAPPED: Asks = { bids: (pool) => (pool.option === 'spot' ? ['uncapped'] : []), horizon: NEAR_S };

const onlyFargate = (input: AcquireInput): AcquireInput => ({
  ...input,
  snapshot: { ...input.snapshot, pools: input.snapshot.pools.filter(({ pool }) => isFargate(pool)) },
});

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
    {
      name: 'on-demand',
      about: 'on-demand only',
      source: 'baseline',
      buys: (pool) => pool.option !== 'spot' && !isFargate(pool),
    },
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
  policy(
    'scale',
    {
      name: 'stratus',
      about: 'the group of tasks and the pool with the most constraining resource in use per dollar, by runtime bin',
      source: 'Stratus, section 3.2.3',
      asks: AT_ON_DEMAND,
    },
    scaling(stratusScaler({ mostTasks: Infinity }), releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'throughput-aware',
      about: 'instances whose tasks are worth their price together, less what neighbours lose; the dearest first',
      source: 'Eva (EuroSys 2025), algorithm 1',
      learners: ['neighbours'],
      asks: AT_ON_DEMAND,
    },
    scaling(throughputAware, releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'stratus-alone',
      about: 'the same with one task per instance',
      source: 'Stratus, section 3.2.3; non-packing schedulers: section 3.1.2',
      asks: AT_ON_DEMAND,
    },
    scaling(stratusScaler({ mostTasks: 1 }), releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'whole-cluster',
      about: 'all machines of one’s own that cost nothing, while there is work; what they do not hold as `stratus`',
      source: 'a cluster whose nodes are always there: Mary, Hugo and Hugo*, section 4.1.3',
      asks: AT_ON_DEMAND,
    },
    scaling(onWholeCluster(stratusScaler({ mostTasks: Infinity })), keptWithWork(releaseIdle)),
  ),
  policy(
    'scale',
    {
      name: 'supercloud',
      about: 'the pool that holds the most of the most constrained resource per dollar, largest tasks first',
      source: 'SuperCloud-Spot: Stratus, section 3.3.3',
      asks: AT_ON_DEMAND,
    },
    scaling(supercloud, releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'fargate',
      about: 'for each task the cheapest size of AWS Fargate that holds it',
      source: 'Stratus, section 3.3.3 (AWS Fargate)',
      buys: isFargate,
    },
    scaling((input) => cheapestFit(onlyFargate(input)), releaseIdle),
  ),
  policy(
    'scale',
    {
      name: 'cheapest-fit',
      about: 'for each task the cheapest instance on which it fits',
      source: 'HotSpot: Stratus, section 3.1.2',
      asks: AT_ON_DEMAND,
    },
    scaling(cheapestFit, releaseIdle),
  ),
];
