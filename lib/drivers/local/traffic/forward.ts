/** One request through to a replica, and its answer back; the HTTP is undici's and Node's. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Dispatcher, Pool } from 'undici';
import { messageOf } from '../../../kernel/errors.ts';
import { isRefused } from './replica-target.ts';

/** Why a request has no answer. */
export interface Failure {
  /** refused: it never reached the replica. no-answer: it may have. broken: the answer had begun. */
  readonly is: 'refused' | 'no-answer' | 'broken' | 'client-gone';
  readonly why: string;
  /** True: part of its body was read and cannot be sent again. */
  readonly hasBodyBegun: boolean;
}

/** Headers of one connection alone (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
]);

type Headers = Record<string, string | string[]>;

/** Null: the answer is complete. */
export function forward(request: IncomingMessage, response: ServerResponse, pool: Pool): Promise<Failure | null> {
  return new Promise((resolve) => {
    const body = hasBody(request) ? request : null;
    const answer = new Answer(request, response, { body, done: resolve });
    response.once('close', answer.clientGone);
    pool.dispatch(
      {
        path: request.url ?? '/',
        method: request.method ?? 'GET',
        headers: forwardedHeaders(request),
        body,
      },
      answer,
    );
  });
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Handler of undici's events for one request. */
class Answer implements Dispatcher.DispatchHandler {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #body: IncomingMessage | null;
  readonly #done: (failure: Failure | null) => void;
  #controller: Dispatcher.DispatchController | null = null;
  #isOver = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { body, done }: { readonly body: IncomingMessage | null; readonly done: (failure: Failure | null) => void },
  ) {
    this.#request = request;
    this.#response = response;
    this.#body = body;
    this.#done = done;
  }

  readonly clientGone = (): void => {
    if (this.#isOver || this.#response.writableFinished) return;
    this.#end({ is: 'client-gone', why: 'the client closed the connection', hasBodyBegun: true });
    this.#controller?.abort(new Error('the client closed the connection'));
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('the client closed the connection'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    // Interim answers are for this connection alone.
    if (status < 200 || this.#isOver) return;
    this.#response.writeHead(status, endToEnd(headers));
    this.#response.on('drain', () => controller.resume());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isOver && !this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#response.end();
    this.#end(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    const is = this.#response.headersSent ? 'broken' : isRefused(error) ? 'refused' : 'no-answer';
    const hasBodyBegun =
      this.#body !== null && (this.#request.readableDidRead || this.#request.readableFlowing !== null);
    this.#end({ is, why: messageOf(error), hasBodyBegun });
  }

  #end(failure: Failure | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#response.off('close', this.clientGone);
    this.#done(failure);
  }
}

/** Headers for the replica, with the client's address, host and protocol. */
function forwardedHeaders({ headers, socket }: IncomingMessage): Headers {
  const before = headers['x-forwarded-for'];
  const client = socket.remoteAddress ?? 'unknown';
  return {
    ...endToEnd(headers as Headers),
    'x-forwarded-for': before === undefined ? client : `${String(before)}, ${client}`,
    'x-forwarded-host': headers.host ?? '',
    'x-forwarded-proto': 'http',
  };
}

function endToEnd(headers: Headers): Headers {
  const { connection } = headers;
  const named =
    connection === undefined
      ? NO_NAMES
      : new Set(
          String(connection)
            .toLowerCase()
            .split(/\s*,\s*/),
        );
  const kept: Headers = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !HOP_BY_HOP.has(name) && !named.has(name)) kept[name] = value;
  }
  return kept;
}
const NO_NAMES: ReadonlySet<string> = new Set();

/** A WebSocket, or any other protocol that a connection changes to. Resolves when it is over. */
export async function upgrade(
  request: IncomingMessage,
  { socket, head }: { readonly socket: Socket; readonly head: Buffer },
  pool: Pool,
): Promise<void> {
  socket.on('error', () => socket.destroy());
  try {
    const answer = await pool.upgrade({
      path: request.url ?? '/',
      method: request.method ?? 'GET',
      headers: forwardedHeaders(request),
      protocol: request.headers.upgrade ?? 'websocket',
    });
    const lines = Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((v) => `${name}: ${v}\r\n`),
    );
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
    if (head.length > 0) answer.socket.write(head);
    await Promise.all([piped(socket, answer.socket), piped(answer.socket, socket)]);
  } catch {
    socket.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  }
}

const piped = (from: NodeJS.ReadableStream, to: NodeJS.WritableStream): Promise<void> =>
  new Promise((resolve) => pipeline(from, to, () => resolve()));
