/**
 * Load balancer of simulated services: requests come as a trace has them, and each service's healthy replicas serve
 * them from one queue (request-queue.ts). A replica serves from the moment that its process runs.
 * Lifecycle: made -> asked again and again, at times that never fall.
 */
import type { Clock } from '../../../kernel/clock.ts';
import { randomStream } from '../../../kernel/random.ts';
import { raw, vcpusIn, type EpochMs } from '../../../kernel/units.ts';
import type { PeriodMeasures, ServiceSpec } from '../../../domain/service.ts';
import type { ServiceUse } from '../../../report/outcome.ts';
import type { Measured, Period, Route, TargetState, Traffic } from '../../../ports/traffic.ts';
import { RequestQueue } from './request-queue.ts';

/** A service of a simulation, with the requests that reach it. */
export interface SimulatedService {
  readonly spec: ServiceSpec;
  /** Requests in each minute from the beginning; NaN: none come, and none are measured. */
  readonly perMinute: Float64Array;
  /** Time of a request on a vCPU, seconds. */
  readonly serviceS: number;
  /** Requests that wait for a vCPU at most; others fail. */
  readonly queuePerVcpu: number;
}

export type RequestFigures = Omit<ServiceUse, 'interruptions' | 'billedUsd' | 'onDemandUsd'>;

const MINUTE_MS = 60_000;

export class SimTraffic implements Traffic {
  readonly #clock: Clock;
  readonly #load = new Map<string, Load>();

  constructor(
    services: readonly SimulatedService[],
    { clock, fromMs, seed }: { readonly clock: Clock; readonly fromMs: EpochMs; readonly seed: number },
  ) {
    this.#clock = clock;
    for (const of of services) this.#load.set(of.spec.name, new Load(of, raw(fromMs), seed));
  }

  get figures(): readonly RequestFigures[] {
    return [...this.#load.values()].map((load) => load.figures);
  }

  async route(routes: readonly Route[], kept: ReadonlySet<string>): Promise<void> {
    const now = raw(this.#clock.now());
    for (const [name, load] of this.#load) {
      if (!kept.has(name)) load.route(routes.find((r) => r.service === name)?.targets ?? [], now);
    }
  }

  async states(service: string): Promise<ReadonlyMap<number, TargetState>> {
    return this.#load.get(service)?.states ?? new Map();
  }

  async measures({ service }: Measured, { fromMs, toMs }: Period): Promise<Omit<PeriodMeasures, 'replicas'> | null> {
    return this.#load.get(service)?.take(fromMs, toMs) ?? null;
  }

  measuredUntil(nowMs: EpochMs): EpochMs {
    return nowMs;
  }

  async address(): Promise<string | null> {
    return null;
  }

  async port(taken: ReadonlySet<number>): Promise<number> {
    let port = 20_000;
    while (taken.has(port)) port += 1;
    return port;
  }
}

/** Requests of one service. */
class Load {
  readonly #of: SimulatedService;
  readonly #queue: RequestQueue;
  readonly #vcpus: number;
  #nowMs: number;
  readonly #fromMs: number;
  #targets: Route['targets'] = [];
  #taken = { requests: 0, slow: 0, failed: 0, isKnown: false };
  readonly #total = { requests: 0, slow: 0, failed: 0, replicaHours: 0 };

  constructor(of: SimulatedService, fromMs: number, seed: number) {
    this.#of = of;
    this.#fromMs = fromMs;
    this.#nowMs = fromMs;
    const { spec, serviceS, queuePerVcpu } = of;
    const rules = { serviceS, targetS: raw(spec.target.latencyS), queuePerVcpu };
    this.#queue = new RequestQueue(rules, randomStream(seed, `requests ${spec.name}`));
    this.#vcpus = spec.replica.stages.reduce((sum, { resources }) => sum + vcpusIn(resources.cpu), 0);
  }

  get figures(): RequestFigures {
    const { name, target } = this.#of.spec;
    return { service: name, latencyS: raw(target.latencyS), target: target.percent / 100, ...this.#total };
  }

  get states(): ReadonlyMap<number, TargetState> {
    return new Map(
      this.#targets.map(({ replica }) => [replica, { replica, health: 'healthy', inFlight: 0, detail: null }]),
    );
  }

  route(targets: Route['targets'], now: number): void {
    this.#serveUntil(now);
    const before = this.#serving;
    const there = new Set(targets.map((t) => t.replica));
    // Those that were drained first have nobody waiting.
    const lost = this.#targets.filter((t) => t.mode === 'serve' && !there.has(t.replica)).length;
    this.#targets = targets;
    if (lost === 0 || before === 0) return;
    const requests = this.#queue.lose(lost / before);
    this.#count({ requests, slow: requests, failed: requests });
  }

  get #serving(): number {
    return this.#targets.filter((t) => t.mode === 'serve').length;
  }

  take(fromMs: EpochMs, toMs: EpochMs): Omit<PeriodMeasures, 'replicas'> | null {
    this.#serveUntil(raw(toMs));
    const { isKnown, ...counts } = this.#taken;
    this.#taken = { requests: 0, slow: 0, failed: 0, isKnown: false };
    if (!isKnown) return null;
    const answered = counts.requests - counts.failed;
    const quantiles = { p50S: null, p95S: null, p99S: null };
    // The queue's slow requests include those that failed.
    const slow = Math.max(0, counts.slow - counts.failed);
    return { fromMs, toMs, ...counts, requests: answered, slow, ...quantiles, queued: this.#queue.waiting };
  }

  /** Minute by minute, at the rate of each. */
  #serveUntil(until: number): void {
    while (this.#nowMs < until) {
      const minute = Math.floor((this.#nowMs - this.#fromMs) / MINUTE_MS);
      const next = Math.min(until, this.#fromMs + (minute + 1) * MINUTE_MS);
      const seconds = (next - this.#nowMs) / 1000;
      const requests = this.#of.perMinute[minute] ?? 0;
      const replicas = this.#serving;
      const { arrived, slow, rejected } = this.#queue.serve(
        seconds,
        Number.isNaN(requests) ? 0 : requests / 60,
        replicas * this.#vcpus,
      );
      if (!Number.isNaN(requests)) this.#taken.isKnown = true;
      this.#count({ requests: arrived, slow, failed: rejected });
      this.#total.replicaHours += (replicas * seconds) / 3600;
      this.#nowMs = next;
    }
  }

  #count({
    requests,
    slow,
    failed,
  }: {
    readonly requests: number;
    readonly slow: number;
    readonly failed: number;
  }): void {
    for (const sums of [this.#total, this.#taken]) {
      sums.requests += requests;
      sums.slow += slow;
      sums.failed += failed;
    }
  }
}
