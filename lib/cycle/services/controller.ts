/**
 * The controller of services: observe, decide, record, act, over and over; beside the engine, which runs their replicas
 * as jobs of one task.
 * Lifecycle: made -> `round` again and again. Every round begins with the stored records, so that a controller that
 * dies at any point is followed by the next one without loss.
 * Invariants: a replica is recorded before its job is submitted, under an id and a key of its own: repeated, the
 * submission has no further effect. A job is cancelled only once its replica is recorded as stopping. Of two
 * controllers one wins each record (compare-and-set); the other begins anew with what it finds.
 */
import { jobId, timeOrderedText } from '../../kernel/ids.ts';
import type { Uniform } from '../../kernel/random.ts';
import type { Clock } from '../../kernel/clock.ts';
import { gte, plus, raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import {
  REVISION_LABEL,
  SERVICE_LABEL,
  specOf,
  type Replica,
  type Revision,
  type Service,
  type ServicePlan,
  type ServiceState,
} from '../../domain/service.ts';
import type { Admission, Job, JobSpec } from '../../domain/job.ts';
import type { ScalingPolicy } from '../../policy/services/contracts.ts';
import type { NewEvent, Store } from '../../ports/store.ts';
import type { Period, Route, Target, Traffic } from '../../ports/traffic.ts';
import { newJob } from '../admit/new-job.ts';
import { servicePlansIn } from '../replicas/service-plans.ts';
import { factsOf, liveInstances, type Facts } from './facts.ts';
import { follow, type Moment, type Note } from './follow.ts';
import { reconcile, type Reconciled } from './reconcile.ts';
import { relocate } from './relocate.ts';
import { wantedBy, withPeriod } from './wanted.ts';

export interface ControllerParts {
  readonly store: Store;
  readonly traffic: Traffic;
  readonly clock: Clock;
  /** Engine seconds of a wall second. */
  readonly speed: number;
  /** Address that replicas are to listen on. */
  readonly host: string;
  readonly random: Uniform;
  /** Scaling policy by name; null: none has this name any more. */
  readonly scaling: (name: string) => ScalingPolicy | null;
  /** Files and secrets of a replica's job, where tasks reach them. */
  readonly place: (spec: JobSpec, id: Job['id']) => Promise<JobSpec>;
  /** Wakes the engine. */
  readonly wake: () => void | Promise<void>;
  /** Told of a service whose round failed, or of requests that cannot be routed (null); the others go on. */
  readonly onFault: (service: string | null, error: unknown) => void;
}

export interface Round {
  /** Services that are there. */
  readonly services: number;
  /** True while a replica begins to serve, drains, or loses its instance: the next round may have more to do. */
  readonly isChanging: boolean;
}

/** What a round finds of a service. */
interface Seen {
  readonly facts: Facts;
  /** What the last plan says of it; null: nothing yet. */
  readonly plan: ServicePlan | null;
}

const NO_NOTES: readonly Note[] = [];
const ADMITTED: Admission = { feasible: true, notes: [] };

export class Controller {
  readonly #parts: ControllerParts;

  constructor(parts: ControllerParts) {
    this.#parts = parts;
  }

  /** One round over all services. O(services x replicas). */
  async round(): Promise<Round> {
    const { store, traffic, onFault } = this.#parts;
    const services = await store.services();
    const instances = services.length === 0 ? new Map() : await liveInstances(store);
    const plans = services.length === 0 ? new Map<string, ServicePlan>() : await servicePlansIn(store);
    const routes: Route[] = [];
    // A service whose round fails, or which another has changed meanwhile, keeps its route.
    const kept = new Set<string>();
    let isChanging = false;
    for (const service of services) {
      try {
        const facts = await factsOf(service, { store, traffic, instances });
        const next = await this.#decided(service, { facts, plan: plans.get(service.name) ?? null });
        if (next === 'gone') continue;
        if (next === 'lost') {
          kept.add(service.name);
          isChanging = true;
          continue;
        }
        await this.#act(next, facts);
        routes.push(routeOf(next, facts));
        isChanging ||= isUnsettled(next, facts);
      } catch (error) {
        kept.add(service.name);
        onFault(service.name, error);
      }
    }
    // Those whose requests can be routed are; the rest is tried again in the next round.
    await traffic.route(routes, kept).catch((error: unknown) => onFault(null, error));
    return { services: services.length, isChanging };
  }

  /** The service as it is recorded now. gone: it is deleted. lost: another has recorded something else meanwhile. */
  async #decided(service: Service, { facts, plan }: Seen): Promise<Service | 'gone' | 'lost'> {
    const { store } = this.#parts;
    const at = this.#moment();
    const measured = await this.#measured(service, { facts, plan }, at);
    const followed = follow(measured.service, facts, at);
    const relocated = relocate(followed.service, { facts, advised: plan?.relocation ?? null }, at);
    const { service: reconciled, begin, notes } = reconcile(relocated.service, facts, at);
    const begun = await this.#begun(reconciled, begin, at.nowMs);
    const next = withState(begun, at.nowMs);
    const events = [...measured.notes, ...followed.notes, ...relocated.notes, ...notes].map((n) =>
      eventOf(next, n, at.nowMs),
    );
    if (next.isDeleting && next.replicas.length === 0) {
      const deleted = eventOf(next, { type: 'service-deleted', text: 'deleted' }, at.nowMs);
      return (await store.dropService(service, [...events, deleted])) ? 'gone' : 'lost';
    }
    if (isSame(service, next)) return service;
    const recorded = { ...next, version: service.version + 1 };
    return (await store.putService(recorded, events)) ? recorded : 'lost';
  }

  #moment(): Moment {
    const { clock, speed } = this.#parts;
    const nowMs = clock.now();
    return { nowMs, speed, wallS: (sinceMs) => secondsBetween(sinceMs, nowMs) / speed };
  }

  /** With the last monitoring period, where one is over, and what follows for the wanted replicas. */
  async #measured(
    service: Service,
    { facts, plan }: Seen,
    { nowMs }: Moment,
  ): Promise<{ service: Service; notes: readonly Note[] }> {
    const { traffic, speed } = this.#parts;
    const { load } = service;
    const spare = plan?.spare ?? 0;
    if (service.isDeleting) return { service, notes: NO_NOTES };
    const endMs = traffic.measuredUntil(nowMs);
    if (!gte(endMs, plus(load.endMs, load.periodS))) return this.#wanted(service, spare);
    const period = { fromMs: load.endMs, toMs: endMs };
    const found = await this.#measures(service, period);
    const replicas = [...facts.values()].filter((f) => f.health === 'healthy').length;
    const wallS = secondsBetween(period.fromMs, endMs) / speed;
    const { spec } = specOf(service);
    const isShort = replicas < service.wanted.replicas;
    const measured = { period: found === null ? null : { ...found, replicas }, wallS, endMs, isShort };
    return this.#wanted({ ...service, load: withPeriod(load, measured, spec) }, spare);
  }

  /** Null also where the metrics cannot be had: replicas are followed and replaced all the same. */
  async #measures(service: Service, period: Period): ReturnType<Traffic['measures']> {
    const { traffic, onFault } = this.#parts;
    const { name } = service;
    try {
      return await traffic.measures({ service: name, target: specOf(service).spec.target }, period);
    } catch (error) {
      onFault(name, error);
      return null;
    }
  }

  #wanted(service: Service, spare: number): { service: Service; notes: readonly Note[] } {
    const { spec } = specOf(service);
    const policy = this.#parts.scaling(spec.scaling);
    if (policy === null) return { service, notes: NO_NOTES };
    const { wanted, refused } = wantedBy(service, policy, spare);
    const before = service.wanted;
    const notes: Note[] = [];
    if (wanted.replicas !== before.replicas) {
      const text = `${wanted.replicas} replicas are wanted in place of ${before.replicas}: ${wanted.reason}`;
      notes.push({ type: 'service-scaled', text });
    }
    const reason = refused ?? wanted.reason;
    if (refused !== null && refused !== before.reason) notes.push({ type: 'service-scaling-refused', text: refused });
    return { service: { ...service, wanted: { ...wanted, reason } }, notes };
  }

  async #begun(service: Service, begin: Reconciled['begin'], nowMs: EpochMs): Promise<Service> {
    const { count, relocating } = begin;
    if (count === 0) return service;
    const { traffic, random } = this.#parts;
    const { number: revision } = specOf(service);
    const taken = new Set(service.replicas.map((r) => r.port));
    const begun: Replica[] = [];
    for (let i = 0; i < count; i++) {
      const port = await traffic.port(taken);
      taken.add(port);
      const job = jobId(`j-${timeOrderedText(nowMs, random)}`);
      const number = service.nextReplica + i;
      const rest = {
        phase: 'starting',
        sinceMs: nowMs,
        seenMs: null,
        hasServed: false,
        detail: 'it waits for capacity',
      } as const;
      const within = i < relocating ? service.relocation?.within : undefined;
      begun.push({ number, revision, job, port, ...rest, ...(within === undefined ? {} : { within }) });
    }
    return { ...service, replicas: [...service.replicas, ...begun], nextReplica: service.nextReplica + count };
  }

  /** Jobs of recorded replicas: those that are missing are submitted, those that stop are cancelled. */
  async #act(service: Service, facts: Facts): Promise<void> {
    const { store, wake } = this.#parts;
    let isAwaited = false;
    for (const replica of service.replicas) {
      const job = facts.get(replica.number)?.job ?? 'absent';
      if (replica.phase === 'stopping') {
        if (job !== 'absent' && job !== 'over') isAwaited = (await store.requestCancel(replica.job)) || isAwaited;
      } else if (job === 'absent') {
        await this.#submit(service, replica);
        isAwaited = true;
      }
    }
    if (isAwaited) await wake();
  }

  async #submit(service: Service, replica: Replica): Promise<void> {
    const { store, clock, place, host } = this.#parts;
    const revision = service.revisions.find((r) => r.number === replica.revision) ?? specOf(service);
    const placed = await place(replicaJob(service, replica, { ...revision, host }), replica.job);
    const by = revision.by === undefined ? {} : { by: revision.by };
    const job = newJob(placed, { id: replica.job, at: clock.now(), after: [], admission: ADMITTED, ...by });
    const key = `service/${service.name}/${raw(service.createdMs)}/${replica.number}`;
    await store.submit([{ job, idempotency: { key, digest: replica.job } }]);
  }
}

/** Job of one replica: that of its revision, with its port and labels that name its service. */
function replicaJob(
  { name }: Service,
  replica: Replica,
  { spec, number, host }: Revision & Pick<ControllerParts, 'host'>,
): JobSpec {
  const { replica: job } = spec;
  return {
    ...job,
    name: `${name}-${replica.number}`,
    labels: { ...job.labels, [SERVICE_LABEL]: name, [REVISION_LABEL]: String(number) },
    stages: job.stages.map((stage) => ({
      ...stage,
      env: { HOST: host, ...stage.env, PORT: String(replica.port) },
      port: replica.port,
      ...(replica.within === undefined ? {} : { constraints: { ...stage.constraints, ...replica.within } }),
    })),
  };
}

/** Replicas whose process runs. Those that stop are not reached any more. */
function routeOf(service: Service, facts: Facts): Route {
  const { spec } = specOf(service);
  const targets = service.replicas.flatMap(({ number, port, phase }): Target[] => {
    const fact = facts.get(number);
    if (fact?.job !== 'running' || fact.instance === null || fact.attempt === null || phase === 'stopping') return [];
    const { instance, attempt } = fact;
    return [{ replica: number, instance, attempt, port, mode: phase === 'draining' ? 'drain' : 'serve' }];
  });
  const { target, health, concurrency, drainS, port } = spec;
  return { service: service.name, target, health, concurrency, drainS, port, targets };
}

/** True if a replica is about to change without an event that tells of it. */
const isUnsettled = ({ replicas }: Service, facts: Facts): boolean =>
  replicas.some(({ number, phase }) => {
    const fact = facts.get(number);
    if (fact?.job !== 'running' || phase === 'stopping') return false;
    return phase !== 'healthy' || fact.goneMs !== null;
  });

const eventOf = ({ name, replicas }: Service, { type, text, replica }: Note, atMs: EpochMs): NewEvent => ({
  atMs,
  type,
  job: replicas.find((r) => r.number === replica)?.job ?? null,
  text: `service ${name}: ${text}`,
  data: { service: name, ...(replica === undefined ? {} : { replica }) },
});

/** Failures in a row after which a service without a healthy replica is said to fail. */
const FAILING = 3;

function withState(service: Service, nowMs: EpochMs): Service {
  const [state, detail] = stateOf(service, nowMs);
  return { ...service, state, detail };
}

function stateOf(service: Service, nowMs: EpochMs): readonly [ServiceState, string] {
  const { replicas, wanted, rollout, failuresInARow, notBeforeMs, lastFailure } = service;
  const healthy = replicas.filter((r) => r.phase === 'healthy').length;
  const of = `${healthy} of ${wanted.replicas} replicas ${wanted.replicas === 1 ? 'is' : 'are'} healthy`;
  if (service.isDeleting) return ['deleting', `${replicas.length} replicas are still there`];
  const last = replicas.findLast((r) => r.detail !== null && r.phase === 'starting')?.detail ?? null;
  const told = lastFailure ?? last;
  const why = told === null ? '' : `; ${told}`;
  if (healthy === 0 && failuresInARow >= FAILING) {
    const waitS = notBeforeMs === null ? 0 : Math.max(0, secondsBetween(nowMs, notBeforeMs));
    const next = waitS === 0 ? '' : '; the next one begins after a back-off';
    return ['failing', `${failuresInARow} replicas in a row failed${why}${next}`];
  }
  if (rollout !== null) return ['deploying', `revision ${rollout.revision} is coming: ${of}${why}`];
  return healthy >= wanted.replicas ? ['healthy', of] : ['degraded', `${of}${why}`];
}

const isSame = (a: Service, b: Service): boolean => JSON.stringify(a) === JSON.stringify(b);
