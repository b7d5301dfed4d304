import { readFileSync } from 'node:fs';

/** The package's version. The file is two levels up in a checkout and three in a package (dist/). */
export const VERSION: string = (() => {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        name?: string;
        version?: string;
      };
      if (name === 'ebbtide' && version !== undefined) return version;
    } catch {
      // Not there: the other place.
    }
  }
  return '0.0.0';
})();
