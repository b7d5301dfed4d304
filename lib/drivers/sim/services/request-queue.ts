/**
 * Requests of a simulated service, in steps of one request's time instead of one by one: a day at 125 requests per
 * second takes tenths of a second. All replicas share one queue, as behind a balancer that sends each request to the
 * replica with the fewest per vCPU (test/support/request-model.ts has each request and each replica). Shares of slow
 * requests agree within two points, but within a few per cent of full load, where chance decides, within ten.
 */
import { randomPoisson } from 'd3-random';
import type { Uniform } from '../../../kernel/random.ts';

export interface RequestRules {
  /** Time of a request on a vCPU, seconds (Tributary, section 2.4.1: 0.1). */
  readonly serviceS: number;
  /** A request that takes longer is slow, seconds (1 there). */
  readonly targetS: number;
  /** Requests that wait per vCPU at most; others are rejected (10 there). */
  readonly queuePerVcpu: number;
}

export const TRIBUTARY_REQUESTS: RequestRules = { serviceS: 0.1, targetS: 1, queuePerVcpu: 10 };

/** Counts of an interval. Slow ones include those that were rejected or lost. */
export interface Served {
  readonly arrived: number;
  readonly slow: number;
  readonly rejected: number;
}

/** Shortest step: requests of microseconds are counted by the hundredth of a second. */
const LEAST_STEP_S = 0.01;

export class RequestQueue {
  readonly #rules: RequestRules;
  readonly #random: Uniform;
  #waiting = 0;

  constructor(rules: RequestRules, random: Uniform) {
    this.#rules = rules;
    this.#random = random;
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Poisson arrivals over so many seconds, on so many vCPUs. O(seconds / max(serviceS, LEAST_STEP_S)). */
  serve(seconds: number, rps: number, vcpus: number): Served {
    const { serviceS, targetS, queuePerVcpu } = this.#rules;
    const steps = Math.max(1, Math.round(seconds / Math.max(serviceS, LEAST_STEP_S)));
    const stepS = seconds / steps;
    const arrivals = randomPoisson.source(this.#random)(rps * stepS);
    const perStep = (vcpus * stepS) / serviceS;
    // A request behind so many others ends in time; its own time is part of the target.
    const inTime = Math.max(0, vcpus * (targetS / serviceS - 1));
    const most = queuePerVcpu * vcpus;
    let [arrived, slow, rejected] = [0, 0, 0];
    for (let step = 0; step < steps; step++) {
      const n = rps > 0 ? arrivals() : 0;
      arrived += n;
      // Requests that begin within this step make room for as many others.
      const taken = Math.min(n, Math.max(0, Math.floor(most + perStep - this.#waiting)));
      const quick = Math.min(taken, shorterThan(inTime, { waiting: this.#waiting, arrivals: n, served: perStep }));
      rejected += n - taken;
      slow += n - quick;
      this.#waiting = Math.max(0, this.#waiting + taken - perStep);
    }
    return { arrived, slow, rejected };
  }

  /** Loses the part of the queue that waits on vCPUs that are gone. Returns how many requests. */
  lose(share: number): number {
    const lost = Math.round(this.#waiting * Math.min(1, Math.max(0, share)));
    this.#waiting -= lost;
    return lost;
  }
}

interface Step {
  readonly waiting: number;
  readonly arrivals: number;
  readonly served: number;
}

/**
 * Arrivals of a step, evenly spaced, that find at most so many waiting: the queue grows or shrinks by (arrivals -
 * served) in its course.
 */
function shorterThan(most: number, { waiting, arrivals, served }: Step): number {
  const growth = 1 - served / arrivals;
  if (!(growth < 0)) return waiting > most ? 0 : growth > 0 ? Math.floor((most - waiting) / growth) : arrivals;
  return waiting <= most ? arrivals : Math.max(0, arrivals - Math.ceil((waiting - most) / -growth));
}
