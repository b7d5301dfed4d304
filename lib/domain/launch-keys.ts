/** Keys of launches, written and read in one place: `PLAN/launch/PURCHASE/ORDINAL`. */
import { effectKey, type EffectKey, type PlanId } from '../kernel/ids.ts';

/** Allocation of the purchase with this index in its plan. */
export const allocationKey = (plan: PlanId, purchase: number): EffectKey => effectKey(`${plan}/launch/${purchase}`);

/** Plan of an allocation, as text. */
export const planOfAllocation = (allocation: string): string => allocation.split('/', 1)[0] ?? allocation;

/** Launch of the instance with this ordinal in its allocation. */
export const launchKey = (allocation: EffectKey, ordinal: number): EffectKey => effectKey(`${allocation}/${ordinal}`);

/** Ordinal of a launch in its allocation; null for keys of another form. */
export function ordinalOfLaunch(key: string, allocation: string): number | null {
  if (!key.startsWith(`${allocation}/`)) return null;
  const ordinal = key.slice(allocation.length + 1);
  return /^\d+$/.test(ordinal) ? Number(ordinal) : null;
}
