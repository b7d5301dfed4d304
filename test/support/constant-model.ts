import { basename } from 'node:path';
import { LABEL_HORIZONS_S } from '../../lib/market/dataset.ts';
import { FEATURES } from '../../lib/market/features/names.ts';
import { writeModel } from './onnx-model.ts';

/** A version that forecasts one probability for every bid and horizon; `training` is what its manifest says of its origin. */
export function always(folder: string, p: number, training: object = {}): void {
  const logit = Math.log(p / (1 - p));
  const zero = LABEL_HORIZONS_S.map(() => 0);
  const model = {
    weights: FEATURES.map(() => zero),
    bias: LABEL_HORIZONS_S.map(() => (Number.isFinite(logit) ? logit : 0)),
    activation: 'Sigmoid' as const,
  };
  writeModel(folder, model, (m) => ({
    ...m,
    version: basename(folder),
    input: { ...m.input, features: FEATURES },
    output: { ...m.output, horizonsS: LABEL_HORIZONS_S },
    training,
  }));
}
