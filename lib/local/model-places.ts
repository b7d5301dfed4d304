import { join } from 'node:path';
import { PREEMPTION } from '../models/preemption.ts';
import { shippedModels, type ModelPlaces } from '../models/versions.ts';

/** Versions that came along, and those that were trained for an engine's directory. */
export const modelPlaces = (dir: string): ModelPlaces & { readonly own: string } => ({
  shipped: shippedModels(PREEMPTION),
  own: join(dir, 'models', PREEMPTION),
});
