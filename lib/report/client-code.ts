import { readFileSync } from 'node:fs';

/**
 * Script of the report's page, made of the modules in client/. Types are stripped as in the build. The modules are
 * concatenated into one block, each after its imports, so no bundler is needed at run time. Their top-level names must
 * differ: in a block of strict code any parser refuses a second one.
 */
export function clientCode(): string {
  const parts = new Map<string, string>();
  include(new URL('./client/app.ts', import.meta.url), parts);
  return `'use strict';\n{\n${[...parts.values()].join('\n')}\n}\n`;
}

/** The only form of import that the modules may use: no renaming, no imports for side effects. */
const IMPORT = /^import \{[^}]*\} from '(\.\.?\/[\w./-]+)';$/gm;
const EXPORT = /^export (?=const|let|function|async function|class)/gm;
const LEFT_OVER = /^(?:import|export)\b.*$/m;

function include(file: URL, parts: Map<string, string>): void {
  if (parts.has(file.href)) return;
  const source = readFileSync(file, 'utf8');
  const { stripTypeScriptTypes } = process.getBuiltinModule('node:module');
  // A built package has JavaScript here.
  const code = file.pathname.endsWith('.ts') ? stripTypeScriptTypes(source) : source;
  // Entry before its imports are read, so that circles end; its order is decided after them.
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
