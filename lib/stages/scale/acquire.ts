import type { Purchase } from '../../domain/plan.ts';
import type { AcquireInput, ScalePolicy } from '../../policy/contracts.ts';
import type { Return } from './release.ts';

/** Purchases for work without room. */
export type Acquire = (input: AcquireInput) => readonly Purchase[];

/** Independent halves of scaling. Without demand nothing is bought. */
export const scaling =
  (acquire: Acquire, release: Return): ScalePolicy =>
  (input) => ({
    purchases: input.leftovers.length === 0 ? [] : acquire(input),
    releases: release(input),
  });
