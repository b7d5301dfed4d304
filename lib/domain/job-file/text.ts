import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, type Document, type Node } from 'yaml';
import { EbbError, type Issue, messageOf } from '../../kernel/errors.ts';
import type { Locate, Path } from './findings.ts';

export const DEFAULT_MAX_BYTES = 2 ** 20;
/** Aliases that multiply ("billion laughs") are refused by the YAML library at this count of expanded nodes. */
const MAX_ALIASES = 1000;
const MAX_SYNTAX_ISSUES = 20;
/** Deepest nesting of a valid job file is 7; the parser is recursive and must not be led further. */
const MAX_DEPTH = 100;

export interface TextOptions {
  /** Name of the file in messages. */
  readonly path: string;
  /**
   * Default: by the name, JSON for `.json`, a job on each line for `.ndjson` and `.jsonl`. A text with JSON objects on
   * its first lines is read as such under any other name. YAML could parse JSON too, but JSON has its own, stricter
   * parser.
   */
  readonly format?: Format;
  /** Size limit of one document. */
  readonly maxBytes?: number;
}

type Format = 'yaml' | 'json' | 'ndjson';

/** More is a mistake: a stage of many tasks is one job. */
const MAX_DOCUMENTS = 100_000;
/** Largest file of several documents, bytes. */
export const MAX_FILE_BYTES = 64 * 2 ** 20;

/** A document as data, and where in its text each path lies. */
export interface TextDocument {
  readonly json: unknown;
  readonly locate: Locate;
}

/**
 * Documents of a text, at least one. YAML holds several, separated by `---`; empty ones are skipped. Throws EbbError
 * `job-file.syntax`, also for an empty text, or `body-too-large`.
 */
export function readDocuments(text: string, options: TextOptions): readonly TextDocument[] {
  const documents: TextDocument[] = [];
  const faults: EbbError[] = [];
  for (const read of eachDocument(text, options)) {
    if ('error' in read) faults.push(read.error);
    else documents.push(read);
  }
  const [first] = faults;
  if (first === undefined) return documents;
  const issues = faults.flatMap((f) => f.facts.issues ?? []);
  throw faults.length === 1 || issues.length === 0 ? first : syntaxError(issues.slice(0, MAX_SYNTAX_ISSUES));
}

/**
 * Documents of a text, one by one, each with its own error if unreadable. Throws for faults of the whole text: empty,
 * too large, too many documents.
 */
export function* eachDocument(
  text: string,
  options: TextOptions,
): Generator<TextDocument | { readonly error: EbbError }> {
  const { path } = options;
  if (text.length > MAX_FILE_BYTES) throw fileTooLarge(path, text.length);
  if (text.trim() === '') throw empty(path, 'an empty file');
  const format = options.format ?? formatOf(path, text);
  refuseCount(piecesOf(text, format), path);
  let count = 0;
  for (const piece of piecesOf(text, format)) {
    try {
      for (const document of documentsOf(piece, format, options)) {
        count += 1;
        yield document;
      }
    } catch (error) {
      if (!(error instanceof EbbError)) throw error;
      count += 1;
      yield { error };
    }
  }
  if (count === 0) throw empty(path, 'comments alone');
}

/** Runs before any document is parsed, because parsing takes far longer. */
function refuseCount(pieces: Iterable<unknown>, path: string): void {
  let count = 0;
  for (const _ of pieces) count += 1;
  if (count <= MAX_DOCUMENTS) return;
  throw syntaxError([{ at: path, message: `holds ${count} jobs, at most ${MAX_DOCUMENTS} are allowed` }]);
}

export const fileTooLarge = (path: string, bytes: number): EbbError =>
  new EbbError('body-too-large', {
    what: 'this is too large for a file of jobs',
    at: path,
    got: `${bytes} bytes`,
    allowed: `at most ${MAX_FILE_BYTES} bytes`,
    next: 'split it into several files; a stage of many tasks is one line: `tasks: N`',
  });

function formatOf(path: string, text: string): Format {
  const name = path.toLowerCase();
  if (name.endsWith('.json')) return 'json';
  if (/\.(?:ndjson|jsonl)$/.test(name)) return 'ndjson';
  // YAML allows nothing but `---` after a document in braces.
  const [, first, second] = /^\s*(\{[^\n]*\})[ \t]*\r?\n\s*(\S)/.exec(text) ?? [];
  return first !== undefined && second === '{' && isJson(first) ? 'ndjson' : 'yaml';
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A part of a text that has whole documents, as a rule one. */
interface Piece {
  readonly text: string;
  /** Lines before it. */
  readonly line: number;
}

function* piecesOf(text: string, format: Format): Generator<Piece> {
  if (format === 'json') yield { text, line: 0 };
  else if (format === 'ndjson') yield* linesOf(text);
  else yield* yamlPieces(text);
}

function* linesOf(text: string): Generator<Piece> {
  let line = 0;
  for (let from = 0; from < text.length; line++) {
    const end = text.indexOf('\n', from);
    const to = end === -1 ? text.length : end;
    const piece = text.slice(from, to);
    if (piece.trim() !== '') yield { text: piece, line };
    from = to + 1;
  }
}

/**
 * Cuts before each `---` and behind each `...` at the beginning of a line, which are markers wherever they stand (YAML
 * 1.2.2, 9.1.2). Comments and directives stay with the document that they precede.
 */
function* yamlPieces(text: string): Generator<Piece> {
  let start = 0;
  let startLine = 0;
  let hasContent = false;
  for (const { text: lineText, line, from, to } of yamlLines(text)) {
    if (/^---(?=\s|$)/.test(lineText)) {
      if (hasContent) {
        yield { text: text.slice(start, from), line: startLine };
        start = from;
        startLine = line;
      }
      hasContent = true;
    } else if (/^\.\.\.(?=\s|$)/.test(lineText)) {
      if (hasContent) yield { text: text.slice(start, to), line: startLine };
      start = to;
      startLine = line + 1;
      hasContent = false;
    } else if (!hasContent) hasContent = !/^(?:\s*(?:#.*)?|%.*)$/.test(lineText);
  }
  if (hasContent) yield { text: text.slice(start), line: startLine };
}

function* yamlLines(text: string): Generator<Piece & { readonly from: number; readonly to: number }> {
  let line = 0;
  for (let from = 0; from < text.length; line++) {
    const end = text.indexOf('\n', from);
    const to = end === -1 ? text.length : end + 1;
    yield { text: text.slice(from, end === -1 ? to : end), line, from, to };
    from = to;
  }
}

function documentsOf(piece: Piece, format: Format, options: TextOptions): readonly TextDocument[] {
  const { text } = piece;
  const max = options.maxBytes ?? DEFAULT_MAX_BYTES;
  const path = piece.line === 0 ? options.path : `${options.path}:${piece.line + 1}`;
  // A UTF-16 unit is at most three bytes of UTF-8.
  const bytes = text.length * 3 <= max ? 0 : new TextEncoder().encode(text).length;
  if (bytes > max) {
    throw new EbbError('body-too-large', {
      what: 'this is too large for a job file',
      at: path,
      got: `${bytes} bytes`,
      allowed: `at most ${max} bytes`,
      next: 'a stage of many tasks is one line: `tasks: N`',
    });
  }
  refuseDepth(text, path);
  const lines = new LineCounter();
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${options.path}:${piece.line + line}:${col}`;
  };
  const documents = compose(text, lines, path);
  const faults = documents.flatMap((d) => [...d.errors, ...d.warnings]);
  if (faults.length > 0) {
    throw syntaxError(faults.slice(0, MAX_SYNTAX_ISSUES).map((f) => ({ at: place(f.pos[0]), message: f.message })));
  }
  const filled = documents.filter((d) => d.contents !== null && !(isScalar(d.contents) && d.contents.source === ''));
  return filled.map((document) => ({
    json: format === 'yaml' ? expand(document, path) : strictJson(text, path),
    locate: (at, atKey) => {
      const offset = offsetOf(document, at, atKey);
      return offset === null ? path : place(offset);
    },
  }));
}

const empty = (path: string, got: string): EbbError =>
  new EbbError('job-file.syntax', {
    what: 'the job file is empty',
    at: path,
    got,
    allowed: 'a job: at the least a `command`',
    next: 'examples/hello.yaml is a small job file',
  });

const syntaxError = (issues: readonly Issue[], cause?: unknown): EbbError =>
  new EbbError('job-file.syntax', {
    what: issues.length === 1 ? (issues[0]?.message ?? '') : `the job file has ${issues.length} syntax errors`,
    ...(issues.length === 1 && issues[0] !== undefined ? { at: issues[0].at } : {}),
    issues,
    allowed: 'YAML 1.2 or JSON, each key once; several jobs of YAML with `---` between them',
    next: 'correct the places named',
    cause,
  });

/** Depth by brackets and indentation, quotes ignored: no real job file comes near the limit either way. */
function refuseDepth(text: string, path: string): void {
  let depth = 0;
  for (const character of text) {
    if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth = Math.max(0, depth - 1);
    if (depth > MAX_DEPTH) throw tooDeep(path);
  }
  // A level in block style takes at least one more column, or an indicator `-`, `?` or `:` with its space.
  if (/^[ \t]*(?:[-?:][ \t]+){100}/m.test(text) || /^ {400}/m.test(text)) throw tooDeep(path);
}

const tooDeep = (path: string): EbbError =>
  syntaxError([{ at: path, message: `nested more deeply than ${MAX_DEPTH} levels` }]);

function compose(text: string, lineCounter: LineCounter, path: string): readonly Document.Parsed[] {
  try {
    const options = { lineCounter, prettyErrors: false, uniqueKeys: true, merge: true, stringKeys: true };
    const documents = parseAllDocuments(text, options);
    return 'empty' in documents ? [] : documents;
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

/** Offset of the deepest part of the path that is in the text; null for an empty text. */
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
