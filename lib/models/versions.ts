/**
 * Versions of a model: the shipped ones, and those of a deployment or directory, trained on its own market. A version
 * is a folder with `model.onnx` and `manifest.json` (manifest.ts).
 */
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readChoices, standing, type Choices, type Use } from './choices.ts';

export interface ModelVersion {
  readonly version: string;
  readonly folder: string;
  readonly from: 'shipped' | 'own';
}

/** Folders of versions; null: none of that origin. */
export interface ModelPlaces {
  readonly shipped: string | null;
  readonly own: string | null;
}

/**
 * `models/<name>` of the program: beside its package.json, however deep the compiled file lies. Null where none came
 * along.
 */
export const shippedModels = (name: string): string | null => besideProgram(join('models', name));

/** A file or folder that came along with the program, by its path from the package's root. Null where it did not. */
export function besideProgram(path: string): string | null {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (isProgram(folder)) {
      const found = join(folder, path);
      return existsSync(found) ? found : null;
    }
    if (folder === dirname(folder)) return null;
  }
}

function isProgram(folder: string): boolean {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: string }).name === 'ebbtide';
  } catch {
    return false;
  }
}

/** All versions, by name, numbers in them compared as numbers; the own one if both have it. */
export async function modelVersions({ shipped, own }: ModelPlaces): Promise<readonly ModelVersion[]> {
  const found = new Map<string, ModelVersion>();
  for (const [from, place] of [['shipped', shipped] as const, ['own', own] as const]) {
    for (const version of place === null ? [] : await foldersIn(place)) {
      found.set(version, { version, folder: join(place ?? '', version), from });
    }
  }
  return [...found.values()].sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
}

async function foldersIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((e) => e.isDirectory() && !e.name.startsWith('.')).map((e) => e.name);
  } catch {
    return [];
  }
}

/** The version that `model` means. */
export type InUse =
  /** `chosen`: null without a choice; then it is the newest shipped version. */
  | { readonly kind: 'version'; readonly version: string; readonly chosen: Use | null }
  | { readonly kind: 'none' }
  /** The chosen version is unreadable. Do not fall back to another: that would hide the fault. */
  | { readonly kind: 'damaged'; readonly what: string };

/** The chosen version of the directory, else the newest shipped one. It may be missing. */
export async function modelInUse(places: ModelPlaces): Promise<InUse> {
  const choices = places.own === null ? NO_CHOICES : readChoices(places.own);
  if (choices.kind === 'damaged') return choices;
  const chosen = standing(choices.list).at(-1) ?? null;
  if (chosen !== null) return { kind: 'version', version: chosen.version, chosen };
  const newest = (await modelVersions({ ...places, own: null })).at(-1);
  return newest === undefined ? { kind: 'none' } : { kind: 'version', version: newest.version, chosen };
}

const NO_CHOICES: Choices = { kind: 'choices', list: [] };
