/**
 * Load balancer of local mode: a reverse proxy on loopback, in a thread of its own.
 * Lifecycle: made -> the thread begins with the first route -> closed. Without services there is no thread.
 */
import { createServer, type AddressInfo } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { EbbError } from '../../../kernel/errors.ts';
import type { EpochMs } from '../../../kernel/units.ts';
import type { PeriodMeasures } from '../../../domain/service.ts';
import { unrouted } from '../../../ports/traffic.ts';
import type { Located, Measured, Period, Route, TargetState, Traffic } from '../../../ports/traffic.ts';
import type { CallName, FromTraffic, TrafficCalls } from './traffic-messages.ts';

const NONE: ReadonlySet<string> = new Set();

interface Awaiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
}

export class LocalTraffic implements Traffic {
  #worker: Worker | null = null;
  #calls = 0;
  readonly #open = new Map<number, Awaiting>();
  /** Services that could not have their route the last time. */
  #refused: ReadonlyMap<string, EbbError> = new Map();

  async route(routes: readonly Route[], kept: ReadonlySet<string> = NONE): Promise<void> {
    if (routes.length === 0 && this.#worker === null) return;
    const refused = await this.#call('route', { routes, kept: [...kept] });
    this.#refused = new Map(refused.map((r) => [r.service, new EbbError(r.code, r.facts)]));
    for (const error of this.#refused.values()) throw error;
  }

  async states(service: string, located: readonly Located[]): Promise<ReadonlyMap<number, TargetState>> {
    if (this.#worker === null) return new Map();
    const states = await this.#call('states', service);
    const refused = this.#refused.get(service);
    if (states.length > 0 || refused === undefined) return new Map(states.map((s) => [s.replica, s]));
    return new Map(located.map(({ replica }) => [replica, unrouted(replica, refused)]));
  }

  async measures({ service }: Measured, { fromMs, toMs }: Period): Promise<Omit<PeriodMeasures, 'replicas'> | null> {
    const taken = this.#worker === null ? null : await this.#call('take', service);
    return taken === null ? null : { fromMs, toMs, ...taken };
  }

  measuredUntil(nowMs: EpochMs): EpochMs {
    return nowMs;
  }

  async address(service: string): Promise<string | null> {
    return this.#worker === null ? null : this.#call('address', service);
  }

  /**
   * A port that nobody has now. Should another take it before the replica listens, that one fails; the next has
   * another.
   */
  async port(taken: ReadonlySet<number>): Promise<number> {
    for (;;) {
      const port = await freePort();
      if (!taken.has(port)) return port;
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === null) return;
    await this.#call('close', null).catch(() => undefined);
    this.#worker = null;
    worker.ref();
    await worker.terminate();
  }

  #call<Name extends CallName>(call: Name, given: TrafficCalls[Name]['given']): Promise<TrafficCalls[Name]['answer']> {
    const worker = (this.#worker ??= this.#begin());
    const id = (this.#calls += 1);
    return new Promise((resolve, reject) => {
      // The thread keeps the process alive while somebody waits for it, and only then.
      if (this.#open.size === 0) worker.ref();
      this.#open.set(id, { resolve, reject });
      worker.postMessage({ id, call, given });
    });
  }

  #begin(): Worker {
    const worker = new Worker(new URL(`./traffic-thread${extname(fileURLToPath(import.meta.url))}`, import.meta.url), {
      name: 'traffic',
    });
    worker.on('message', (reply: FromTraffic) => {
      const call = this.#open.get(reply.id);
      this.#open.delete(reply.id);
      if (this.#open.size === 0) worker.unref();
      if ('error' in reply) call?.reject(new EbbError(reply.error.code, reply.error.facts));
      else call?.resolve(reply.answer as never);
    });
    worker.on('error', (error) => this.#ended(worker, error));
    worker.on('exit', () => this.#ended(worker, new Error('the proxy has ended')));
    worker.unref();
    return worker;
  }

  /** The next call begins another thread, which the next round gives its routes. */
  #ended(worker: Worker, error: unknown): void {
    if (this.#worker === worker) this.#worker = null;
    for (const call of this.#open.values()) call.reject(error);
    this.#open.clear();
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
