import type { ServiceProxy } from '../../../lib/drivers/local/traffic/service-proxy.ts';

/** Requests of one target group in one wall minute. */
export interface MinuteOfRequests {
  readonly healthyHosts: number;
  readonly requests: number;
  readonly errors: number;
  /** Share of answers within the latency, per cent; null without answers. */
  readonly inTime: number | null;
  readonly p50S: number | null;
  readonly p95S: number | null;
  readonly p99S: number | null;
}

const MINUTE_MS = 60_000;
const KEPT_MINUTES = 180;

/** Requests minute by minute, taken from the proxy at the end of each. */
export class RequestCounts {
  /** Answers within it are in time. CloudWatch keeps all; here one latency is counted, from when it is asked for. */
  latencyS: number;
  /** By the minute's start, wall ms. */
  readonly minutes = new Map<number, MinuteOfRequests>();
  readonly #proxy: () => ServiceProxy | undefined;
  #timer: NodeJS.Timeout | null = null;

  constructor(latencyS: number, proxy: () => ServiceProxy | undefined) {
    this.latencyS = latencyS;
    this.#proxy = proxy;
    this.#wait();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(): void {
    const startMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    this.#timer = setTimeout(
      () => {
        this.#take(startMs);
        this.#wait();
      },
      startMs + MINUTE_MS - Date.now(),
    ).unref();
  }

  /** Without a listener nothing is measured. */
  #take(startMs: number): void {
    const proxy = this.#proxy();
    if (proxy === undefined) return;
    const { requests, slow, failed, p50S, p95S, p99S } = proxy.take();
    this.minutes.set(startMs, {
      healthyHosts: proxy.states.filter((s) => s.health === 'healthy').length,
      requests: requests + failed,
      errors: failed,
      inTime: requests === 0 ? null : 100 * (1 - slow / requests),
      p50S,
      p95S,
      p99S,
    });
    const [oldest] = this.minutes.keys();
    if (this.minutes.size > KEPT_MINUTES && oldest !== undefined) this.minutes.delete(oldest);
  }
}
