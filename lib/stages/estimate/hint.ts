import type { EstimatePolicy } from '../../policy/contracts.ts';
import { HINTED } from './cold-start.ts';
import { forecastStages } from './stage-forecasts.ts';

/** Baseline without learning: the user's `expectedRuntime`, else the prior. Most batch schedulers have no more. */
export const userHint: EstimatePolicy = ({ snapshot, memory }) => {
  const hinted = memory.of(HINTED);
  return forecastStages(snapshot, (_, stage) => hinted.of(null, stage));
};
