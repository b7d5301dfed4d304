/**
 * Evaluation of a version on its held-out range: `evaluation.json` beside the model. For people and for lists; no
 * decision reads it.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** Null: not defined, as the average precision where nothing was lost. */
const interval = z.strictObject({
  value: z.number().nullable(),
  low: z.number().nullable(),
  high: z.number().nullable(),
});

export const evaluationRecord = z.strictObject({
  format: z.literal(1),
  horizonS: z.number().describe('Lost within so many seconds.'),
  from: z.iso.datetime().describe('First of the bids that it was judged on, and the last.'),
  to: z.iso.datetime(),
  markets: z.array(z.string()),
  bids: z.number(),
  asked: z
    .literal('moments')
    .optional()
    .describe('Of capacity: moments at which there was some are counted, not bids.'),
  days: z.number(),
  lostShare: z.number(),
  forecasts: z.array(
    z.strictObject({
      name: z.string(),
      accuracy: interval,
      f1: interval,
      aucPr: interval,
      brier: interval,
      ece: interval,
    }),
  ),
});
export type EvaluationRecord = z.output<typeof evaluationRecord>;
export type ForecastFigures = EvaluationRecord['forecasts'][number];

export const EVALUATION_FILE = 'evaluation.json';

/** Null where it was never judged, or the file cannot be read. */
export async function readEvaluation(folder: string): Promise<EvaluationRecord | null> {
  try {
    const text = await readFile(join(folder, EVALUATION_FILE), 'utf8');
    return evaluationRecord.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
