/**
 * Load generator: requests at a rate that does not depend on the answers (open loop), so that a slow service gets no
 * fewer of them. Arrivals are a Poisson process, whose rate follows a trace where there is one.
 */
import { randomPoisson } from 'd3-random';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Uniform } from '../../../kernel/random.ts';

export interface LoadOptions {
  /** Address of the service, and the path of each request. */
  readonly url: string;
  readonly path: string;
  /** Requests per second at so many wall seconds after the beginning; null: the load is over. */
  readonly rateAt: (s: number) => number | null;
  readonly random: Uniform;
  readonly signal: AbortSignal;
  /** Latency from which an answer is slow, seconds; null: none is. */
  readonly slowS: number | null;
  readonly onProgress?: (so: LoadResult) => void;
}

export interface LoadResult {
  readonly wallS: number;
  readonly sent: number;
  /** Answered with a status below 500. */
  readonly answered: number;
  readonly slow: number;
  /** Answers of 500 and above, by status. */
  readonly errors: Readonly<Record<string, number>>;
  /** Without an answer, by reason. */
  readonly broken: Readonly<Record<string, number>>;
  /** Requests that were due and not sent, because too many were under way. */
  readonly withheld: number;
  /** Latency of answers, seconds; null without any. */
  readonly p50S: number | null;
  readonly p95S: number | null;
  readonly p99S: number | null;
}

const TICK_MS = 10;
const PROGRESS_MS = 1000;
/** Requests under way at once. */
const MOST_UNDER_WAY = 5000;
const MOST_CONNECTIONS = 512;
/** Longest time for an answer. */
const TIMEOUT_MS = 60_000;

export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { url, rateAt, random, signal, onProgress } = options;
  const pool = new Pool(url, { connections: MOST_CONNECTIONS, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });
  const tally = new Load(pool, options);
  const poisson = randomPoisson.source(random);
  const beganMs = performance.now();
  let lastMs = beganMs;
  let toldMs = beganMs;
  while (!signal.aborted) {
    const nowMs = performance.now();
    const rps = rateAt((nowMs - beganMs) / 1000);
    if (rps === null) break;
    const expected = (rps * (nowMs - lastMs)) / 1000;
    lastMs = nowMs;
    for (let due = expected > 0 ? poisson(expected)() : 0; due > 0; due--) tally.send();
    if (nowMs - toldMs >= PROGRESS_MS) {
      toldMs = nowMs;
      onProgress?.(tally.result((nowMs - beganMs) / 1000));
    }
    await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
  }
  const wallS = (performance.now() - beganMs) / 1000;
  await (signal.aborted ? Promise.resolve() : tally.allAnswered());
  await pool.destroy();
  return tally.result(wallS);
}

class Load {
  readonly #pool: Pool;
  readonly #options: LoadOptions;
  readonly #latencies = createHistogram({ lowest: 1, highest: 3600e6, figures: 3 });
  readonly #errors: Record<string, number> = {};
  readonly #broken: Record<string, number> = {};
  #sent = 0;
  #slow = 0;
  #withheld = 0;
  #underWay = 0;

  constructor(pool: Pool, options: LoadOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  send(): void {
    if (this.#underWay >= MOST_UNDER_WAY) {
      this.#withheld += 1;
      return;
    }
    this.#sent += 1;
    this.#underWay += 1;
    void this.#ask().finally(() => (this.#underWay -= 1));
  }

  async #ask(): Promise<void> {
    const beganMs = performance.now();
    try {
      const { statusCode, body } = await this.#pool.request({ path: this.#options.path, method: 'GET' });
      await body.dump();
      const ms = performance.now() - beganMs;
      if (statusCode >= 500) count(this.#errors, String(statusCode));
      else {
        this.#latencies.record(Math.max(1, Math.round(ms * 1000)));
        if (ms / 1000 > (this.#options.slowS ?? Infinity)) this.#slow += 1;
      }
    } catch (error) {
      if (!this.#options.signal.aborted) count(this.#broken, (error as NodeJS.ErrnoException).code ?? String(error));
    }
  }

  async allAnswered(): Promise<void> {
    while (this.#underWay > 0) await delay(TICK_MS);
  }

  result(wallS: number): LoadResult {
    const { count: answered } = this.#latencies;
    const at = (percent: number): number | null => (answered === 0 ? null : this.#latencies.percentile(percent) / 1e6);
    return {
      wallS,
      sent: this.#sent,
      answered,
      slow: this.#slow,
      errors: { ...this.#errors },
      broken: { ...this.#broken },
      withheld: this.#withheld,
      p50S: at(50),
      p95S: at(95),
      p99S: at(99),
    };
  }
}

const count = (of: Record<string, number>, key: string): void => {
  of[key] = (of[key] ?? 0) + 1;
};
