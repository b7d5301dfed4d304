import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { EbbError } from '../../kernel/errors.ts';

export interface GuardOptions {
  /** Listening address. */
  readonly host: string;
  /** Token that every request must bear; null: none. */
  readonly token: string | null;
}

/** Least length against guessing. */
const MIN_TOKEN_LENGTH = 16;

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);

/** Throws `usage` for an exposed address without a token, and for a token that is no secret. */
export function checkExposure({ host, token }: GuardOptions): void {
  if (token !== null && token.length < MIN_TOKEN_LENGTH) {
    throw new EbbError('usage', {
      what: 'the token is too short to be a secret',
      got: `${token.length} characters`,
      allowed: `at least ${MIN_TOKEN_LENGTH} characters`,
      next: 'Make one with `openssl rand -hex 32`, or leave it out: the engine makes its own.',
    });
  }
  if (isLoopback(host) || token !== null) return;
  throw new EbbError('usage', {
    what: 'listening on an address that others can reach needs a token',
    got: `host ${host}`,
    allowed: 'a loopback address (127.0.0.1, ::1, localhost), or a token',
    next: 'Leave out --no-token: the engine then makes a token of its own.',
  });
}

/**
 * Checks of every request before the handlers. With a token, a request must bear it; a web page cannot know it. Without
 * one, all users of this machine may ask, but not web pages in their browsers. A name that an attacker points at
 * 127.0.0.1 (DNS rebinding) is not among the hosts. Scripts of other pages are refused by their Origin in both cases.
 */
export function guard(options: GuardOptions): (headers: IncomingHttpHeaders) => void {
  const expected = options.token === null ? null : digest(options.token);
  const hosts = new Set([
    'localhost',
    '127.0.0.1',
    '[::1]',
    options.host.includes(':') ? `[${options.host}]` : options.host,
  ]);
  return (headers) => {
    if (expected !== null) checkToken(headers.authorization, expected);
    else checkHost(headers.host, hosts);
    checkOrigin(headers);
  };
}

/** Digest of a token: equal lengths, so that the time of a comparison reveals nothing. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function checkToken(authorization: string | undefined, expected: Buffer): void {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (given !== undefined && timingSafeEqual(digest(given), expected)) return;
  throw new EbbError('unauthorized', {
    what: given === undefined ? 'this API demands a token' : 'the token is wrong',
    allowed: 'the header `authorization: Bearer TOKEN`',
    next: 'As another user, or on another machine: name a copy of the engine’s token by --token-file or EBB_TOKEN. With curl: -H "authorization: Bearer $(cat .ebb/token)".',
  });
}

function checkHost(host: string | undefined, allowed: ReadonlySet<string>): void {
  const name = hostName(host ?? '');
  if (allowed.has(name)) return;
  throw new EbbError('forbidden', {
    what: 'the request names a host that this API is not known by',
    got: JSON.stringify((host ?? 'no Host header').slice(0, 100)),
    allowed: [...allowed].join(', '),
    next: 'Use http://127.0.0.1; to be reached by another name, start the engine without --no-token.',
  });
}

function checkOrigin(headers: IncomingHttpHeaders): void {
  const { origin } = headers;
  if (origin === undefined) return;
  const from = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1];
  if (from !== undefined && from.toLowerCase() === headers.host?.toLowerCase()) return;
  throw new EbbError('forbidden', {
    what: 'a page of another site may not use this API',
    got: `origin ${JSON.stringify(origin.slice(0, 100))}`,
    allowed: 'requests without an Origin, or from the same host',
    next: 'Call the API from a program, not from a web page.',
  });
}

/** Host name without port, in lower case. */
const hostName = (host: string): string => host.replace(/:\d*$/, '').toLowerCase();
