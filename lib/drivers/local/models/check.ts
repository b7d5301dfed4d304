import { goldenParity, type Parity } from '../../../models/golden.ts';
import { openModel, type Refusal } from '../../../models/model.ts';
import type { Risk } from '../../../models/preemption.ts';
import { FEATURES_OF } from './features-of.ts';

/** Result of running a version here and comparing its answers with those of its training. */
export type Check =
  /** `golden.kind` unknown: it has no rows to compare. */
  { readonly kind: 'whole'; readonly golden: Parity } | Refusal;

export async function checkVersion(folder: string, risk: Risk): Promise<Check> {
  const opening = await openModel(folder, FEATURES_OF[risk]);
  if (opening.kind !== 'open') return opening;
  const { model } = opening;
  try {
    const golden = await goldenParity(folder, model);
    if (golden.kind === 'compared' && golden.worst > golden.tolerance) {
      const { name, version } = model.manifest;
      const what = `the model ${name} ${version} answers other probabilities than where it was trained: they differ by ${golden.worst.toPrecision(2)}, allowed ${golden.tolerance}`;
      return { kind: 'mismatch', what };
    }
    return { kind: 'whole', golden };
  } finally {
    await model.close();
  }
}
