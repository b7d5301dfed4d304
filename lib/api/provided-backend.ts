import { EbbError } from '../kernel/errors.ts';
import type { Backend } from '../ports/backend.ts';

let provided: Backend | null = null;

/**
 * Sets the backend of the handlers. The composition root of a process (local engine, Lambda bootstrap, test) calls this
 * before the first request. A later call replaces it; null removes it.
 */
export function provideBackend(backend: Backend | null): void {
  provided = backend;
}

/** Throws `engine.absent` in a process without composition. */
export function backend(): Backend {
  if (provided !== null) return provided;
  throw new EbbError('engine.absent', {
    what: 'this API has no engine behind it',
    next: 'Start it with `ebb up`; a deployment provides its backend before the first request.',
  });
}
