/**
 * A token bucket: requests pass at once while there are tokens, and then as tokens come. Of one process, so it keeps
 * one invocation within the account's rate; processes beside it, and other callers of the account, are met by EC2's own
 * throttling and the SDK's retries.
 */
export interface RequestRate {
  /** Tokens of a full bucket. */
  readonly burst: number;
  readonly perS: number;
}

/**
 * RunInstances has 5 request tokens and 2 more a second, and CreateFleet launches with it ("Request throttling for the
 * Amazon EC2 API", https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
 */
export const LAUNCH_RATE: RequestRate = { burst: 5, perS: 2 };

export interface RateClock {
  /** Wall time, ms; it never goes back. */
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

  /** Resolves when the request may be made. Those that wait go in the order in which they came. */
  async take(): Promise<void> {
    const { burst, perS } = this.#rate;
    const nowMs = this.#clock.nowMs();
    this.#tokens = Math.min(burst, this.#tokens + (perS * (nowMs - this.#atMs)) / 1000) - 1;
    this.#atMs = nowMs;
    // Total wait: of this request and of all requests before it.
    if (this.#tokens < 0) await this.#clock.sleep((-this.#tokens / perS) * 1000);
  }
}
