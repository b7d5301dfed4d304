/**
 * Origin of a model, as its manifest tells it. Written for people, by several versions of the training: read leniently.
 */
import { z } from 'zod';
import type { ModelManifest } from './manifest.ts';

const source = z.looseObject({
  name: z.string(),
  from: z.iso.datetime(),
  validationFrom: z.iso.datetime(),
  testFrom: z.iso.datetime(),
  to: z.iso.datetime(),
});
const facts = z.looseObject({
  kind: z.string().optional(),
  seed: z.number().optional(),
  rows: z.number().optional(),
  sources: z.array(source).optional(),
});

/**
 * A price history: for training until `validationFrom`, for calibration until `testFrom`, unseen after that. ISO 8601.
 */
export type TrainingSource = Pick<z.output<typeof source>, 'name' | 'from' | 'validationFrom' | 'testFrom' | 'to'>;

export interface TrainingFacts {
  /** `trees`, `lstm`; null: unknown. */
  readonly kind: string | null;
  readonly seed: number | null;
  /** Bids that it was trained on. */
  readonly rows: number | null;
  readonly sources: readonly TrainingSource[];
}

export function trainingFacts({ training }: ModelManifest): TrainingFacts {
  const { kind = null, seed = null, rows = null, sources = [] } = facts.safeParse(training ?? {}).data ?? {};
  return { kind, seed, rows, sources };
}

export interface Range {
  readonly fromMs: number;
  /** Not included. */
  readonly toMs: number;
}

/** Times that a model has seen, in whichever market: a judgement on one of them would flatter it. */
export const seenBy = (manifest: ModelManifest): readonly Range[] =>
  trainingFacts(manifest).sources.map((s) => ({ fromMs: Date.parse(s.from), toMs: Date.parse(s.testFrom) }));
