/** A trained model, asked in one batch, with its answers as curves at the program's horizons. */
import type { LossModel } from '../../domain/forecast.ts';
import { HORIZONS_S } from './survival.ts';

/** P(lost within HORIZONS_S), or for people why the model does not say. */
export type ModelCurve =
  | { readonly kind: 'curve'; readonly p: Float64Array; readonly version: string }
  | { readonly kind: 'none'; readonly why: string };

/** Answer to each row. A model that answers with a number outside [0, 1] is broken and answers nothing. */
export async function askModel(model: LossModel, batch: Float32Array): Promise<(row: number) => ModelCurve> {
  const none = (what: string) => (): ModelCurve => ({ kind: 'none', why: `model ${model.version} ${what}` });
  if (batch.length === 0) return none('was not asked');
  const answer = await model.run(batch);
  if (answer.kind === 'failed') return none(`cannot be run: ${answer.what}`);
  if (answer.kind === 'not-finite') return none('gives numbers that are not finite');
  if (!answer.values.every((p) => p >= 0 && p <= 1)) return none('gives numbers that are no probabilities');
  const { version, horizonsS } = model;
  const curves = curvesAt(horizonsS, answer.values);
  return (row) => ({
    kind: 'curve',
    version,
    p: curves.subarray(row * HORIZONS_S.length, (row + 1) * HORIZONS_S.length),
  });
}

/**
 * Curves at HORIZONS_S from the model's horizons: the hazard is constant between these, and continues as in the last
 * interval. O(rows x horizons), nothing allocated per row, because there are ten thousand.
 */
function curvesAt(horizonsS: readonly number[], p: Float32Array): Float64Array {
  const width = horizonsS.length;
  const knots = [0, ...horizonsS];
  const places = Array.from(HORIZONS_S, (h) => {
    const found = knots.findIndex((knot) => knot >= h);
    const to = found < 1 ? width : found;
    const [fromS = 0, toS = 1] = [knots[to - 1], knots[to]];
    return { to, share: (h - fromS) / (toS - fromS) };
  });
  const curves = new Float64Array((p.length / width) * places.length);
  /** Hazard up to a knot: 0 is now, 1 the first horizon. */
  const cumulative = (first: number, knot: number): number =>
    knot === 0 ? 0 : -Math.log1p(-Math.min(p[first + knot - 1] ?? NaN, 1 - 1e-7));
  let at = 0;
  for (let first = 0; first < p.length; first += width) {
    for (const { to, share } of places) {
      const low = cumulative(first, to - 1);
      curves[at++] = -Math.expm1(-(low + (cumulative(first, to) - low) * share));
    }
  }
  return curves;
}
