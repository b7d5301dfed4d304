import { readFileSync } from 'node:fs';

/** Deployed version: the package's, for its sources and for their compiled form in `dist`. */
export function deployedVersion(): string {
  for (const up of ['../../', '../../../']) {
    try {
      const text = readFileSync(new URL(`${up}package.json`, import.meta.url), 'utf8');
      const { name, version } = JSON.parse(text) as { name?: string; version?: string };
      if (name === 'ebbtide' && version !== undefined) return version;
    } catch {
      // Missing file: try the next place.
    }
  }
  return '0.0.0';
}
