/**
 * Reverse proxy of one service: HTTP/1.1 and WebSockets to healthy replicas, least busy first.
 * A request waits where no replica is healthy or all have as many as they may (`concurrency`): in order of arrival, for
 * a limited time, among a limited number. A request that did not reach its replica goes to another one; one that may
 * have reached it only if repeating it does no harm (RFC 9110, section 9.2.2: idempotent methods) and it has no body.
 * Lifecycle: made -> listening -> routed again and again -> closed.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { EbbError } from '../../../kernel/errors.ts';
import { raw } from '../../../kernel/units.ts';
import type { PeriodMeasures } from '../../../domain/service.ts';
import type { Route, TargetState } from '../../../ports/traffic.ts';
import { forward, upgrade, type Failure } from './forward.ts';
import { Measuring } from './measuring.ts';
import { ReplicaTarget } from './replica-target.ts';

/** Requests that wait at most, for each replica and in all. */
const QUEUED_PER_REPLICA = 100;
const MOST_QUEUED = 10_000;
/** Least time that a request waits for a replica, ms: a new one needs a moment. */
const LEAST_WAIT_MS = 10_000;
/** A request waits for a replica for so many times the latency of the target. */
const WAIT_FACTOR = 10;
const MOST_CLIENTS = 10_000;
/** Replicas that one request is sent to at most. */
const MOST_TRIES = 3;

interface Waiting {
  readonly go: (target: ReplicaTarget | null) => void;
  readonly timer: NodeJS.Timeout;
}

export class ServiceProxy {
  #route: Route;
  readonly #server: Server;
  readonly #targets = new Map<number, ReplicaTarget>();
  readonly #queue: Waiting[] = [];
  readonly #measuring = new Measuring();
  #isClosed = false;

  private constructor(route: Route) {
    this.#route = route;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.maxConnections = MOST_CLIENTS;
    this.#server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket, head));
  }

  /** Throws `port-in-use`. */
  static async open(route: Route): Promise<ServiceProxy> {
    const proxy = new ServiceProxy(route);
    await proxy.#listen();
    proxy.route(route);
    return proxy;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get states(): readonly TargetState[] {
    return [...this.#targets.values()].map((t) => t.state);
  }

  /** Port that its route named; null: any. */
  get port(): number | null {
    return this.#route.port;
  }

  /** True if it listens where this route wants it to. */
  fits({ port }: Route): boolean {
    return port === this.#route.port;
  }

  take(): Omit<PeriodMeasures, 'replicas' | 'fromMs' | 'toMs'> {
    return this.#measuring.take(this.#queue.length);
  }

  route(route: Route): void {
    this.#route = route;
    const wanted = new Map(route.targets.map((t) => [t.replica, t]));
    for (const [replica, target] of this.#targets) {
      const now = wanted.get(replica);
      if (now?.port === target.port) continue;
      this.#targets.delete(replica);
      void target.close();
    }
    for (const [replica, to] of wanted) {
      const known = this.#targets.get(replica);
      if (known === undefined)
        this.#targets.set(replica, new ReplicaTarget(to, route.health, () => this.#serveQueue()));
      else {
        known.mode = to.mode;
        known.checkBy(route.health);
      }
    }
    this.#serveQueue();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const waiting of this.#queue.splice(0)) waiting.go(null);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await Promise.all([...this.#targets.values()].map((t) => t.close()));
    await closed;
  }

  async #listen(): Promise<void> {
    const port = this.#route.port ?? 0;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(this.#route, error)));
      this.#server.listen(port, '127.0.0.1', resolve);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const beganMs = performance.now();
    const tried = new Set<ReplicaTarget>();
    for (;;) {
      const target = await this.#target(request, tried);
      if (response.destroyed) return this.#free(target);
      if (target === null) return this.#refuse(response);
      tried.add(target);
      const failure = await forward(request, response, target.pool);
      this.#free(target);
      if (failure === null) {
        this.#measuring.answered(performance.now() - beganMs, raw(this.#route.target.latencyS) * 1000);
        return;
      }
      if (failure.is === 'client-gone') return;
      if (failure.is === 'refused') target.refused(failure.why);
      if (!isRepeatable(request, failure) || tried.size >= MOST_TRIES) return this.#fail(response, failure);
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const target = await this.#target(request, new Set());
    if (target === null) {
      this.#measuring.failed();
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    await upgrade(request, { socket: socket as Socket, head }, target.pool);
    this.#free(target);
  }

  /** A replica with room, taken; null if none had any in time. */
  #target(request: IncomingMessage, tried: ReadonlySet<ReplicaTarget>): Promise<ReplicaTarget | null> {
    const free = this.#queue.length === 0 || tried.size > 0 ? this.#leastBusy(tried) : null;
    if (free !== null) {
      free.inFlight += 1;
      return Promise.resolve(free);
    }
    if (
      this.#isClosed ||
      this.#queue.length >= Math.min(MOST_QUEUED, QUEUED_PER_REPLICA * Math.max(1, this.#targets.size))
    )
      return Promise.resolve(null);
    const waitMs = Math.max(LEAST_WAIT_MS, WAIT_FACTOR * 1000 * raw(this.#route.target.latencyS));
    return new Promise((resolve) => {
      const waiting: Waiting = {
        go: (target) => {
          clearTimeout(waiting.timer);
          request.off('close', gone);
          resolve(target);
        },
        timer: setTimeout(() => this.#leaveQueue(waiting), waitMs).unref(),
      };
      const gone = (): void => {
        if (request.socket.destroyed) this.#leaveQueue(waiting);
      };
      request.on('close', gone);
      this.#queue.push(waiting);
    });
  }

  #leaveQueue(waiting: Waiting): void {
    const at = this.#queue.indexOf(waiting);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    waiting.go(null);
  }

  /** O(replicas). */
  #leastBusy(tried: ReadonlySet<ReplicaTarget>): ReplicaTarget | null {
    const { concurrency } = this.#route;
    const most = concurrency ?? Infinity;
    let best: ReplicaTarget | null = null;
    for (const target of this.#targets.values()) {
      if (target.mode !== 'serve' || !target.isHealthy || target.inFlight >= most || tried.has(target)) continue;
      if (best === null || target.inFlight < best.inFlight) best = target;
    }
    return best;
  }

  #free(target: ReplicaTarget | null): void {
    if (target === null) return;
    target.inFlight -= 1;
    this.#serveQueue();
  }

  #serveQueue(): void {
    while (this.#queue.length > 0 && !this.#isClosed) {
      const target = this.#leastBusy(NONE_TRIED);
      if (target === null) return;
      const next = this.#queue.shift();
      target.inFlight += 1;
      next?.go(target);
    }
  }

  #refuse(response: ServerResponse): void {
    const { service } = this.#route;
    const healthy = [...this.#targets.values()].filter((t) => t.isHealthy).length;
    const why =
      healthy === 0 ? `no replica of ${service} is healthy` : `all ${healthy} replicas of ${service} are busy`;
    this.#measuring.failed();
    answer(response, 503, why, { 'retry-after': '1' });
  }

  #fail(response: ServerResponse, { why }: Failure): void {
    this.#measuring.failed();
    answer(response, 502, `the replica of ${this.#route.service} gave no answer: ${why}`);
  }
}

const NONE_TRIED: ReadonlySet<ReplicaTarget> = new Set();
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);

/** True if the request can be sent to another replica without doing anything twice. */
const isRepeatable = ({ method = 'GET' }: IncomingMessage, { is, hasBodyBegun }: Failure): boolean =>
  !hasBodyBegun && (is === 'refused' || (is === 'no-answer' && IDEMPOTENT.has(method)));

/** An answer of the proxy itself (RFC 9457); a broken connection where the replica's answer has begun. */
function answer(response: ServerResponse, status: number, detail: string, headers = {}): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const title = status === 503 ? 'Service Unavailable' : 'Bad Gateway';
  const body = JSON.stringify({ type: 'about:blank', title, status, detail });
  response.writeHead(status, { 'content-type': 'application/problem+json', ...headers });
  response.end(body);
}

function cannotListen({ service, port }: Route, error: NodeJS.ErrnoException): EbbError {
  return new EbbError('port-in-use', {
    what: `the service ${service} cannot listen on its port`,
    got: `127.0.0.1:${port ?? 0}: ${error.code ?? error.message}`,
    next: 'choose another `port` in the service file, or leave it out',
    cause: error,
  });
}
