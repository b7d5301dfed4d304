/**
 * HTTP server of local mode: node:http in front of the handlers of a deployment.
 *
 * Lifecycle: `serveApi` resolves when the server listens and answers. `close` accepts no new requests, ends event
 * streams, and gives open requests a grace period. Requests are independent of one another; no request or client can
 * end the process.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { EbbError } from '../../kernel/errors.ts';
import type { Identity } from '../../domain/caller.ts';
import type { ApiRequest, ApiResponse, Dispatch } from '../dispatch.ts';
import { isDefect, problemOf } from '../problem.ts';
import { MAX_BODY_BYTES } from '../requests.ts';
import { tooLarge } from '../middleware.ts';
import { checkExposure, guard, isLoopback } from './guard.ts';
import { Peers } from './peers.ts';
import { isEventStream, keepStreaming } from './sse.ts';
import type { TlsFiles } from './tls.ts';

export interface ServeOptions {
  readonly dispatch: Dispatch;
  /** Default 127.0.0.1. Addresses other than loopback require a token. */
  readonly host?: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token?: string | null;
  /** Absent: plain HTTP. */
  readonly tls?: TlsFiles | null;
  readonly maxBodyBytes?: number;
  /** Most open event streams. */
  readonly maxStreams?: number;
  /** Log for faults of the server itself; default: standard error. */
  readonly log?: (line: string) => void;
}

export interface ApiServer {
  /** URL with the actual port, without a path. */
  readonly url: string;
  readonly port: number;
  /** Answers open requests with an error and ends event streams, after their call was ended (main-watch.ts). */
  dropOpen(): void;
  /** Idempotent. */
  close(graceMs?: number): Promise<void>;
}

/** Longest time for a client to send its headers, and its whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 10_000;
const MAX_HEADER_BYTES = 16_384;
/**
 * Multiple of the body limit that is read and discarded, so that the client can finish sending and read the refusal.
 * Larger bodies are cut off.
 */
const DISCARD_FACTOR = 16;
const DEFAULT_MAX_STREAMS = 100;
const DEFAULT_GRACE_MS = 2_000;
const SWEEP_MS = 20;

/** Throws `usage` for an exposed address without a token, `port-in-use` when the address is taken. */
export async function serveApi(options: ServeOptions): Promise<ApiServer> {
  const host = options.host ?? '127.0.0.1';
  const token = options.token ?? null;
  checkExposure({ host, token });
  const door = new Door(options, guard({ host, token }));
  const limits = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const answer = (request: IncomingMessage, response: ServerResponse): void => void door.answer(request, response);
  const tls = options.tls ?? null;
  const server = tls === null ? createServer(limits, answer) : createTlsServer({ ...limits, ...tls }, answer);
  server.on('clientError', answerGarbage);
  const { port, address } = await listen(server, host, options.port);
  let closing: Promise<void> | null = null;
  return {
    url: `${tls === null ? 'http' : 'https'}://${urlHost(host, tls === null ? address : host)}:${port}`,
    port,
    dropOpen: () => door.dropOpen(),
    close: (graceMs = DEFAULT_GRACE_MS) => (closing ??= shut(server, door, graceMs)),
  };
}

/**
 * Host of the URL. A name has several addresses, and others may listen at those that the server has not taken. A
 * certificate needs the name.
 */
function urlHost(host: string, address: string): string {
  const shown = host === 'localhost' ? address : host;
  return shown.includes(':') ? `[${shown}]` : shown;
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

function listenError(cause: NodeJS.ErrnoException, host: string, port: number): EbbError {
  const got = `${host}:${port} (${cause.code ?? cause.message})`;
  if (cause.code === 'EADDRINUSE') {
    return new EbbError('port-in-use', {
      what: 'another program listens on this address',
      got,
      allowed: 'a free port; 0 takes any',
      next: `Use the engine that runs there, or start this one with --port ${port === 65_535 ? port - 1 : port + 1}.`,
      cause,
    });
  }
  return new EbbError('usage', {
    what: 'this address cannot be listened on',
    got,
    allowed: isLoopback(host) ? 'a port from 1024 to 65535' : 'an address of this machine, a port from 1024 to 65535',
    next: 'Choose another --host or --port.',
    cause,
  });
}

async function shut(server: Server, door: Door, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  door.endStreams();
  // Both sides keep an answered connection alive; only then is it idle.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(timer);
}

/** Answers on the socket, for input without a request: not HTTP, too large headers, or too slow. */
function answerGarbage(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

class Door {
  readonly #options: ServeOptions;
  readonly #guard: ReturnType<typeof guard>;
  readonly #maxBodyBytes: number;
  readonly #peers = new Peers();
  readonly #streams = new Set<AbortController>();
  readonly #open = new Set<ServerResponse>();

  constructor(options: ServeOptions, check: ReturnType<typeof guard>) {
    this.#options = options;
    this.#guard = check;
    this.#maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES;
  }

  endStreams(): void {
    for (const stream of this.#streams) stream.abort();
  }

  dropOpen(): void {
    const error = new EbbError('internal', {
      what: 'a request kept the engine from answering, and was ended with all that were open',
      next: 'send it again; when this comes again, report the request',
    });
    for (const outgoing of this.#open) this.#refuse(outgoing, error);
  }

  /** Answers one request. Never rejects. */
  async answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    // Broken connections while writing are the client's affair.
    outgoing.on('error', () => outgoing.destroy());
    this.#open.add(outgoing);
    outgoing.once('close', () => this.#open.delete(outgoing));
    try {
      this.#guard(incoming.headers);
      const body = await readBody(incoming, this.#maxBodyBytes);
      if (body === 'gone') return;
      const request = requestOf(incoming, body, await this.#callerOf(incoming));
      const response = await this.#options.dispatch(request);
      if (isEventStream(response) && incoming.headers.accept?.includes('text/event-stream') === true) {
        await this.#stream(outgoing, request, response);
      } else send(outgoing, response);
    } catch (error) {
      this.#refuse(outgoing, error);
    }
  }

  /** Caller of a change. Reads are not recorded, so their caller is not looked up. */
  async #callerOf(incoming: IncomingMessage): Promise<Identity | null> {
    return incoming.method === 'GET' || incoming.method === 'HEAD' ? null : this.#peers.userOf(incoming.socket);
  }

  async #stream(outgoing: ServerResponse, request: ApiRequest, first: ApiResponse): Promise<void> {
    if (this.#streams.size >= (this.#options.maxStreams ?? DEFAULT_MAX_STREAMS)) {
      throw new EbbError('too-many-requests', {
        what: 'too many event streams are open',
        allowed: `${this.#options.maxStreams ?? DEFAULT_MAX_STREAMS} at once`,
        next: 'Close one, or ask without `accept: text/event-stream` for one batch at a time.',
      });
    }
    const controller = new AbortController();
    this.#streams.add(controller);
    outgoing.once('close', () => controller.abort());
    outgoing.writeHead(first.status, first.headers);
    try {
      await keepStreaming(outgoing, { dispatch: this.#options.dispatch, request, first }, controller.signal);
    } finally {
      this.#streams.delete(controller);
    }
  }

  #refuse(outgoing: ServerResponse, error: unknown): void {
    const requestId = randomUUID();
    if (isDefect(error)) {
      const log = this.#options.log ?? ((line: string) => process.stderr.write(`${line}\n`));
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      log(JSON.stringify({ level: 'error', requestId, error: text }));
    }
    if (outgoing.headersSent || outgoing.destroyed) {
      outgoing.destroy();
      return;
    }
    const problem = problemOf(error, requestId);
    const headers: Record<string, string> = {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'x-request-id': requestId,
    };
    if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
    if (problem.status === 429) headers['retry-after'] = '1';
    // The rest of the request is not read.
    headers['connection'] = 'close';
    send(outgoing, { status: problem.status, headers, body: JSON.stringify(problem) });
  }
}

function send(outgoing: ServerResponse, response: ApiResponse): void {
  const length = Buffer.byteLength(response.body);
  outgoing.writeHead(response.status, { ...response.headers, 'content-length': length });
  outgoing.end(response.body);
}

function requestOf(incoming: IncomingMessage, body: Uint8Array | null, caller: Identity | null): ApiRequest {
  const headers: Record<string, string> = {};
  for (const name in incoming.headers) {
    const value = incoming.headers[name];
    if (value !== undefined) headers[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return {
    method: incoming.method ?? 'GET',
    path: incoming.url ?? '/',
    headers,
    body,
    sourceIp: incoming.socket.remoteAddress ?? '',
    ...(caller === null ? {} : { caller }),
  };
}

/** Whole body, or null without one; 'gone' if the client left. Throws `body-too-large`. */
function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array | null | 'gone'> {
  const { headers } = incoming;
  const declared = headers['content-length'];
  if (declared === undefined && headers['transfer-encoding'] === undefined) return Promise.resolve(null);
  const patience = maxBytes * DISCARD_FACTOR;
  if (declared !== undefined && Number(declared) > patience)
    return Promise.reject(tooLarge(Number(declared), maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.byteLength;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        if (size > patience) reject(tooLarge(null, maxBytes));
      }
    });
    incoming.on('end', () => {
      if (size > maxBytes) reject(tooLarge(size, maxBytes));
      else resolve(chunks.length === 1 ? (chunks[0] ?? null) : Buffer.concat(chunks));
    });
    incoming.on('error', () => resolve('gone'));
    incoming.on('close', () => resolve('gone'));
  });
}
