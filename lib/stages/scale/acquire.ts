import type { Purchase } from '../../domain/plan.ts';
import type { AcquireInput, ScalePolicy } from '../../policy/contracts.ts';
import type { Return } from './release.ts';

/** What is bought for work that found no room. */
export type Acquire = (input: AcquireInput) => readonly Purchase[];

/** The two halves of scaling where neither looks at the other. Without demand nothing is bought. */
export const scaling =
  (acquire: Acquire, release: Return): ScalePolicy =>
  (input) => ({
    purchases: input.leftovers.length === 0 ? [] : acquire(input),
    releases: release(input),
  });
