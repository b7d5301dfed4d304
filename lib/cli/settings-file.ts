import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseDocument } from 'yaml';
import { EbbError } from '../kernel/errors.ts';

/** Most bytes of a settings file: more is another kind of file. */
const MAX_BYTES = 262_144;

/**
 * Scheduler settings in a file (YAML or JSON), unchecked: the keys of `--set`, and own presets. Throws `usage` for
 * anything but a mapping, and the system's error for an unreadable file.
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
