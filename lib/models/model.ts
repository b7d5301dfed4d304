/**
 * Trained models, opened and asked. Any fault of one is an outcome, because callers have another forecast: a model that
 * is missing, damaged, made for another program or gives no numbers is never used, and never stops a decision.
 * ONNX Runtime is loaded when a model is opened: a deployment without a model pays nothing for it.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type * as Onnx from 'onnxruntime-node';
import { invariant, messageOf } from '../kernel/errors.ts';
import { MANIFEST_FILE, MODEL_FILE, modelManifest, type ModelManifest } from './manifest.ts';

/** Why there is no model to ask. */
export interface Refusal {
  readonly kind:
    | /** No such version. */ 'missing'
    | /** Not the bytes that the manifest is of, or none that can be read. */ 'damaged'
    | /** Other inputs or outputs than its manifest says, or features that this program does not compute. */ 'mismatch'
    | /** NaN or an infinity in the answers. */ 'not-finite'
    | /** ONNX Runtime is not installed for this platform. */ 'no-runtime';
  /** Model and fault, for people. */
  readonly what: string;
}

export type Opening = { readonly kind: 'open'; readonly model: Model } | Refusal;

/** Answers of a model: rows x `output.width` numbers, or the first row with a number that is not finite. */
export type Answer =
  | { readonly kind: 'values'; readonly values: Float32Array }
  | { readonly kind: 'not-finite'; readonly row: number };

export interface Model {
  readonly manifest: ModelManifest;
  /** `batch`: rows x `input.width`, row by row. Throws `internal` for another length; O(rows). */
  run(batch: Float32Array): Promise<Answer>;
  close(): Promise<void>;
}

/** Opens one version. It is run once, with zeros, before it counts as open: so it gives numbers, and is warm. */
export async function openModel(folder: string, knownFeatures: Iterable<string>): Promise<Opening> {
  const read = await filesOf(folder);
  if ('kind' in read) return read;
  const { manifest, bytes } = read;
  const name = `the model ${manifest.name} ${manifest.version}`;
  const refused = (kind: Refusal['kind'], what: string): Refusal => ({ kind, what: `${name} ${what}` });
  if (createHash('sha256').update(bytes).digest('hex') !== manifest.sha256) {
    return refused('damaged', `is not the file that its manifest is of: the SHA-256 of ${MODEL_FILE} differs`);
  }
  const known = new Set(knownFeatures);
  const strange = manifest.input.features.filter((feature) => !known.has(feature));
  if (strange.length > 0) {
    return refused('mismatch', `takes features that this version does not compute: ${listed(strange)}`);
  }
  const runtime = await onnxRuntime();
  if (runtime === null)
    return refused('no-runtime', 'needs onnxruntime-node, which is not installed for this platform');
  const session = await sessionOf(runtime, bytes);
  if (typeof session === 'string') return refused('damaged', `cannot be loaded: ${session}`);
  const unlike = unlikeManifest(session, manifest);
  if (unlike !== null) {
    await session.release();
    return refused('mismatch', unlike);
  }
  const model = modelOf(runtime, session, manifest);
  return warmed(model, refused);
}

type Refuse = (kind: Refusal['kind'], what: string) => Refusal;

async function warmed(model: Model, refused: Refuse): Promise<Opening> {
  try {
    const first = await model.run(new Float32Array(model.manifest.input.width));
    if (first.kind === 'values') return { kind: 'open', model };
    await model.close();
    return refused('not-finite', 'gives numbers that are not finite');
  } catch (error) {
    await model.close();
    return refused('damaged', `cannot be run: ${messageOf(error)}`);
  }
}

async function filesOf(
  folder: string,
): Promise<Refusal | { readonly manifest: ModelManifest; readonly bytes: Uint8Array }> {
  let text: string;
  let bytes: Uint8Array;
  try {
    [text, bytes] = await Promise.all([
      readFile(join(folder, MANIFEST_FILE), 'utf8'),
      readFile(join(folder, MODEL_FILE)),
    ]);
  } catch (error) {
    return { kind: 'missing', what: `a model lacks a file: ${messageOf(error)}` };
  }
  const unreadable = (what: string): Refusal => ({
    kind: 'damaged',
    what: `${join(folder, MANIFEST_FILE)} cannot be read: ${what}`,
  });
  const json = jsonOf(text);
  if (json === undefined) return unreadable('it is no JSON');
  const parsed = modelManifest.safeParse(json);
  if (parsed.success) return { manifest: parsed.data, bytes };
  return unreadable(parsed.error.issues.map((i) => `${i.path.join('.') || 'the whole'}: ${i.message}`).join('; '));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Runtime = typeof Onnx;

async function onnxRuntime(): Promise<Runtime | null> {
  try {
    return await import('onnxruntime-node');
  } catch {
    return null;
  }
}

/** The session, or ONNX Runtime's error about the bytes. */
async function sessionOf(runtime: Runtime, bytes: Uint8Array): Promise<Onnx.InferenceSession | string> {
  try {
    return await runtime.InferenceSession.create(bytes, {
      executionProviders: ['cpu'],
      // One batch a cycle on one virtual CPU: more threads would only take memory and make sums depend on their number.
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      logSeverityLevel: 3,
    });
  } catch (error) {
    return messageOf(error);
  }
}

/** Difference from the manifest; null: none. A dimension with a name, or -1, fits any number. */
function unlikeManifest(session: Onnx.InferenceSession, { input, output }: ModelManifest): string | null {
  const ends = [
    ['input', input, session.inputMetadata],
    ['output', output, session.outputMetadata],
  ] as const;
  for (const [end, expected, found] of ends) {
    const [only] = found;
    if (found.length !== 1 || only?.name !== expected.name) {
      return `has the ${end}s ${listed(found.map((f) => f.name))} and not the one that its manifest names, ${expected.name}`;
    }
    if (!only.isTensor || only.type !== 'float32' || !fits(only.shape, expected.width)) {
      const shape = only.isTensor ? `${only.type} [${only.shape.join(' x ')}]` : 'no tensor';
      return `has an ${end} of ${shape} and not of rows x ${expected.width} of float32`;
    }
  }
  return null;
}

const fits = ([rows, columns, ...more]: readonly (number | string)[], width: number): boolean =>
  more.length === 0 && typeof rows === 'string' && (typeof columns === 'string' || columns === width);

function modelOf(runtime: Runtime, session: Onnx.InferenceSession, manifest: ModelManifest): Model {
  const { input, output } = manifest;
  return {
    manifest,
    run: async (batch) => {
      const rows = batch.length / input.width;
      invariant(Number.isInteger(rows) ? rows : null, `a batch for ${manifest.name} has rows of ${input.width}`);
      if (rows === 0) return { kind: 'values', values: new Float32Array() };
      const fed = { [input.name]: new runtime.Tensor('float32', batch, [rows, input.width]) };
      const { [output.name]: answered } = await session.run(fed);
      const values = answered?.data;
      if (!(values instanceof Float32Array) || values.length !== rows * output.width) {
        throw new TypeError(`${rows} rows were answered with ${answered?.dims.join(' x ') ?? 'nothing'}`);
      }
      const at = values.findIndex((value) => !Number.isFinite(value));
      return at < 0 ? { kind: 'values', values } : { kind: 'not-finite', row: Math.floor(at / output.width) };
    },
    close: () => session.release(),
  };
}

const listed = (names: readonly string[]): string =>
  names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`;
