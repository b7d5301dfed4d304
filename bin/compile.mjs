// TypeScript to JavaScript by taking the types out: what Node itself does with the files of a checkout, but written
// down, because Node refuses to do it below node_modules, and keeps what does it in memory where it does. Lines stay
// where they are, so stack traces fit the sources. Needs Node >= 22.13 (module.stripTypeScriptTypes). Used by
// `npm run build`, by the launcher when a package was packed without building, and for its copy of a checkout.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join, relative } from 'node:path';

/** Folders whose TypeScript becomes part of the product. */
const FOLDERS = ['bin', 'lib', 'lambdas'];

/** Relative specifiers of imports and of `new URL('./worker.ts', import.meta.url)` follow the files to `.js`. */
export const SPECIFIER = /(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g;

/** Writes `<root>/dist`, whole or not at all. Returns how many files it has. */
export function compile(root) {
  const building = join(root, `dist.${process.pid}`);
  rmSync(building, { recursive: true, force: true });
  const files = sources(root);
  for (const file of files) compileFile(join(root, file), join(building, compiledName(file)));
  const dist = join(root, 'dist');
  rmSync(dist, { recursive: true, force: true });
  renameSync(building, dist);
  return files.length;
}

export function compileFile(source, target) {
  mkdirSync(dirname(target), { recursive: true });
  const code = nodeModule.stripTypeScriptTypes(readFileSync(source, 'utf8'));
  writeFileSync(target, code.replace(SPECIFIER, '$1$2.js$1'));
}

export const compiledName = (file) => file.replace(/\.ts$/, '.js');

/** Every .ts file of the product, relative to `root`, declarations aside. */
export function sources(root) {
  return FOLDERS.map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}
