/** Anchor of a heading as on GitHub; the site uses the same, so that one link works in both. */
export const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');
