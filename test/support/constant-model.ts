import { basename } from 'node:path';
import { LABEL_HORIZONS_S } from '../../lib/market/dataset.ts';
import { CAPACITY_FEATURES } from '../../lib/market/features/capacity-features.ts';
import { FEATURES } from '../../lib/market/features/names.ts';
import type { ModelManifest } from '../../lib/models/manifest.ts';
import { writeModel } from './onnx-model.ts';

/**
 * A version that forecasts one probability for every bid and horizon; `training` is what its manifest says of its
 * origin.
 */
export function always(folder: string, p: number, training: object = {}): void {
  write(folder, p, { features: FEATURES, training });
}

/** The same of capacity, for these pools (TYPE/ZONE). */
export function alwaysCapacity(
  folder: string,
  p: number,
  more: Pick<ModelManifest, 'pools'> & { readonly training?: object },
): void {
  write(folder, p, { features: CAPACITY_FEATURES, name: 'capacity', ...more });
}

function write(
  folder: string,
  p: number,
  {
    features,
    ...more
  }: { readonly features: readonly string[]; readonly name?: string; readonly training?: object } & Pick<
    ModelManifest,
    'pools'
  >,
): void {
  const logit = Math.log(p / (1 - p));
  const zero = LABEL_HORIZONS_S.map(() => 0);
  const model = {
    weights: features.map(() => zero),
    bias: LABEL_HORIZONS_S.map(() => (Number.isFinite(logit) ? logit : 0)),
    activation: 'Sigmoid' as const,
  };
  writeModel(folder, model, (m) => ({
    ...m,
    version: basename(folder),
    input: { ...m.input, features },
    output: { ...m.output, horizonsS: LABEL_HORIZONS_S },
    ...more,
  }));
}
