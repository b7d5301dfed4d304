/** Systems that run a service, by name: which instances it has, for any scaling policy. */
import { EbbError } from '../../kernel/errors.ts';
import { usdPerHour } from '../../kernel/units.ts';
import { nearestName } from '../../domain/nearest-name.ts';
import { onDemandUsdOf } from '../../domain/pool.ts';
import type { Asks } from '../../policy/asks.ts';
import type { FootprintPolicy, NamedPolicy } from '../../policy/services/contracts.ts';
import { autoscaleDiversified, autoscaleLowest, onDemandAutoscale, withBuffer } from './autoscale.ts';
import { bidsOver } from './candidates.ts';
import { exosphere } from './exosphere.ts';
import { proteus } from './proteus.ts';
import { tributary } from './tributary.ts';

/**
 * Time over which a loss counts, seconds: from the market's warning until the next replica serves, at most. The paper
 * counts losses within the hour of a refund; since then replicas that are warned are replaced while they serve.
 */
export const UNTIL_REPLACED_S = 220;

export const FOOTPRINTS = {
  ebbtide: {
    about: 'as tributary, for losses until the next replica serves',
    source: 'ours; Tributary, sections 2.2.2 and 2.2.3',
    policy: tributary({ lossHorizonS: UNTIL_REPLACED_S }),
  },
  tributary: {
    about: 'pools and bids that meet the target at the lowest expected cost',
    source: 'Tributary, sections 2.2.2 to 2.2.4',
    policy: tributary(),
  },
  'autoscale-lowest': {
    about: 'the spot pool with the lowest price',
    source: 'Tributary, sections 2.1.2 and 2.4.3',
    policy: autoscaleLowest,
  },
  'autoscale-diversified': {
    about: 'as many instances of each spot pool',
    source: 'Tributary, sections 2.1.2 and 2.4.4',
    policy: autoscaleDiversified,
  },
  'on-demand-autoscale': {
    about: 'the cheapest on-demand pool',
    source: 'Tributary, section 2.4.3',
    policy: onDemandAutoscale,
  },
  exosphere: {
    about: 'a portfolio of spot pools with little aversion to risk',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: exosphere({ alpha: 1 }),
  },
  'exosphere-averse': {
    about: 'a portfolio of spot pools with the least risk',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: exosphere({ alpha: 1e9 }),
  },
  proteus: {
    about: 'the spot pool and bid with the lowest expected cost per vCPU-hour',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: proteus,
  },
} as const satisfies Readonly<Record<string, NamedPolicy<FootprintPolicy>>>;

/** Questions of all of them: bids of Tributary and Proteus, and the on-demand price, which the others bid. */
export const FOOTPRINT_ASKS: Asks = {
  prices: true,
  correlations: true,
  bids: (pool, priceUsd) => [...bidsOver(pool, priceUsd), usdPerHour(onDemandUsdOf(pool))],
  held: true,
  horizon: 'any',
};

/** Footprint by name; `name+0.5` has a buffer of half of what the load needs. Null: there is none of that name. */
export function footprintNamed(name: string): FootprintPolicy | null {
  const [base = '', buffer, ...more] = name.split('+');
  const share = buffer === undefined ? 0 : Number(buffer);
  if (more.length > 0 || !Object.hasOwn(FOOTPRINTS, base) || !(share >= 0)) return null;
  const { policy } = FOOTPRINTS[base as keyof typeof FOOTPRINTS];
  return share === 0 ? policy : withBuffer(policy, share);
}

/** Throws `usage` for a name that no footprint policy has. */
export function expectFootprint(name: string): void {
  if (footprintNamed(name) !== null) return;
  const near = nearestName(name.split('+')[0] ?? name, Object.keys(FOOTPRINTS));
  throw new EbbError('usage', {
    what: 'no footprint policy of services has this name',
    at: 'serviceFootprint',
    got: JSON.stringify(name),
    allowed: `${Object.keys(FOOTPRINTS).join(', ')}, each also with a buffer: \`autoscale-lowest+0.5\``,
    next: near === null ? 'name one of these' : `did you mean ${near}?`,
  });
}
