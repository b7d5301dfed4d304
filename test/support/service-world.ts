/**
 * A world for the controller of services without an engine: jobs of replicas start after a while, their processes do as
 * the service's command says, instances are lost as a test says. The controller acts on it through its ports alone.
 */
import type { ScalingPolicy } from '../../lib/policy/services/contracts.ts';
import { attemptId, instanceId, type JobId } from '../../lib/kernel/ids.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { epochMs, raw } from '../../lib/kernel/units.ts';
import { isOver, type Attempt } from '../../lib/domain/job.ts';
import {
  SERVICE_LABEL,
  SERVICE_PLAN_PREFIX,
  type PeriodMeasures,
  type Service,
  type ServiceSpec,
} from '../../lib/domain/service.ts';
import { normaliseService } from '../../lib/domain/service-file/service-file.ts';
import { Controller } from '../../lib/cycle/services/controller.ts';
import { applied, deleted, newService, scaledTo } from '../../lib/cycle/services/changes.ts';
import { MemoryStore } from '../../lib/drivers/sim/memory-store.ts';
import type { Store } from '../../lib/ports/store.ts';
import type { Route, TargetState, Traffic } from '../../lib/ports/traffic.ts';
import { attempt, instance } from '../contract/store-samples.ts';

/** What the process of a replica does. leaves: it serves for a while, then ends. */
export type Behaviour = 'serves' | 'crashes' | 'never-healthy' | 'leaves';

export const CHEAPER = { instanceTypes: ['m5.large'], zones: ['a'], purchaseOptions: ['spot'] } as const;
export const START = 1_700_000_000_000;
const STARTS_AFTER_MS = 3_000;
const HEALTHY_AFTER_MS = 2_000;
const LEAVES_AFTER_MS = 20_000;

export const serviceSpec = (over: Readonly<Record<string, unknown>> = {}, does: Behaviour = 'serves'): ServiceSpec =>
  normaliseService(
    {
      name: 'web',
      command: [does],
      target: { latency: '1s' },
      capacity: { perReplica: '10 rps' },
      min: 2,
      max: 8,
      health: { grace: '20s' },
      drain: '10s',
      update: { maxSurge: 1, maxUnavailable: 0 },
      ...over,
    },
    { baseDir: '/srv', defaultOwner: 'ana', scalings: ['reactive'] },
  );

interface Process {
  readonly attempt: Attempt;
  readonly startMs: number;
}

export class ServiceWorld {
  nowMs = START;
  readonly store: MemoryStore;
  routes: readonly Route[] = [];
  /** Requests per second that arrive; null: the metrics have stopped. `fails`: asking for them fails. */
  rps: number | null | 'fails' = 0;
  /** True: the load balancer takes no routes. */
  refusesRoutes = false;
  /** Share of the requests that are answered too late. */
  slowShare = 0;
  readonly faults: unknown[] = [];
  /** True: pools that replicas relocate to sell nothing. */
  refusesCheaper = false;
  /** Healthy replicas that got requests after each round. */
  scaling: ScalingPolicy = ({ rps }) => rps.at(-1) ?? null;
  readonly #processes = new Map<JobId, Process>();
  #token = 0;
  #instances = 0;
  #controllers = 0;
  readonly #controller: Controller;

  constructor() {
    this.store = new MemoryStore();
    this.#controller = this.controller();
  }

  /** Another controller of the same services, on this store or one that fails. */
  controller(store: Store = this.store): Controller {
    return new Controller({
      store,
      traffic: this.#traffic,
      clock: { now: () => epochMs(this.nowMs), sleep: async () => undefined },
      speed: 1,
      host: '127.0.0.1',
      random: randomStream(1, `controller ${this.#controllers++}`),
      scaling: () => this.scaling,
      place: async (spec) => spec,
      wake: () => undefined,
      onFault: (_service, error) => void this.faults.push(error),
    });
  }

  async apply(spec: ServiceSpec): Promise<void> {
    const now = await this.store.service(spec.name);
    const asking = { atMs: epochMs(this.nowMs) };
    const next = now === null ? newService(spec, asking) : applied(now, spec, asking);
    if (next !== null) await this.store.putService(next, []);
  }

  async scale(replicas: number | null): Promise<void> {
    await this.store.putService(scaledTo(await this.service(), replicas), []);
  }

  async delete(): Promise<void> {
    await this.store.putService(deleted(await this.service()), []);
  }

  async service(name = 'web'): Promise<Service> {
    const service = await this.store.service(name);
    if (service === null) throw new Error(`no service ${name}`);
    return service;
  }

  /** Time goes on by so many seconds, with a round in each, then `each`. */
  async pass(
    seconds: number,
    each: () => Promise<void> | void = () => undefined,
    round: () => Promise<void> = () => this.round(),
  ): Promise<void> {
    for (let s = 0; s < seconds; s++) {
      this.nowMs += 1000;
      await this.#work();
      await round();
      await each();
    }
  }

  async round(controller: Controller = this.#controller): Promise<void> {
    await controller.round();
  }

  /** The instance of a replica gets its warning, and is gone so many seconds later. */
  async warn(replica: number, noticeS: number): Promise<void> {
    const found = await this.#processOf(replica);
    if (found === undefined) return;
    const goneMs = epochMs(this.nowMs + noticeS * 1000);
    const warned = instance(found.attempt.instance, { state: 'warned', warnedMs: epochMs(this.nowMs), goneMs });
    await this.#commit([{ put: 'instance', value: warned }]);
  }

  /** What a plan says: the replicas of this one's instance are to go to the pools of `CHEAPER`. */
  async advise(replica: number): Promise<void> {
    const found = await this.#processOf(replica);
    if (found === undefined) return;
    const relocation = { instance: found.attempt.instance, within: CHEAPER, reason: 'it is dear here' };
    const value = JSON.stringify({ spare: 0, relocation });
    await this.#commit([{ put: 'memory', key: `${SERVICE_PLAN_PREFIX}web`, value }]);
  }

  async #processOf(replica: number): Promise<Process | undefined> {
    const { replicas } = await this.service();
    const job = replicas.find((r) => r.number === replica)?.job;
    return job === undefined ? undefined : this.#processes.get(job);
  }

  /** Jobs of replicas that are not over. */
  async jobs(): Promise<readonly JobId[]> {
    const { jobs } = await this.store.loadActive();
    return jobs.filter((j) => j.spec.labels[SERVICE_LABEL] !== undefined && !isOver(j.state)).map((j) => j.id);
  }

  healthOf(replica: number): TargetState['health'] {
    const target = this.routes.flatMap((r) => r.targets).find((t) => t.replica === replica);
    const process = [...this.#processes.values()].find((p) => p.attempt.instance === target?.instance);
    return target === undefined || process === undefined ? 'unknown' : this.#health(process);
  }

  #health({ attempt: { exitSignal }, startMs }: Process): TargetState['health'] {
    // The behaviour travels in a field that nothing else reads here.
    const does = exitSignal as Behaviour | null;
    if (does === 'never-healthy') return 'unhealthy';
    return this.nowMs - startMs >= HEALTHY_AFTER_MS ? 'healthy' : 'unhealthy';
  }

  readonly #traffic: Traffic = {
    route: async (routes, kept) => {
      if (this.refusesRoutes) throw new Error('no load balancer');
      this.routes = [...routes, ...this.routes.filter((r) => kept.has(r.service))];
    },
    states: async (service) => {
      const targets = this.routes.find((r) => r.service === service)?.targets ?? [];
      return new Map(
        targets.map((t) => [
          t.replica,
          { replica: t.replica, health: this.healthOf(t.replica), inFlight: 0, detail: null },
        ]),
      );
    },
    measures: async (_service, { fromMs, toMs }): Promise<Omit<PeriodMeasures, 'replicas'> | null> => {
      if (this.rps === 'fails') throw new Error('no metrics');
      if (this.rps === null) return null;
      const requests = Math.round((this.rps * (raw(toMs) - raw(fromMs))) / 1000);
      const slow = Math.round(requests * this.slowShare);
      return { fromMs, toMs, requests, slow, failed: 0, p50S: 0.1, p95S: 0.2, p99S: 0.3, queued: 0 };
    },
    measuredUntil: (nowMs) => nowMs,
    address: async () => null,
    port: async (taken) => {
      let port = 20_000;
      while (taken.has(port)) port += 1;
      return port;
    },
  };

  /** The engine and the market: starts, ends, losses. */
  async #work(): Promise<void> {
    const { jobs, instances } = await this.store.loadActive();
    const live = new Map(instances.map((i) => [i.id, i]));
    for (const job of jobs) {
      const process = this.#processes.get(job.id);
      const does = job.spec.stages[0]?.command[0] as Behaviour;
      if (job.cancelRequested) await this.#end(job.id, 'cancelled');
      else if (process === undefined) {
        const isRefused = this.refusesCheaper && job.spec.stages[0]?.constraints.purchaseOptions !== undefined;
        if (!isRefused && this.nowMs - raw(job.submittedMs) >= STARTS_AFTER_MS) await this.#start(job.id, does);
      } else {
        const ageMs = this.nowMs - process.startMs;
        const on = live.get(process.attempt.instance);
        if (on?.goneMs !== null && on?.goneMs !== undefined && raw(on.goneMs) <= this.nowMs) await this.#lose(job.id);
        else if (does === 'crashes' || (does === 'leaves' && ageMs >= LEAVES_AFTER_MS))
          await this.#end(job.id, 'failed');
      }
    }
  }

  async #start(job: JobId, does: Behaviour): Promise<void> {
    const id = `i-${++this.#instances}`;
    const begun = attempt(`${job}.replica.0.${this.#instances}`, {
      id: attemptId(`${job}.${this.#instances}`),
      job,
      stage: 'replica',
      instance: instanceId(id),
      startedMs: epochMs(this.nowMs),
      exitSignal: does,
    });
    this.#processes.set(job, { attempt: begun, startMs: this.nowMs });
    await this.#commit([
      { put: 'instance', value: instance(id) },
      { put: 'attempt', value: begun },
    ]);
  }

  async #lose(job: JobId): Promise<void> {
    const process = this.#processes.get(job);
    if (process === undefined) return;
    this.#processes.delete(job);
    const { attempt: lost } = process;
    await this.#commit([
      { put: 'attempt', value: { ...lost, state: 'ended', outcome: 'interrupted', endedMs: epochMs(this.nowMs) } },
      { put: 'instance', value: instance(lost.instance, { state: 'ended', endedMs: epochMs(this.nowMs) }) },
    ]);
  }

  async #end(id: JobId, state: 'cancelled' | 'failed'): Promise<void> {
    const process = this.#processes.get(id);
    this.#processes.delete(id);
    const job = await this.store.job(id);
    if (job === null) return;
    const ended = { state: 'ended', outcome: state, exitCode: 1, reason: 'exit code 1' } as const;
    await this.#commit([
      ...(process === undefined ? [] : [{ put: 'attempt', value: { ...process.attempt, ...ended } } as const]),
      { put: 'job', value: { ...job, state, finishedMs: epochMs(this.nowMs) } },
    ]);
  }

  async #commit(changes: Parameters<Store['commit']>[1]): Promise<void> {
    if (this.#token === 0) this.#token = await this.store.takeLease('world');
    await this.store.commit(this.#token, changes);
  }
}
