/**
 * Token bucket: requests pass at once while there are tokens, then at the refill rate. It keeps one process within the
 * account's rate. EC2's own throttling and the SDK's retries handle parallel processes and other callers.
 */
export interface RequestRate {
  /** Tokens of a full bucket. */
  readonly burst: number;
  readonly perS: number;
}

/**
 * Request tokens of RunInstances, which CreateFleet shares: 5, and 2 more per second ("Request throttling for the
 * Amazon EC2 API", https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
 */
export const LAUNCH_RATE: RequestRate = { burst: 5, perS: 2 };

export interface RateClock {
  /** Monotonic wall time, ms. */
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

const WALL: RateClock = {
  nowMs: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

export class TokenBucket {
  readonly #rate: RequestRate;
  readonly #clock: RateClock;
  #tokens: number;
  #atMs: number;

  constructor(rate: RequestRate, clock: RateClock = WALL) {
    this.#rate = rate;
    this.#clock = clock;
    this.#tokens = rate.burst;
    this.#atMs = clock.nowMs();
  }

  /** Resolves when the request may be sent. Waiting requests keep their order. */
  async take(): Promise<void> {
    const { burst, perS } = this.#rate;
    const nowMs = this.#clock.nowMs();
    this.#tokens = Math.min(burst, this.#tokens + (perS * (nowMs - this.#atMs)) / 1000) - 1;
    this.#atMs = nowMs;
    // Wait for this request and all before it.
    if (this.#tokens < 0) await this.#clock.sleep((-this.#tokens / perS) * 1000);
  }
}
