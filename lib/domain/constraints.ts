import type { Constraints } from './job.ts';
import type { Pool, PurchaseOption } from './pool.ts';
import { matchesWildcard } from './wildcard.ts';

export type ConstraintName =
  | 'arch'
  | 'zones'
  | 'instanceTypes'
  | 'families'
  | 'purchaseOptions'
  | 'minGeneration'
  | 'labels';

/** The first hard constraint that a pool breaks, in the order of the type; null when it satisfies all. */
export function brokenConstraint(c: Constraints, pool: Pool): ConstraintName | null {
  if (c.arch !== undefined && !c.arch.includes(pool.type.arch)) return 'arch';
  if (c.zones !== undefined && !matchesAny(c.zones, pool.zone)) return 'zones';
  if (c.instanceTypes !== undefined && !matchesAny(c.instanceTypes, pool.type.name)) return 'instanceTypes';
  if (c.families !== undefined && !matchesAny(c.families, pool.type.family)) return 'families';
  if (c.purchaseOptions !== undefined && !c.purchaseOptions.includes(pool.option)) return 'purchaseOptions';
  if (c.minGeneration !== undefined && pool.type.generation < c.minGeneration) return 'minGeneration';
  if (c.labels !== undefined && !hasLabels(c.labels, pool)) return 'labels';
  return null;
}

const hasLabels = (asked: NonNullable<Constraints['labels']>, { labels = {} }: Pool): boolean =>
  Object.entries(asked).every(([key, values]) => Object.hasOwn(labels, key) && values.includes(labels[key] ?? ''));

/** Capacity that the market never takes away. */
const NON_INTERRUPTIBLE: readonly PurchaseOption[] = ['on-demand', 'reserved'];

/**
 * Constraints narrowed to non-interruptible capacity; null where they allow none of it. A hard constraint is never
 * widened.
 */
export function nonInterruptibleOnly(c: Constraints): Constraints | null {
  const allowed = NON_INTERRUPTIBLE.filter((option) => c.purchaseOptions?.includes(option) ?? true);
  return allowed.length === 0 ? null : { ...c, purchaseOptions: allowed };
}

/** Constraints narrowed to one pool. They must allow it. */
export const onlyPool = (c: Constraints, { zone, type, option }: Pool): Constraints => ({
  ...c,
  zones: [zone],
  instanceTypes: [type.name],
  purchaseOptions: [option],
});

/** True if `text` matches one of the patterns; `*` stands for any characters. */
const matchesAny = (allowed: readonly string[], text: string): boolean =>
  allowed.some((pattern) => matchesWildcard(pattern, text));
