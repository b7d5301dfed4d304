import { readFileSync } from 'node:fs';

/** The package's version. Its file is two levels up in a checkout, three in a package (dist/), five in a checkout's copy. */
export const VERSION: string = (() => {
  for (const levels of [2, 3, 5]) {
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
