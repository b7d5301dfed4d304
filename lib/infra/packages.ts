/** Packages that cannot be bundled, with the files that a Lambda's asset needs of each. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Arch } from '../domain/pool.ts';
import { EbbError } from '../kernel/errors.ts';

/** Platform in words of `process.platform` and `process.arch`. */
export interface Platform {
  readonly os: string;
  readonly arch: string;
}

/** Platforms of Lambda, by architecture. */
export const PLATFORMS = {
  arm64: { os: 'linux', arch: 'arm64' },
  x86_64: { os: 'linux', arch: 'x64' },
} as const satisfies Record<Arch, Platform>;

/** Whole paths, or folders with an ending of their files. */
type Files = readonly (string | { readonly folder: string; readonly ending: string })[];

const PACKAGED = {
  /** HiGHS finds its WebAssembly file beside its own module. */
  highs: () => ['package.json', 'LICENSE', 'build/highs.mjs', 'build/highs.wasm'],
  /** Library of one platform: those of all take 288 MB. */
  'onnxruntime-node': ({ os, arch }) => [
    'package.json',
    { folder: 'dist', ending: '.js' },
    { folder: `bin/napi-v6/${os}/${arch}`, ending: '' },
  ],
  'onnxruntime-common': () => ['package.json', 'dist/cjs/package.json', { folder: 'dist/cjs', ending: '.js' }],
} as const satisfies Record<string, (platform: Platform) => Files>;

export type PackagedName = keyof typeof PACKAGED;

/** Packages of functions that ask a trained model. */
export const MODEL_RUNTIME: readonly PackagedName[] = ['onnxruntime-node', 'onnxruntime-common'];

/** Copies a package's files into `folder/node_modules`. Throws `internal` if it is not installed for that platform. */
export function place(name: PackagedName, folder: string, platform: Platform): void {
  const from = packageFolder(name);
  for (const file of filesOf(from, PACKAGED[name](platform))) {
    const to = join(folder, 'node_modules', name, file);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(from, file), to);
  }
}

function filesOf(from: string, files: Files): string[] {
  return files.flatMap((file) => {
    if (typeof file === 'string') return [file];
    const { folder, ending } = file;
    const path = join(from, folder);
    if (existsSync(path)) return readdirSync(path).flatMap((f) => (f.endsWith(ending) ? [join(folder, f)] : []));
    throw new EbbError('internal', { what: 'a package has no files for the platform of the Lambdas', got: path });
  });
}

export function isInstalled(name: PackagedName): boolean {
  try {
    packageFolder(name);
    return true;
  } catch {
    return false;
  }
}

/** Folder of a package by Node's resolution, wherever npm installed it. */
function packageFolder(name: string): string {
  const require = createRequire(import.meta.url);
  let folder: string;
  try {
    folder = dirname(require.resolve(name));
  } catch (error) {
    throw new EbbError('internal', {
      what: `the package ${name} is not installed`,
      next: `npm install ${name}`,
      cause: error,
    });
  }
  while (!isPackage(folder, name)) {
    const above = dirname(folder);
    if (above === folder) throw new EbbError('internal', { what: `the package ${name} has no package.json` });
    folder = above;
  }
  return folder;
}

function isPackage(folder: string, name: string): boolean {
  const file = join(folder, 'package.json');
  return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { name?: string }).name === name;
}
