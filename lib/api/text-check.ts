import type { Issue } from '../kernel/errors.ts';

/** Escapes that may stand for forbidden characters. Texts without them need no check. */
const SUSPECT = /\\u(?:0000|d[89a-f])/i;
const MAX_ISSUES = 20;

/**
 * Findings for texts with NUL or half a surrogate pair, which systems, databases and terminals reject. `json` is the
 * parsed `source`. Iterative, for any nesting.
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

/** Path as in findings of job files: `stages[1].command[0]`. Deep paths are cut. */
function pathTo(at: string, key: string, isIndex: boolean): string {
  if (at.length > 200) return at;
  return isIndex ? `${at}[${key}]` : `${at}${at === '' ? '' : '.'}${key}`;
}
