import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { EbbError } from '../kernel/errors.ts';

/** Settings are a page; what is far larger is another file. */
const MAX_BYTES = 262_144;

/**
 * Settings of the scheduler as a file has them (YAML or JSON), unchecked: the same keys as `--set`, and presets of
 * one's own. Throws `usage` for what is no mapping, and what the system says where the file cannot be read.
 */
export function readSettings(path: string, cwd: string): Readonly<Record<string, unknown>> {
  const file = resolve(cwd, path);
  const { size } = statSync(file);
  if (size > MAX_BYTES) throw refused(path, `${size} bytes`, `at most ${MAX_BYTES} bytes`);
  const document = parseDocument(readFileSync(file, 'utf8'), { prettyErrors: true });
  const [fault] = document.errors;
  if (fault !== undefined) throw refused(path, fault.message, 'YAML or JSON');
  const value: unknown = document.toJS({ maxAliasCount: 10 });
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw refused(path, 'no mapping', 'settings by name');
  return value as Readonly<Record<string, unknown>>;
}

const refused = (path: string, got: string, allowed: string): EbbError =>
  new EbbError('usage', {
    what: `${path} is no file of settings`,
    got,
    allowed,
    next: 'see `ebb config` for the settings, e.g. `slotS: 300`',
  });
