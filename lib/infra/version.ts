import { readFileSync } from 'node:fs';

/** The version that is deployed: that of the package, whether its sources or their compiled form in `dist` are run. */
export function deployedVersion(): string {
  for (const up of ['../../', '../../../']) {
    try {
      const text = readFileSync(new URL(`${up}package.json`, import.meta.url), 'utf8');
      const { name, version } = JSON.parse(text) as { name?: string; version?: string };
      if (name === 'ebbtide' && version !== undefined) return version;
    } catch {
      // Not there: the next place.
    }
  }
  return '0.0.0';
}
