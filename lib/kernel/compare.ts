/** Comparator for `sort`: texts by UTF-16 code unit, the same in every locale. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
