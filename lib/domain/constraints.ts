import type { Constraints } from './job.ts';
import type { Pool } from './pool.ts';

export type ConstraintName = 'arch' | 'zones' | 'instanceTypes' | 'families' | 'purchaseOptions' | 'minGeneration';

/** The first hard constraint that a pool breaks, in the order of the type; null when it satisfies all. */
export function brokenConstraint(c: Constraints, pool: Pool): ConstraintName | null {
  if (c.arch !== undefined && !c.arch.includes(pool.type.arch)) return 'arch';
  if (c.zones !== undefined && !matchesAny(c.zones, pool.zone)) return 'zones';
  if (c.instanceTypes !== undefined && !matchesAny(c.instanceTypes, pool.type.name)) return 'instanceTypes';
  if (c.families !== undefined && !matchesAny(c.families, pool.type.family)) return 'families';
  if (c.purchaseOptions !== undefined && !c.purchaseOptions.includes(pool.option)) return 'purchaseOptions';
  if (c.minGeneration !== undefined && pool.type.generation < c.minGeneration) return 'minGeneration';
  return null;
}

const patterns = new Map<string, RegExp>();

/** Whether `text` is one of the patterns, in which `*` stands for any characters. */
function matchesAny(allowed: readonly string[], text: string): boolean {
  return allowed.some((pattern) => {
    if (!pattern.includes('*')) return pattern === text;
    let compiled = patterns.get(pattern);
    if (compiled === undefined) {
      const escaped = pattern.split('*').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
      compiled = new RegExp(`^${escaped.join('.*')}$`);
      patterns.set(pattern, compiled);
    }
    return compiled.test(text);
  });
}
