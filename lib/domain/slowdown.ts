/**
 * Slowdown where soft constraints are not met. The workloads of JamaisVu's evaluation have it (Table 3: 1.4 to 1.5):
 * a task that is not where it would like to be takes that much longer. Work is counted as running time where every
 * soft constraint is met; only an attempt's time on the clock is stretched.
 */
import { scale, type Seconds } from '../kernel/units.ts';
import { brokenConstraint } from './constraints.ts';
import type { Distribution } from './distribution.ts';
import type { Attempt, Preference } from './job.ts';
import type { Pool } from './pool.ts';

/** Running time on this pool over the running time where all is met: the product over soft constraints; >= 1. */
export function slowdownOn(preferences: readonly Preference[], pool: Pool): number {
  let product = 1;
  for (const { prefer, slowdown = 1 } of preferences)
    if (slowdown !== 1 && brokenConstraint(prefer, pool) !== null) product *= slowdown;
  return product;
}

/** The same as a key of an attempt or a start, where it is not 1. */
export function slowdownKey(preferences: readonly Preference[], pool: Pool): Pick<Attempt, 'slowdown'> {
  const slowdown = slowdownOn(preferences, pool);
  return slowdown === 1 ? {} : { slowdown };
}

/** True if some soft constraint has a slowdown. */
export const slowsAnywhere = (preferences: readonly Preference[]): boolean =>
  preferences.some(({ slowdown = 1 }) => slowdown !== 1);

/** Work that an attempt does in `ran` of its running time. */
export const workDoneIn = ({ slowdown = 1 }: Pick<Attempt, 'slowdown'>, ran: Seconds): Seconds =>
  slowdown === 1 ? ran : scale(ran, 1 / slowdown);

/** Running time of that work at that slowdown. */
export const slowed = (runtime: Distribution, slowdown: number): Distribution =>
  slowdown === 1 ? runtime : { atS: runtime.atS.map((s) => s * slowdown), weight: runtime.weight };
