/**
 * Code of the Lambdas: ES modules made by esbuild, without Docker and without a network. All handlers are bundled at
 * once and share files, so the SDK is parsed and printed once, not once per function. An asset holds its handler and
 * the shared files that it can reach. Packages that cannot be bundled lie beside it (packages.ts).
 *
 * Sources of the code, the first that exists:
 *   1. `functions/` beside the compiled sources, made by `npm run build`: users of the package need no esbuild;
 *   2. in a checkout `.cache/functions/<digest>`, if every source file still has the same content;
 *   3. esbuild, which takes seconds. In a checkout the result becomes 2.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type * as Esbuild from 'esbuild';
import { EbbError, invariant } from '../kernel/errors.ts';
import { isInstalled, MODEL_RUNTIME, place, type PackagedName, type Platform } from './packages.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HANDLERS = join(ROOT, 'lambdas');
const PREBUILT = join(ROOT, 'functions');
const CACHE = join(ROOT, '.cache', 'functions');
const MANIFEST = 'functions.json';
/** Bundles kept for recent branches. */
const KEPT = 4;
/** Files of a model's version in the asset; records of its evaluation stay out. */
const ASKED_FILES = ['model.onnx', 'manifest.json'];
/** Definition of `require` for CommonJS packages inside the bundle. */
const BANNER = "import{createRequire as ebbRequire}from'node:module';const require=ebbRequire(import.meta.url);";
/** Files besides the sources that decide the result: resolution of imports, and the bundler. */
const ALSO_DECIDE = ['lib/infra/bundler.ts', 'tsconfig.json', 'package.json', 'node_modules/.package-lock.json'];

/** Content of a folder of bundled code. */
interface Manifest {
  /** Digest of the build's options. */
  readonly options: string;
  /** SHA-256 of each source file, by its path below the root. */
  readonly inputs: Readonly<Record<string, string>>;
  /** Files by function, the handler's first. */
  readonly functions: Readonly<Record<string, readonly string[]>>;
}

interface Bundles {
  readonly folder: string;
  readonly functions: Manifest['functions'];
}

/** Source of a handler, in the checkout (`.ts`) or in the compiled package (`.js`). */
export function handlerFile(name: string): string {
  const file = sourceOf(name);
  if (file !== undefined) return file;
  throw new EbbError('internal', { what: `the handler of the Lambda ${name} is not there`, got: join(HANDLERS, name) });
}

const sourceOf = (name: string): string | undefined =>
  ['ts', 'js'].map((extension) => join(HANDLERS, name, `handler.${extension}`)).find((file) => fs.existsSync(file));

/** Parts of an asset besides its code. */
export interface AssetParts {
  readonly packaged: readonly PackagedName[];
  /** Trained models, by folder name. */
  readonly models: readonly string[];
  readonly platform: Platform;
}

/** Writes the asset of one function into a folder: `index.mjs`, the files shared with others, packages and models. */
export function assemble(name: string, folder: string, { packaged, models, platform }: AssetParts): void {
  const { folder: from, functions } = bundles();
  const [handler, ...shared] = invariant(functions[name], `${name} is among the functions that were bundled`);
  fs.mkdirSync(folder, { recursive: true });
  fs.copyFileSync(join(from, invariant(handler, 'a function has a handler')), join(folder, 'index.mjs'));
  for (const file of shared) fs.copyFileSync(join(from, file), join(folder, file));
  for (const each of [...packaged, ...modelRuntime(models)]) place(each, folder, platform);
  for (const model of models) copyModel(model, join(folder, 'models', model));
}

/** Digest of the code of these functions, from whichever source it comes. */
export function codeDigest(names: readonly string[]): string {
  const { folder, functions } = bundles();
  const digest = createHash('sha256');
  const files = new Set(names.flatMap((name) => invariant(functions[name], `${name} is among the functions`)));
  for (const file of [...files].sort()) digest.update(file).update(fs.readFileSync(join(folder, file)));
  return digest.digest('hex').slice(0, 16);
}

/** ONNX Runtime for functions that ask models. It is large, so without a model it may be missing. */
function modelRuntime(models: readonly string[]): readonly PackagedName[] {
  const isNeeded = models.some((model) => modelFolder(model) !== undefined);
  return models.length > 0 && (isNeeded || MODEL_RUNTIME.every(isInstalled)) ? MODEL_RUNTIME : [];
}

function copyModel(model: string, to: string): void {
  const from = modelFolder(model);
  if (from === undefined) return;
  const isAsked = (path: string): boolean => fs.statSync(path).isDirectory() || ASKED_FILES.includes(basename(path));
  fs.cpSync(from, to, { recursive: true, filter: isAsked });
}

/** Folder of a model, beside the sources or beside `dist`. */
const modelFolder = (model: string): string | undefined =>
  [ROOT, join(ROOT, '..')].map((root) => join(root, 'models', model)).find((folder) => fs.existsSync(folder));

let known: Bundles | null = null;

/** Cached per process: sources do not change during synthesis. */
function bundles(): Bundles {
  known ??= prebuilt() ?? cached() ?? built();
  return known;
}

function prebuilt(): Bundles | null {
  return fs.existsSync(join(PREBUILT, MANIFEST)) ? bundlesIn(PREBUILT) : null;
}

function cached(): Bundles | null {
  const options = optionsDigest();
  const found = cachedFolders().find((folder) => {
    const manifest = manifestIn(folder);
    return manifest.options === options && Object.entries(manifest.inputs).every(([f, sha]) => digestOf(f) === sha);
  });
  return found === undefined ? null : bundlesIn(found);
}

const bundlesIn = (folder: string): Bundles => ({ folder, functions: manifestIn(folder).functions });

/** Newest first. */
function cachedFolders(): string[] {
  if (!fs.existsSync(CACHE)) return [];
  return fs
    .readdirSync(CACHE)
    .map((name) => join(CACHE, name))
    .filter((folder) => fs.existsSync(join(folder, MANIFEST)))
    .map((folder) => ({ folder, madeMs: fs.statSync(folder).mtimeMs }))
    .sort((a, b) => b.madeMs - a.madeMs)
    .map(({ folder }) => folder);
}

function built(): Bundles {
  if (!fs.existsSync(join(ROOT, 'package.json'))) {
    // Temporary folder: packed sources without `npm run build` have no place of their own.
    const folder = fs.mkdtempSync(join(tmpdir(), 'ebb-functions-'));
    process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
    bundleAll(folder);
    return bundlesIn(folder);
  }
  fs.mkdirSync(CACHE, { recursive: true });
  const building = fs.mkdtempSync(join(CACHE, 'building.'));
  try {
    const manifest = bundleAll(building);
    const folder = join(CACHE, sha256(JSON.stringify(manifest)).slice(0, 24));
    // Removal of an existing folder: another process was faster with the same result, or its sources were changed and
    // restored.
    fs.rmSync(folder, { recursive: true, force: true });
    fs.renameSync(building, folder);
    for (const old of cachedFolders().slice(KEPT)) fs.rmSync(old, { recursive: true, force: true });
    return bundlesIn(folder);
  } finally {
    fs.rmSync(building, { recursive: true, force: true });
  }
}

/** Bundles for the package, without digests of sources: it is used as it is. Returns the number of functions. */
export function prebuild(folder: string): number {
  const { functions } = bundleAll(resolve(folder));
  fs.writeFileSync(join(folder, MANIFEST), JSON.stringify({ functions }));
  return Object.keys(functions).length;
}

/** Bundles every handler into a folder, with a manifest. */
function bundleAll(folder: string): Manifest {
  const entries = Object.fromEntries(handlerNames().map((name) => [name, handlerFile(name)]));
  const metafile = bundled({ ...OPTIONS, entryPoints: entries, outdir: folder, absWorkingDir: ROOT });
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const manifest: Manifest = {
    options: optionsDigest(),
    inputs: Object.fromEntries([...ALSO_DECIDE, ...Object.keys(metafile.inputs)].map((f) => [f, digestOf(f)])),
    functions: Object.fromEntries(Object.keys(entries).map((name) => [name, reachable(`${name}.mjs`, outputs)])),
  };
  fs.writeFileSync(join(folder, MANIFEST), JSON.stringify(manifest));
  return manifest;
}

const OPTIONS = {
  bundle: true,
  splitting: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  chunkNames: 'shared-[hash]',
  mainFields: ['module', 'main'],
  external: ['highs', 'onnxruntime-node'] satisfies PackagedName[],
  banner: { js: BANNER },
  // Names are kept, so that stack traces in logs are readable.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'error',
} as const satisfies Esbuild.BuildOptions;

/** Runs the bundler (bundler.ts) and waits for it. */
function bundled(options: Esbuild.BuildOptions): Esbuild.Metafile {
  const bundler = fileURLToPath(new URL('./bundler.ts', import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning', bundler, JSON.stringify(options)];
  const { status, stdout, stderr, error } = spawnSync(process.execPath, flags, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status === 0) return JSON.parse(stdout) as Esbuild.Metafile;
  throw new EbbError('internal', {
    what: 'the code of the Lambdas could not be bundled',
    got: stderr,
    ...(error === undefined ? {} : { cause: error }),
  });
}

/** File and all files that it imports, statically or dynamically. */
function reachable(entry: string, outputs: ReadonlyMap<string, Esbuild.Metafile['outputs'][string]>): string[] {
  const found = new Set([entry]);
  // Iteration over a set includes entries added meanwhile.
  for (const file of found) {
    const imports = invariant(outputs.get(file), `${file} was written`).imports;
    for (const { path, external } of imports) if (external !== true) found.add(basename(path));
  }
  return [...found];
}

const handlerNames = (): string[] => fs.readdirSync(HANDLERS).filter((name) => sourceOf(name) !== undefined);

const optionsDigest = (): string => sha256(JSON.stringify([OPTIONS, esbuild().version, handlerNames()]));

/** Digest of a file; `none` if missing. */
function digestOf(file: string): string {
  try {
    return sha256(fs.readFileSync(join(ROOT, file)));
  } catch {
    return 'none';
  }
}

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

const manifestIn = (folder: string): Manifest =>
  JSON.parse(fs.readFileSync(join(folder, MANIFEST), 'utf8')) as Manifest;

/** Peer dependency, imported only to bundle: users of a built package need not have it. */
function esbuild(): typeof Esbuild {
  try {
    return createRequire(import.meta.url)('esbuild') as typeof Esbuild;
  } catch (error) {
    throw new EbbError('internal', {
      what: 'the code of the Lambdas must be bundled, and esbuild is not installed',
      next: 'npm install --save-dev esbuild',
      cause: error,
    });
  }
}
