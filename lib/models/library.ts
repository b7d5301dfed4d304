/** Versions for people: facts of each without running it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EbbError } from '../kernel/errors.ts';
import { readEvaluation, type EvaluationRecord } from './evaluation/evaluation-record.ts';
import { MANIFEST_FILE, MODEL_FILE, modelManifest, type ModelManifest } from './manifest.ts';
import { modelInUse, modelVersions, type InUse, type ModelPlaces, type ModelVersion } from './versions.ts';

export interface ShelvedModel extends ModelVersion {
  readonly inUse: boolean;
  /** Fault in its files; null: none found. It has not been run. */
  readonly damage: string | null;
  /** Null where it cannot be read. */
  readonly manifest: ModelManifest | null;
  /** Size of model.onnx; null without one. */
  readonly bytes: number | null;
  /** Evaluation on its held-out range; null: none. */
  readonly evaluation: EvaluationRecord | null;
}

export interface Library {
  readonly inUse: InUse;
  /** By name, numbers in it compared as numbers. */
  readonly models: readonly ShelvedModel[];
}

export async function libraryOf(places: ModelPlaces): Promise<Library> {
  const inUse = await modelInUse(places);
  const used = inUse.kind === 'version' ? inUse.version : null;
  const versions = await modelVersions(places);
  const models = versions.map(async (v) => ({ ...v, inUse: v.version === used, ...(await filesOf(v.folder)) }));
  return { inUse, models: await Promise.all(models) };
}

/** Throws `not-found`. */
export async function versionNamed(places: ModelPlaces, version: string): Promise<ModelVersion> {
  const versions = await modelVersions(places);
  const found = versions.find((v) => v.version === version);
  if (found !== undefined) return found;
  throw new EbbError('not-found', {
    what: 'there is no such version of the model',
    got: version,
    allowed: versions.length === 0 ? 'there is none at all' : versions.map((v) => v.version).join(', '),
    next: 'see `ebb models list`, with the same --risk; versions of an engine’s own lie in its --dir',
  });
}

async function filesOf(folder: string): Promise<Pick<ShelvedModel, 'damage' | 'manifest' | 'bytes' | 'evaluation'>> {
  const evaluation = await readEvaluation(folder);
  const manifest = await manifestOf(folder);
  const model = await bytesOf(join(folder, MODEL_FILE));
  const damage =
    manifest === null
      ? `${MANIFEST_FILE} is not there or cannot be read`
      : model === null
        ? `${MODEL_FILE} is not there`
        : createHash('sha256').update(model).digest('hex') === manifest.sha256
          ? null
          : `the SHA-256 of ${MODEL_FILE} is not that of the manifest`;
  return { damage, manifest, bytes: model?.length ?? null, evaluation };
}

async function manifestOf(folder: string): Promise<ModelManifest | null> {
  try {
    return modelManifest.safeParse(JSON.parse(await readFile(join(folder, MANIFEST_FILE), 'utf8'))).data ?? null;
  } catch {
    return null;
  }
}

async function bytesOf(path: string): Promise<Uint8Array | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}
