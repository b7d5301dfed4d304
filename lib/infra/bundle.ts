/**
 * Code of the Lambdas: each handler with all that it imports in one ES module, made by esbuild in this process, without
 * Docker and without a network. What cannot be bundled (WebAssembly) lies beside it as the package it is.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { buildSync } from 'esbuild';
import { EbbError } from '../kernel/errors.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HANDLERS = join(ROOT, 'lambdas');
/** Newer than what CommonJS packages inside the bundle ask for with `require`. */
const BANNER = "import{createRequire as ebbRequire}from'node:module';const require=ebbRequire(import.meta.url);";

/** Packages that stay packages in the asset, and which of their files: for Lambda's platform only. */
export const PACKAGED = {
  /** HiGHS finds its WebAssembly file beside its own module. */
  highs: ['package.json', 'LICENSE', 'build/highs.mjs', 'build/highs.wasm'],
} as const satisfies Record<string, readonly string[]>;

export type PackagedName = keyof typeof PACKAGED;

/** The source of a handler, in the checkout (`.ts`) or in the compiled package (`.js`). */
export function handlerFile(name: string): string {
  for (const extension of ['ts', 'js']) {
    const file = join(HANDLERS, name, `handler.${extension}`);
    if (existsSync(file)) return file;
  }
  throw new EbbError('internal', { what: `the handler of the Lambda ${name} is not there`, got: join(HANDLERS, name) });
}

/** The asset of one Lambda. Made at synthesis, unless the CDK says that its stack needs none. */
export function codeOf(name: string, packaged: readonly PackagedName[]): lambda.Code {
  const entry = handlerFile(name);
  return lambda.Code.fromAsset(dirname(entry), {
    // What goes into the bundle decides, not the folder of the handler, which imports most of it.
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      image: DockerImage.fromRegistry('never-used'),
      local: {
        tryBundle: (folder) => {
          bundle(entry, folder, packaged);
          return true;
        },
      },
    },
  });
}

/** Writes `index.mjs`, and the packages, into a folder. */
export function bundle(entry: string, folder: string, packaged: readonly PackagedName[]): void {
  buildSync({
    entryPoints: [entry],
    outfile: join(folder, 'index.mjs'),
    // Paths in the output must not depend on where the checkout lies: the hash of the asset would.
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'],
    external: [...packaged],
    banner: { js: BANNER },
    // Names stay, so that a stack trace in a log can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'error',
  });
  for (const name of packaged) place(name, folder);
}

function place(name: PackagedName, folder: string): void {
  const from = packageFolder(name);
  for (const file of PACKAGED[name]) {
    const to = join(folder, 'node_modules', name, file);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(from, file), to);
  }
}

/** Found as Node finds it, wherever npm has put it. */
function packageFolder(name: string): string {
  let folder = dirname(createRequire(import.meta.url).resolve(name));
  while (!isPackage(folder, name)) {
    const above = dirname(folder);
    if (above === folder) throw new EbbError('internal', { what: `the package ${name} is not installed` });
    folder = above;
  }
  return folder;
}

function isPackage(folder: string, name: string): boolean {
  const file = join(folder, 'package.json');
  return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { name?: string }).name === name;
}
