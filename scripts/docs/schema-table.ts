/** Tables of the keys of a file, from its JSON Schema, and the files that hold them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
}

const root = join(import.meta.dirname, '../..');
/** Keys that are objects with a table of their own. */
const NESTED = new Set(['resources', 'constraints', 'preferences', 'checkpoint', 'value', 'stages']);

const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
const code = (value: unknown): string => `\`${String(value)}\``;

/** Form of a value, in a few words. */
function typeOf(key: string, s: Schema): string {
  if (DURATIONS.has(key)) return key === 'deadline' ? 'duration or time' : 'duration';
  if (SIZES.has(key)) return 'size';
  if (key === 'cpu') return 'number or thousandths';
  if (s.enum !== undefined) return s.enum.map(code).join(', ');
  if (s.anyOf !== undefined) {
    const kinds = [...new Set(s.anyOf.map((a) => typeOf('', a)))];
    return kinds.join(' or ');
  }
  if (s.type === 'array') return `list of ${NESTED.has(key) ? 'objects' : typeOf('', s.items ?? {})}`;
  if (s.type === 'object') return s.properties === undefined ? 'map of texts' : 'object';
  if (s.type === 'string') return 'text';
  return `${s.type ?? 'any'}${range(s)}`;
}

const DURATIONS = new Set(
  'deadline timeout grace every expectedRuntime worthlessAfter latency interval drain'.split(' '),
);
const SIZES = new Set(['memory', 'disk']);

function range(s: Schema): string {
  const low = s.minimum ?? s.exclusiveMinimum;
  const isOpenBelow = s.minimum === undefined && s.exclusiveMinimum !== undefined;
  const hasHigh = s.maximum !== undefined && s.maximum < Number.MAX_SAFE_INTEGER;
  if (low === undefined && !hasHigh) return '';
  const parts = [
    ...(low === undefined ? [] : [`${isOpenBelow ? 'more than' : 'from'} ${low}`]),
    ...(hasHigh ? [`to ${s.maximum.toLocaleString('en-US')}`] : []),
  ];
  return `, ${parts.join(' ')}`;
}

function defaultOf(s: Schema, isRequired: boolean): string {
  if (isRequired) return 'required';
  if (s.default === undefined) return '';
  return typeof s.default === 'string' && s.default.includes(' ')
    ? s.default
    : code(JSON.stringify(s.default).replaceAll('"', ''));
}

export function table(of: Schema): string {
  const rows = Object.entries(of.properties ?? {}).map(([key, s]) => {
    const isRequired = of.required?.includes(key) === true || key === 'command';
    return `| ${code(key)} | ${cell(typeOf(key, s))} | ${cell(defaultOf(s, isRequired))} | ${cell(s.description ?? '')} |`;
  });
  return ['| key | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

export const pick = (of: Schema, wanted: (key: string) => boolean): Schema => ({
  ...of,
  properties: Object.fromEntries(Object.entries(of.properties ?? {}).filter(([key]) => wanted(key))),
});
export const objectOf = (s: Schema): Schema => s.items ?? s.anyOf?.find((a) => a.properties !== undefined) ?? s;

/** Writes the files; with `--check` says which differ, and the exit code is 1. */
export function writeOrCheck(outputs: readonly (readonly [name: string, text: string])[], command: string): void {
  const isCheck = process.argv.includes('--check');
  for (const [name, text] of outputs) {
    const path = join(root, name);
    if (!isCheck) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    } else if (currentText(path) !== text) {
      console.error(`${name} does not match the schema: run \`${command}\``);
      process.exitCode = 1;
    }
  }
}

function currentText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
