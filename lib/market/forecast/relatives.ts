/**
 * Pools whose history stands in for a pool with too little: its family in its zone, else its family elsewhere, else its
 * zone. Families share hosts and zones share demand; hazard.ts pools by both.
 */
import { most, ratio, usdPerHour } from '../../kernel/units.ts';
import type { Pool } from '../../domain/pool.ts';

/** Asked for their history at most: a mean of more says nothing new. */
const MOST_RELATIVES = 8;

export interface Relatives {
  /** `c5 in us-east-1a`: for people. */
  readonly name: string;
  readonly pools: readonly Pool[];
}

/** The groups, nearest first; empty ones are left out. O(pools log pools). */
export function relativesOf(pool: Pool, all: readonly Pool[]): readonly Relatives[] {
  const { family } = pool.type;
  const others = all.filter((p) => p.option === 'spot' && p.id !== pool.id);
  const ofFamily = (p: Pool): boolean => p.type.family === family;
  const groups = [
    { name: `${family} in ${pool.zone}`, pools: others.filter((p) => ofFamily(p) && p.zone === pool.zone) },
    { name: `${family} in other zones`, pools: others.filter((p) => ofFamily(p) && p.zone !== pool.zone) },
    { name: pool.zone, pools: others.filter((p) => !ofFamily(p) && p.zone === pool.zone) },
  ];
  const onDemandGap = (p: Pool): number =>
    Math.abs(Math.log(ratio(p.onDemandUsdPerHour, most(pool.onDemandUsdPerHour, usdPerHour(1e-9)))));
  const nearest = (a: Pool, b: Pool): number => onDemandGap(a) - onDemandGap(b) || (a.id < b.id ? -1 : 1);
  return groups
    .filter(({ pools }) => pools.length > 0)
    .map(({ name, pools }) => ({ name, pools: pools.sort(nearest).slice(0, MOST_RELATIVES) }));
}
