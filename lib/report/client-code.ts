import { readFileSync } from 'node:fs';

/**
 * The script of the report's page, made of the modules in client/: types are taken out as the build does it, and the
 * modules are put one after another into one block, each after what it imports. That needs no bundler at run time; it
 * asks of the modules that their top-level names differ: in a block of strict code any parser refuses the second one.
 */
export function clientCode(): string {
  const parts = new Map<string, string>();
  include(new URL('./client/app.ts', import.meta.url), parts);
  return `'use strict';\n{\n${[...parts.values()].join('\n')}\n}\n`;
}

/**
 * `import { a, b } from './c.ts';` is all that the modules may use; nothing is renamed, nothing has side effects alone.
 */
const IMPORT = /^import \{[^}]*\} from '(\.\.?\/[\w./-]+)';$/gm;
const EXPORT = /^export (?=const|let|function|async function|class)/gm;
const LEFT_OVER = /^(?:import|export)\b.*$/m;

function include(file: URL, parts: Map<string, string>): void {
  if (parts.has(file.href)) return;
  const source = readFileSync(file, 'utf8');
  const { stripTypeScriptTypes } = process.getBuiltinModule('node:module');
  // A built package has JavaScript here already.
  const code = file.pathname.endsWith('.ts') ? stripTypeScriptTypes(source) : source;
  // Known before its imports are read, so that a circle ends; where the part stands is decided after them.
  parts.set(file.href, '');
  for (const [, specifier = ''] of code.matchAll(IMPORT)) include(new URL(specifier, file), parts);
  const body = code.replace(IMPORT, '').replace(EXPORT, '');
  const left = LEFT_OVER.exec(body);
  if (left !== null) throw new SyntaxError(`${file.pathname}: not understood in a script of the page: ${left[0]}`);
  parts.delete(file.href);
  parts.set(
    file.href,
    body
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '')
      .join('\n'),
  );
}
