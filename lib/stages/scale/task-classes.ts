/** Leftovers as classes of alike tasks, for scalers that look at single tasks. */
import { compareText } from '../../kernel/compare.ts';
import { raw } from '../../kernel/units.ts';
import { KINDS, SLACK, vector } from '../../domain/resources.ts';
import type { Leftover } from '../../policy/contracts.ts';
import { allowedPools, type PricedPool } from '../../policy/on-demand-bids.ts';

/** Tasks with the same need, running time and constraints; tasks of a gang are a class of their own. */
export interface TaskClass {
  /** In the order of RESOURCE_KINDS. */
  readonly need: readonly number[];
  readonly runtimeS: number;
  readonly allows: (pool: PricedPool) => boolean;
  /** Name of its constraints: classes that share it are allowed the same pools. */
  readonly constraints: string;
  /** The leftover of a gang; null for other tasks. */
  readonly gang: Leftover | null;
  /** Tasks without room. */
  left: number;
}

/**
 * Longest first, then the larger need, then by name: the order of leftovers does not matter. O(leftovers log
 * leftovers).
 */
export function taskClasses(leftovers: readonly Leftover[]): readonly TaskClass[] {
  const allowed = new Map<string, TaskClass['allows']>();
  const classes = new Map<string, TaskClass>();
  for (const leftover of leftovers) {
    const { group, runtimeS, count } = leftover;
    if (count < 1) continue;
    const constraints = JSON.stringify(group.stage.constraints);
    const gang = group.stage.gang ? group.id : '';
    const need = vector(group.need);
    const key = `${raw(runtimeS)} ${need.join()} ${constraints} ${gang}`;
    const known = classes.get(key);
    if (known !== undefined) {
      known.left += count;
      continue;
    }
    let allows = allowed.get(constraints);
    if (allows === undefined) allowed.set(constraints, (allows = allowedPools(group.stage)));
    classes.set(key, {
      need,
      runtimeS: raw(runtimeS),
      allows,
      constraints,
      gang: gang === '' ? null : leftover,
      left: count,
    });
  }
  return [...classes]
    .sort(([x, a], [y, b]) => b.runtimeS - a.runtimeS || byNeed(a, b) || compareText(x, y))
    .map(([, c]) => c);
}

function byNeed(a: TaskClass, b: TaskClass): number {
  for (let k = 0; k < KINDS; k++) {
    const more = (b.need[k] ?? 0) - (a.need[k] ?? 0);
    if (more !== 0) return more;
  }
  return 0;
}

/** How many more tasks of a need fit beside what is used; Infinity where nothing is needed. */
export function countOnTop(need: readonly number[], used: readonly number[], capacity: readonly number[]): number {
  let count = Infinity;
  for (let k = 0; k < KINDS; k++) {
    const n = need[k] ?? 0;
    if (n > 0) count = Math.min(count, Math.floor(((capacity[k] ?? 0) - (used[k] ?? 0) + SLACK) / n));
  }
  return Math.max(0, count);
}

/** Exponential bins [0, 1), [1, 2), [2, 4), ... by index from 0, in seconds (Stratus, section 3.2.2). */
export const runtimeBin = (runtimeS: number): number => (runtimeS < 1 ? 0 : Math.floor(Math.log2(runtimeS)) + 1);
