// TypeScript to JavaScript by taking the types out: what Node itself does with the files of a checkout, but written
// down, because Node refuses to do it below node_modules. Lines stay where they are, so stack traces fit the sources.
// Needs Node >= 22.13 (module.stripTypeScriptTypes). Used by `npm run build`, and by the launcher when a package
// was packed without building.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join, relative } from 'node:path';

/** Folders whose TypeScript becomes part of the product. */
const FOLDERS = ['bin', 'lib', 'lambdas'];

/** Relative specifiers of imports and of `new URL('./worker.ts', import.meta.url)` follow the files to `.js`. */
const SPECIFIER = /(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g;

/** Writes `<root>/dist`, whole or not at all. Returns how many files it has. */
export function compile(root) {
  const building = join(root, `dist.${process.pid}`);
  rmSync(building, { recursive: true, force: true });
  let files = 0;
  for (const file of sources(root)) {
    const target = join(building, relative(root, file).replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    const code = nodeModule.stripTypeScriptTypes(readFileSync(file, 'utf8'));
    writeFileSync(target, code.replace(SPECIFIER, '$1$2.js$1'));
    files++;
  }
  const dist = join(root, 'dist');
  rmSync(dist, { recursive: true, force: true });
  renameSync(building, dist);
  return files;
}

/** Every .ts file of the product below `root`, declarations aside. */
function sources(root) {
  return FOLDERS.map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}
