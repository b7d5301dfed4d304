import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  secretsIn,
  secretValue,
  secretVariables,
  variableOf,
  withoutSecrets,
} from '../../../../../lib/drivers/local/fleet/secrets.ts';

describe('secrets of local mode', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'ebb-secrets-'));
    mkdirSync(path.join(dir, 'secrets'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const put = (name: string, value: string, mode = 0o600): void => {
    const file = path.join(dir, 'secrets', name);
    writeFileSync(file, value);
    chmodSync(file, mode);
  };

  it('are the content of a file that its owner alone may read, without its line end', () => {
    put('db-password', 'of file\n');
    expect(secretValue(dir, 'db-password', { EBB_SECRET_DB_PASSWORD: 'of environment' })).toBe('of file');
    expect(secretVariables(dir, { A: 'db-password', B: 'ssm:db-password' }, {})).toEqual({
      A: 'of file',
      B: 'of file',
    });
  });

  it('are else in the environment of the engine, which tasks do not inherit', () => {
    const environment = { EBB_SECRET_DB_PASSWORD: 'of environment', HOME: '/h' };
    expect(variableOf('db-password')).toBe('EBB_SECRET_DB_PASSWORD');
    expect(secretValue(dir, 'db-password', environment)).toBe('of environment');
    expect(withoutSecrets(environment)).toEqual({ HOME: '/h' });
    expect(secretsIn(environment)).toEqual({ EBB_SECRET_DB_PASSWORD: 'of environment' });
  });

  it.each([
    ['is missing', () => undefined, /is missing: no file .*db-password, and no EBB_SECRET_DB_PASSWORD/],
    ['is readable by others', () => put('db-password', 'hidden-value', 0o644), /others may read .*chmod 600/],
    ['is a folder', () => mkdirSync(path.join(dir, 'secrets', 'db-password')), /is no file/],
    ['is too large', () => put('db-password', 'hidden-value'.repeat(10_000)), /more than 65536 bytes/],
    ['has a NUL', () => put('db-password', 'hidden-value\0'), /NUL/],
  ])('say what is wrong when a secret %s, and never its value', (_, prepare, message) => {
    prepare();
    const ask = (): string => secretValue(dir, 'db-password', {});
    expect(ask).toThrow(message);
    expect(ask).not.toThrow(/hidden-value/);
  });
});
