import { CAPACITY_FEATURES } from '../../../market/features/capacity-features.ts';
import { FEATURES } from '../../../market/features/names.ts';
import type { Risk } from '../../../models/preemption.ts';

/** Features that the program computes for the models of each risk, in the order of their rows. */
export const FEATURES_OF: Record<Risk, readonly string[]> = { price: FEATURES, capacity: CAPACITY_FEATURES };
