import type { EstimatePolicy } from '../../policy/contracts.ts';
import { HINTED } from './cold-start.ts';
import { forecastStages } from './stage-forecasts.ts';

/**
 * Baseline without learning: the user's `expectedRuntime`, else the prior. What most batch schedulers have to go by.
 */
export const userHint: EstimatePolicy = ({ snapshot, memory }) => {
  const hinted = memory.of(HINTED);
  return forecastStages(snapshot, (_, stage) => hinted.of(null, stage));
};
