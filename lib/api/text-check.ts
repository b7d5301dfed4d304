import type { Issue } from '../kernel/errors.ts';

/** Escapes that may stand for what is not allowed; text without them need not be looked at. */
const SUSPECT = /\\u(?:0000|d[89a-f])/i;
const MAX_ISSUES = 20;

/**
 * Texts that no operating system, database or terminal takes as they are: with NUL, or with half of a surrogate pair.
 * `json` is what `source` parsed to. Iterative, whatever the nesting.
 */
export function unusableTexts(json: unknown, source: string): Issue[] {
  const issues: Issue[] = [];
  if (!SUSPECT.test(source)) return issues;
  const open: { readonly value: unknown; readonly at: string }[] = [{ value: json, at: '' }];
  for (let next = open.pop(); next !== undefined && issues.length < MAX_ISSUES; next = open.pop()) {
    const { value, at } = next;
    if (typeof value === 'string') {
      if (isUnusable(value))
        issues.push({ at, message: 'must be a text without NUL and without half surrogate pairs' });
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (isUnusable(key)) issues.push({ at, message: 'a key has NUL or half a surrogate pair' });
        else open.push({ value: inner, at: pathTo(at, key, Array.isArray(value)) });
      }
    }
  }
  return issues;
}

const isUnusable = (text: string): boolean => text.includes('\u0000') || !text.isWellFormed();

/** As job file findings write it: `stages[1].command[0]`. Deep paths are cut: they say nothing to anybody. */
function pathTo(at: string, key: string, isIndex: boolean): string {
  if (at.length > 200) return at;
  return isIndex ? `${at}[${key}]` : `${at}${at === '' ? '' : '.'}${key}`;
}
