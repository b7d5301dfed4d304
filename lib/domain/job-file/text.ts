import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from 'yaml';
import { EbbError, type Issue } from '../../kernel/errors.ts';
import type { Locate, Path } from './findings.ts';

export const DEFAULT_MAX_BYTES = 2 ** 20;
/** Aliases that multiply ("billion laughs") are refused by the YAML library at this count of expanded nodes. */
const MAX_ALIASES = 1000;
const MAX_SYNTAX_ISSUES = 20;
/** Deepest nesting of a valid job file is 7; the parser is recursive and must not be led further. */
const MAX_DEPTH = 100;

export interface TextOptions {
  /** What messages call the file. */
  readonly path: string;
  /** Default: by the name, JSON for `.json`. YAML holds JSON, but JSON is then parsed by its own, stricter rules. */
  readonly format?: 'yaml' | 'json';
  readonly maxBytes?: number;
}

/** A text as data, and where in it each path lies. Throws EbbError `job-file.syntax` or `body-too-large`. */
export function readText(text: string, options: TextOptions): { readonly json: unknown; readonly locate: Locate } {
  const max = options.maxBytes ?? DEFAULT_MAX_BYTES;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > max) {
    throw new EbbError('body-too-large', {
      what: 'this is too large for a job file',
      at: options.path,
      got: `${bytes} bytes`,
      allowed: `at most ${max} bytes`,
      next: 'a stage of many tasks is one line: `tasks: N`',
    });
  }
  refuseDepth(text, options.path);
  const lines = new LineCounter();
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${options.path}:${line}:${col}`;
  };
  const document = compose(text, lines, options.path);
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw syntaxError(faults.slice(0, MAX_SYNTAX_ISSUES).map((f) => ({ at: place(f.pos[0]), message: f.message })));
  }
  const format = options.format ?? (options.path.toLowerCase().endsWith('.json') ? 'json' : 'yaml');
  return {
    json: format === 'json' ? strictJson(text, options.path) : expand(document, options.path),
    locate: (path, atKey) => {
      const offset = offsetOf(document, path, atKey);
      return offset === null ? options.path : place(offset);
    },
  };
}

const syntaxError = (issues: readonly Issue[], cause?: unknown): EbbError =>
  new EbbError('job-file.syntax', {
    what: issues.length === 1 ? (issues[0]?.message ?? '') : `the job file has ${issues.length} syntax errors`,
    ...(issues.length === 1 && issues[0] !== undefined ? { at: issues[0].at } : {}),
    issues,
    allowed: 'one document of YAML 1.2 or JSON, each key once',
    next: 'correct the places named',
    cause,
  });

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Counts brackets and indentation without regard to quotes: no job file has that many, whatever it quotes. */
function refuseDepth(text: string, path: string): void {
  let depth = 0;
  for (const character of text) {
    if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth = Math.max(0, depth - 1);
    if (depth > MAX_DEPTH) throw tooDeep(path);
  }
  // In block style a level takes at least one more column, or an indicator `-`, `?` or `:` with its space.
  if (/^[ \t]*(?:[-?:][ \t]+){100}/m.test(text) || /^ {400}/m.test(text)) throw tooDeep(path);
}

const tooDeep = (path: string): EbbError =>
  syntaxError([{ at: path, message: `nested more deeply than ${MAX_DEPTH} levels` }]);

function compose(text: string, lineCounter: LineCounter, path: string): Document.Parsed {
  try {
    return parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: true, merge: true, stringKeys: true });
  } catch (cause) {
    throw syntaxError([{ at: path, message: `cannot be parsed: ${messageOf(cause)}` }], cause);
  }
}

function expand(document: Document.Parsed, path: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown;
  } catch (cause) {
    throw syntaxError([{ at: path, message: `cannot be expanded: ${messageOf(cause)}` }], cause);
  }
}

function strictJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw syntaxError([{ at: path, message: messageOf(cause) }], cause);
  }
}

/** Where the deepest part of the path that is in the text begins; null for an empty text. */
function offsetOf(document: Document.Parsed, path: Path, atKey: boolean): number | null {
  let node: Node | null | undefined = document.contents;
  let offset = node?.range?.[0] ?? null;
  for (const [depth, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    let next: Node | null | undefined;
    if (isMap(node)) {
      const pair = node.items.find((p) => (isScalar(p.key) ? String(p.key.value) : null) === String(part));
      const key = isScalar(pair?.key) ? pair.key : undefined;
      if (pair === undefined) return offset;
      if (atKey && depth === path.length - 1) return key?.range?.[0] ?? offset;
      next = pair.value as Node | null;
      offset = next?.range?.[0] ?? key?.range?.[0] ?? offset;
    } else if (isSeq(node) && typeof part === 'number') {
      next = node.items[part] as Node | undefined;
      offset = next?.range?.[0] ?? offset;
    } else return offset;
    node = next;
  }
  return offset;
}
