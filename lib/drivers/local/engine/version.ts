import { readFileSync } from 'node:fs';

/**
 * The package's version. Its file is four levels up in a checkout, five in a package (dist/), seven in a checkout's
 * copy.
 */
export const VERSION: string = (() => {
  for (const levels of [4, 5, 7]) {
    const path = `${'../'.repeat(levels)}package.json`;
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        name?: string;
        version?: string;
      };
      if (name === 'ebbtide' && version !== undefined) return version;
    } catch {
      // Not there: the next place.
    }
  }
  return '0.0.0';
})();
