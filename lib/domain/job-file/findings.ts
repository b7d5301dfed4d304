import { nearestName } from '../nearest-name.ts';
import type { z } from 'zod';
import { EbbError, type ErrorCode, type Issue } from '../../kernel/errors.ts';
import { jobFileJsonSchema } from './schema.ts';

export type Path = readonly (string | number)[];

/** Something that is wrong with a job file. `atKey`: the key itself is, not its value. */
export interface Finding {
  readonly code: Extract<
    ErrorCode,
    'job-file.invalid' | 'job-file.cycle' | 'job-file.dependency' | 'job.not-in-version' | 'service-file.invalid'
  >;
  readonly path: Path;
  readonly message: string;
  readonly atKey?: boolean;
}

/** Limit of the listed findings: nobody reads more. */
const MAX_ISSUES = 50;
const MAX_SHOWN = 80;
const MAX_SHOWN_DEPTH = 8;

/** Position of a path in the text: `file:line:column`; null if unknown. */
export type Locate = (path: Path, atKey: boolean) => string | null;

/** Kind of a file, for messages. */
export interface FileKind {
  readonly name: string;
  /** Page that describes its keys. */
  readonly page: string;
  readonly code: Finding['code'];
}

const JOB_FILE: FileKind = { name: 'job file', page: 'docs/reference/job-file.md', code: 'job-file.invalid' };

/** One error for all findings; its code is the common one, if they agree. */
export function refuse(findings: readonly Finding[], locate: Locate, kind = JOB_FILE): EbbError {
  const codes = new Set(findings.map((f) => f.code));
  const [only] = codes;
  const code = codes.size === 1 && only !== undefined ? only : kind.code;
  const next = `correct the places named; ${kind.page} describes every key`;
  const issues: Issue[] = findings.slice(0, MAX_ISSUES).map((f) => {
    const place = locate(f.path, f.atKey === true);
    const path = pathText(f.path);
    return { at: place === null ? path : path === '' ? place : `${place} ${path}`, message: f.message };
  });
  const [first] = issues;
  if (issues.length === 1 && first !== undefined) {
    return new EbbError(code, { what: first.message, at: first.at, issues, next });
  }
  return new EbbError(code, { what: `the ${kind.name} has ${findings.length} faults`, issues, next });
}

/** `stages[1].resources.memory` */
export const pathText = (path: Path): string =>
  path.reduce<string>((sum, p) => (typeof p === 'number' ? `${sum}[${p}]` : sum === '' ? p : `${sum}.${p}`), '');

/**
 * Zod's findings as sentences: got, allowed. Neighbours of an unknown key are searched only for findings that are
 * shown.
 */
export function findingsOf(error: z.ZodError, input: unknown, jsonSchema: () => Schema = jobFileJsonSchema): Finding[] {
  const allowed = new AllowedKeys(jsonSchema);
  let unknown = 0;
  return error.issues.flatMap((issue): Finding[] => {
    const path = issue.path.map((p) => (typeof p === 'number' ? p : String(p)));
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        code: 'job-file.invalid',
        path: [...path, key],
        message: ++unknown > MAX_ISSUES ? `unknown key ${shown(key)}` : unknownKey(key, allowed.at(path)),
        atKey: true,
      }));
    }
    if (issue.code === 'invalid_key') {
      return [
        {
          code: 'job-file.invalid',
          path,
          message: `the key ${issue.issues[0]?.message ?? 'is not allowed'}`,
          atKey: true,
        },
      ];
    }
    const value = valueAt(input, path);
    if (value === undefined) return [{ code: 'job-file.invalid', path, message: 'is missing' }];
    return [{ code: 'job-file.invalid', path, message: `${sentence(issue)}; got ${shown(value)}` }];
  });
}

/** Zod's own words where the schema gives none, less their beginning. */
function sentence(issue: z.core.$ZodIssue): string {
  return issue.message
    .replace(/^(Invalid input|Invalid option|Too small|Too big): /, '')
    .replace(/^expected/, 'must be')
    .replace(/, received \w+$/, '');
}

/** Beginning of the value as JSON, without its deepest nesting. */
function shown(value: unknown): string {
  const depths = new Map<unknown, number>();
  const json = JSON.stringify(value, function (this: unknown, _key, part: unknown) {
    if (typeof part !== 'object' || part === null) return part;
    const depth = (depths.get(this) ?? 0) + 1;
    if (depth > MAX_SHOWN_DEPTH) return '...';
    depths.set(part, depth);
    return part;
  });
  return json.length <= MAX_SHOWN ? json : `${json.slice(0, MAX_SHOWN)}...`;
}

function valueAt(input: unknown, path: Path): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string | number, unknown>)[part];
  }
  return value;
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

const alternatives = (schema: Schema): readonly Schema[] => [schema, ...(schema.anyOf ?? [])];

/** Parts of the schema that describe the value at a path. */
function schemasAt(path: Path, root: Schema): readonly Schema[] {
  return path.reduce<readonly Schema[]>(
    (at, part) =>
      at.flatMap(alternatives).flatMap((s) => (typeof part === 'number' ? s.items : s.properties?.[part]) ?? []),
    [root],
  );
}

const keysOf = (schemas: readonly Schema[]): string[] => [
  ...new Set(schemas.flatMap(alternatives).flatMap((s) => Object.keys(s.properties ?? {}))),
];

interface Allowed {
  readonly keys: readonly string[];
  /** Allowed keys below each of them. */
  readonly below: readonly { readonly key: string; readonly keys: readonly string[] }[];
}

/** Cache of allowed keys by path without indexes: many jobs of a file have the same unknown keys. */
class AllowedKeys {
  readonly #known = new Map<string, Allowed>();
  readonly #schema: () => Schema;

  constructor(schema: () => Schema) {
    this.#schema = schema;
  }

  at(path: Path): Allowed {
    const place = path.map((p) => (typeof p === 'number' ? 0 : p)).join('\n');
    let allowed = this.#known.get(place);
    if (allowed === undefined) {
      const root = this.#schema();
      const keys = keysOf(schemasAt(path, root));
      allowed = { keys, below: keys.map((key) => ({ key, keys: keysOf(schemasAt([...path, key], root)) })) };
      this.#known.set(place, allowed);
    }
    return allowed;
  }
}

/** Names the nearest key, or the place of a key with this very name; else the keys allowed here. */
function unknownKey(key: string, { keys: here, below }: Allowed): string {
  const elsewhere = below.find(({ keys }) => keys.includes(key));
  const said = `unknown key ${shown(key)}`;
  if (elsewhere !== undefined) return `${said}; it belongs in \`${elsewhere.key}\``;
  const nearest = nearestName(key, here);
  if (nearest !== null) return `${said}; did you mean \`${nearest}\`?`;
  for (const { key: holder, keys } of below) {
    const near = nearestName(key, keys);
    if (near !== null) return `${said}; did you mean \`${holder}.${near}\`?`;
  }
  return here.length === 0 ? said : `${said}; allowed: ${here.join(', ')}`;
}
