/** A pattern in which `*` stands for anything and `?` for one character, as a test of whole texts. */
export function wildcard(pattern: string): RegExp {
  const literal = pattern.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${literal.replaceAll('*', '.*').replaceAll('?', '.')}$`, 's');
}

/** Whether any of the patterns is the whole text. */
export const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((pattern) => wildcard(pattern).test(text));
