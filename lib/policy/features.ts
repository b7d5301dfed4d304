import { FeaturesByStage } from '../domain/job-features.ts';
import { slot } from './memory.ts';

/** Features of stages, for all policies of an engine. */
export const FEATURES = slot(() => new FeaturesByStage());
