import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { EbbError } from '../../kernel/errors.ts';

/** Certificate chain and private key, PEM. */
export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Reads and checks the files. Null if none is named. Throws `usage`. */
export function tlsFiles(paths: { readonly cert?: string; readonly key?: string }): TlsFiles | null {
  const { cert, key } = paths;
  if (cert === undefined && key === undefined) return null;
  if (cert === undefined || key === undefined) {
    throw new EbbError('usage', {
      what: 'TLS takes a certificate and its private key',
      got: cert === undefined ? '--tls-key alone' : '--tls-cert alone',
      allowed: 'both --tls-cert and --tls-key, or neither',
      next: `add --tls-${cert === undefined ? 'cert' : 'key'} FILE (PEM)`,
    });
  }
  const files = { cert: contentOf(cert, '--tls-cert'), key: contentOf(key, '--tls-key') };
  try {
    createSecureContext(files);
    return files;
  } catch (cause) {
    throw new EbbError('usage', {
      what: 'the certificate and the key cannot be used together',
      // OpenSSL's messages quote nothing of the files.
      got: cause instanceof Error ? cause.message : 'unusable files',
      allowed: 'a certificate (or chain) and its unencrypted private key, both PEM',
      next: 'correct --tls-cert and --tls-key',
      cause,
    });
  }
}

function contentOf(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new EbbError('usage', {
      what: `the file of ${option} cannot be read`,
      got: cause instanceof Error ? cause.message : path,
      next: `correct ${option}`,
      cause,
    });
  }
}
