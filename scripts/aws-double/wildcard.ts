/** Test of whole texts by a pattern with `*` for anything and `?` for one character. */
export function wildcard(pattern: string): RegExp {
  const literal = pattern.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}

/** True if any pattern matches the whole text. */
export const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((pattern) => wildcard(pattern).test(text));
