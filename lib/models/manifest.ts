/**
 * Manifest of a trained model: its bytes, inputs and outputs. A model is a folder `models/<name>/<version>/` with these
 * two files.
 */
import { z } from 'zod';

/** Files of a version. */
export const MODEL_FILE = 'model.onnx';
export const MANIFEST_FILE = 'manifest.json';

const width = z.number().int().min(1).max(4096);
/** Name of a model or a version, as written by hand: `v3`, `2026-11-21`, `1.4.0`. */
export const versionName = z.string().regex(/^[\w][\w.-]{0,63}$/, 'must be letters, digits, `_`, `.` and `-`');

export const modelManifest = z
  .strictObject({
    name: versionName,
    version: versionName,
    sha256: z
      .string()
      .regex(/^[\da-f]{64}$/, 'must be 64 hexadecimal digits')
      .describe('Of model.onnx.'),
    opset: z
      .number()
      .int()
      .min(1)
      .describe('Of the default operator set, for people: the runtime reads it from the model.'),
    input: z.strictObject({
      name: z.string().min(1),
      width,
      features: z.array(z.string().min(1)).describe('What each column is, in their order.'),
    }),
    output: z.strictObject({
      name: z.string().min(1),
      width,
      horizonsS: z.array(z.number().positive()).describe('What each column speaks of: this many seconds from now.'),
    }),
    pools: z
      .array(z.string())
      .optional()
      .describe('Of a model of capacity: the pools that it was trained on, `type/zone`; it is not asked about others.'),
    training: z
      .record(z.string(), z.json())
      .optional()
      .describe('Where it comes from, for people: seed, rows, data and their hashes, libraries, normalisation.'),
  })
  .refine(({ input }) => input.features.length === input.width, {
    path: ['input', 'features'],
    message: 'must be as many as the input is wide',
  })
  .refine(({ input }) => new Set(input.features).size === input.features.length, {
    path: ['input', 'features'],
    message: 'must differ from one another',
  })
  .refine(({ output }) => output.horizonsS.length === output.width, {
    path: ['output', 'horizonsS'],
    message: 'must be as many as the output is wide',
  })
  .refine(({ output }) => output.horizonsS.every((h, i, all) => i === 0 || h > (all[i - 1] ?? h)), {
    path: ['output', 'horizonsS'],
    message: 'must ascend',
  });

export type ModelManifest = z.output<typeof modelManifest>;
