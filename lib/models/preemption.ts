/** The model that forecasts interruptions. */
import { openNewest, type Refusal } from './model.ts';

/**
 * Features that this version computes, by their names in a model's manifest. None yet: a model that takes any is refused,
 * and the empirical forecast (lib/market/forecast) is used.
 */
const FEATURES: readonly string[] = [];

/** Why the newest model below a folder `models/preemption` is not used. `missing`: there is none, so nothing is wrong. */
export async function preemptionModel(folder: string): Promise<Refusal> {
  const opening = await openNewest(folder, FEATURES);
  if (opening.kind !== 'open') return opening;
  const { name, version } = opening.model.manifest;
  await opening.model.close();
  return { kind: 'mismatch', what: `this version does not ask the model ${name} ${version}` };
}
