/** The linter's rules of the house style, on lines that keep or break them. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const LINTER = join(ROOT, 'node_modules', 'oxlint', 'bin', 'oxlint');
const WORDS = 'word '.repeat(30).trim();

/** One a line: what it must be refused for, or null. */
const LINES: readonly (readonly [string, string | null])[] = [
  [`// ${WORDS}`, 'comment-width'],
  [`/** ${WORDS} */`, 'comment-width'],
  [`// https://example.org/${WORDS.replaceAll(' ', '-')}`, null],
  [`// | ${WORDS} |`, null],
  [`export const text = '${WORDS}';`, null],
  ["export const isSpot = (pool: string): boolean => pool.endsWith('/spot');", 'pool-ids'],
  ["export const partsOf = (pool: string): string[] => pool.split('/');", 'pool-ids'],
  ["export const partsOfOne = (of: { pool: string }): string[] => of.pool.split('/');", 'pool-ids'],
  ["export const partsOfId = (pool: { id: string }): string[] => pool.id.split('/');", 'pool-ids'],
  ["export const partsOfIts = (of: { pool: { id: string } }): string[] => of.pool.id.split('/');", 'pool-ids'],
  ['export const isOnDemand = (id: string): boolean => /on-demand$/.test(id);', 'pool-ids'],
  ['export const isSpotIn = (id: string): boolean => /^c5[^/]*\\/a\\/spot$/.test(id);', 'pool-ids'],
  ['export const isOption = (text: string): boolean => /^(spot|on-demand)$/.test(text);', null],
  ['export let count = 0; export const next = (): number => ++count;', 'module-state'],
  [
    'export let last: object | null = null; export const keep = (it: object): void => void (last = it);',
    'module-state',
  ],
  ['export const known = new WeakMap<object, number>();', 'module-state'],
  ['export const names = new Map<string, number>();', 'module-state'],
  ["export const seen: Set<string> = new Set(['a']);", 'module-state'],
  ['export class Named { static readonly byName = new Map<string, number>(); }', 'module-state'],
  ['export const scratch = new Float64Array(8);', 'module-state'],
  ['export const found: string[] = [];', 'module-state'],
  ['export class Owner { readonly known = new WeakMap<object, number>(); }', null],
  ['export const memory = (): Map<string, number> => new Map();', null],
  ["export const SHELLS: ReadonlySet<string> = new Set(['sh']);", null],
  ['export const NOTHING: { readonly waiting: ReadonlyMap<string, number> } = { waiting: new Map() };', null],
  ['export const NONE: readonly string[] = [];', null],
  ['export const NO_PRICES = new Float64Array(0);', null],
  ["export const segments = (path: string): string[] => path.split('/');", null],
];

const folder = mkdtempSync(join(tmpdir(), 'ebb-lint-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('knows the rules of the house style', () => {
  for (const part of ['.oxlintrc.json', 'scripts/lint', 'tsconfig.json']) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, 'lib/market'), { recursive: true });
  // A function of 61 lines after them.
  const long = ['export function long(): void {', ...Array.from({ length: 60 }, (_, i) => `  void ${i};`), '}'];
  writeFileSync(join(folder, 'lib/market/all.ts'), [...LINES.map(([line]) => line), ...long, ''].join('\n'));
  const { stdout } = spawnSync(process.execPath, [LINTER, '--format', 'json', 'lib'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const found = (
    JSON.parse(stdout) as {
      diagnostics: readonly { code: string; labels: readonly { span: { line: number } }[] }[];
    }
  ).diagnostics.map(({ code, labels }) => [labels[0]?.span.line, /\((.*)\)/.exec(code)?.[1]] as const);
  expect(found.sort(([a = 0], [b = 0]) => a - b)).toEqual([
    ...LINES.flatMap(([, rule], i) => (rule === null ? [] : [[i + 1, rule]])),
    [LINES.length + 1, 'max-lines-per-function'],
  ]);
});
