import { join } from 'node:path';
import { MODEL_OF, type Risk } from '../../../models/preemption.ts';
import { shippedModels, type ModelPlaces } from '../../../models/versions.ts';

/** Versions that came along, and those that were trained for an engine's directory. */
export const modelPlaces = (dir: string, risk: Risk = 'price'): ModelPlaces & { readonly own: string } => ({
  shipped: shippedModels(MODEL_OF[risk]),
  own: join(dir, 'models', MODEL_OF[risk]),
});
