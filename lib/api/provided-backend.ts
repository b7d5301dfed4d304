import { EbbError } from '../kernel/errors.ts';
import type { Backend } from '../ports/backend.ts';

let provided: Backend | null = null;

/**
 * The one place where handlers find what they stand on. The composition root of a process (local engine, Lambda
 * bootstrap, test) calls this before the first request; a later call replaces it, null takes it away.
 */
export function provideBackend(backend: Backend | null): void {
  provided = backend;
}

/** Throws `engine.absent` in a process that was not composed. */
export function backend(): Backend {
  if (provided !== null) return provided;
  throw new EbbError('engine.absent', {
    what: 'this API has no engine behind it',
    next: 'Start it with `ebb up`; a deployment provides its backend before the first request.',
  });
}
