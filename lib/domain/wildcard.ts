/**
 * True if `text` matches `pattern`; `*` stands for any characters, also none. Greedy, with one backtracking point (the
 * last star), as in Kirk J. Krauss, "Matching Wildcards: An Algorithm" (Dr. Dobb's, 2008): O(pattern x text) steps at
 * most, no memory. Never compiled to a regular expression: `.*.*.*x` backtracks exponentially.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  let p = 0;
  let afterStar = -1;
  let retry = 0;
  for (let t = 0; t < text.length;) {
    if (pattern[p] === '*') {
      p++;
      afterStar = p;
      retry = t;
    } else if (p < pattern.length && pattern[p] === text[t]) {
      p++;
      t++;
    } else if (afterStar >= 0) {
      p = afterStar;
      retry++;
      t = retry;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
