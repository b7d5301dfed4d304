/**
 * A replica as the proxy sees it: its connections, its requests in flight, its checks.
 * Lifecycle: made -> checked until closed. Its first checks come quickly, so that a replica serves as soon as it can.
 */
import { Pool } from 'undici';
import { messageOf } from '../../../kernel/errors.ts';
import { raw } from '../../../kernel/units.ts';
import type { HealthCheck } from '../../../domain/service.ts';
import type { Target, TargetState } from '../../../ports/traffic.ts';

/** Time between checks of a replica that has never been healthy, ms. */
const FIRST_CHECKS_MS = 250;
/** Connections of one replica without a limit of its own. */
const MOST_CONNECTIONS = 1024;

export class ReplicaTarget {
  readonly pool: Pool;
  readonly replica: number;
  readonly port: number;
  mode: Target['mode'];
  inFlight = 0;
  #health: TargetState['health'] = 'unknown';
  #detail: string | null = null;
  #failures = 0;
  #check: HealthCheck;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  readonly #onHealthy: () => void;

  constructor(target: Target, check: HealthCheck, onHealthy: () => void) {
    this.replica = target.replica;
    this.port = target.port;
    this.mode = target.mode;
    this.#check = check;
    this.#onHealthy = onHealthy;
    this.pool = new Pool(`http://127.0.0.1:${target.port}`, { connections: MOST_CONNECTIONS, pipelining: 1 });
    void this.#run();
  }

  get isHealthy(): boolean {
    return this.#health === 'healthy';
  }

  get state(): TargetState {
    return { replica: this.replica, health: this.#health, inFlight: this.inFlight, detail: this.#detail };
  }

  /** Rules of a changed service. */
  checkBy(check: HealthCheck): void {
    this.#check = check;
  }

  /** A request found nobody there: no check has to say so again. */
  refused(why: string): void {
    this.#turn('unhealthy', why);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#next(FIRST_CHECKS_MS);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.pool.destroy();
  }

  async #run(): Promise<void> {
    const why = await this.#ask();
    if (this.#isClosed) return;
    if (why === null) {
      this.#failures = 0;
      this.#turn('healthy', null);
    } else {
      this.#failures += 1;
      // A replica that serves may miss a check or two; one that does not has nothing to lose.
      if (!this.isHealthy || this.#failures >= this.#check.failures) this.#turn('unhealthy', why);
    }
    const everyMs = raw(this.#check.intervalS) * 1000;
    this.#next(this.isHealthy ? everyMs : Math.min(everyMs, FIRST_CHECKS_MS));
  }

  #next(ms: number): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#run(), ms).unref();
  }

  #turn(health: TargetState['health'], detail: string | null): void {
    const wasHealthy = this.isHealthy;
    this.#health = health;
    this.#detail = detail;
    if (this.isHealthy && !wasHealthy) this.#onHealthy();
  }

  /** Null if the replica is healthy, else why not. */
  async #ask(): Promise<string | null> {
    const { path, timeoutS } = this.#check;
    try {
      const { statusCode, body } = await this.pool.request({
        path,
        method: 'GET',
        signal: AbortSignal.timeout(raw(timeoutS) * 1000),
      });
      await body.dump();
      return statusCode < 400 ? null : `GET ${path} answered ${statusCode}`;
    } catch (error) {
      return `GET ${path} failed: ${faultText(error, timeoutS)}`;
    }
  }
}

function faultText(error: unknown, timeoutS: HealthCheck['timeoutS']): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${raw(timeoutS)} s`;
  return isRefused(error) ? 'nobody listens on its port' : messageOf(error);
}

export const isRefused = (error: unknown): boolean =>
  error instanceof Error && (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
