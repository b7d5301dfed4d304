/** Facts about each replica of a service: the state of its job, its instance, and its health by the load balancer. */
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job } from '../../domain/job.ts';
import type { Service } from '../../domain/service.ts';
import type { Store } from '../../ports/store.ts';
import type { Located, TargetState, Traffic } from '../../ports/traffic.ts';

export interface ReplicaFacts {
  /** absent: not submitted yet. waiting: for capacity, or for its process to begin. */
  readonly job: 'absent' | 'waiting' | 'running' | 'over';
  /** Why its job ended, or what it waits for; null: nothing is known. */
  readonly why: string | null;
  /** Start of its process; null while it waits. */
  readonly startedMs: EpochMs | null;
  readonly instance: InstanceId | null;
  /** The attempt that runs; null while it waits. */
  readonly attempt: AttemptId | null;
  /** Time at which its instance is lost; null: it stays. */
  readonly goneMs: EpochMs | null;
  readonly health: TargetState['health'];
  readonly healthDetail: string | null;
  readonly inFlight: number;
}
export type Facts = ReadonlyMap<number, ReplicaFacts>;

const PAGE = 500;

/** Live instances by id. O(live instances). */
export async function liveInstances(store: Pick<Store, 'instances'>): Promise<ReadonlyMap<InstanceId, Instance>> {
  const found = new Map<InstanceId, Instance>();
  for (let after: string | null = null; ;) {
    const page = await store.instances(true, PAGE, after);
    for (const instance of page.items) found.set(instance.id, instance);
    if (page.next === null) return found;
    after = page.next;
  }
}

export interface FactsFrom {
  readonly store: Pick<Store, 'job' | 'attempts' | 'explanation'>;
  readonly traffic: Pick<Traffic, 'states'>;
  readonly instances: ReadonlyMap<InstanceId, Instance>;
}

/** O(replicas), each with one question for its job and one for its attempts. */
export async function factsOf(service: Service, { store, traffic, instances }: FactsFrom): Promise<Facts> {
  const facts = new Map<number, ReplicaFacts>();
  for (const { number, job } of service.replicas) {
    const stored = await store.job(job);
    const attempts = stored === null ? [] : await store.attempts(job);
    const fact = factOf({ job: stored, attempts, instances });
    const headline = fact.job === 'waiting' ? ((await store.explanation(job))?.headline ?? null) : null;
    facts.set(number, headline === null ? fact : { ...fact, why: headline });
  }
  return withHealth(facts, await traffic.states(service.name, located(facts)));
}

/** Replicas whose process runs. */
const located = (facts: Facts): readonly Located[] =>
  [...facts].flatMap(([replica, { instance, attempt }]) =>
    instance === null || attempt === null ? [] : [{ replica, instance, attempt }],
  );

const withHealth = (facts: Facts, states: ReadonlyMap<number, TargetState>): Facts =>
  new Map(
    [...facts].map(([number, fact]) => {
      const state = fact.job === 'running' ? states.get(number) : undefined;
      if (state === undefined) return [number, fact];
      const { health, detail: healthDetail, inFlight } = state;
      return [number, { ...fact, health, healthDetail, inFlight }];
    }),
  );

function factOf(of: {
  readonly job: Job | null;
  readonly attempts: readonly Attempt[];
  readonly instances: ReadonlyMap<InstanceId, Instance>;
}): ReplicaFacts {
  const { job, attempts, instances } = of;
  const nothing = { startedMs: null, instance: null, attempt: null, goneMs: null, inFlight: 0 };
  const unknown = { health: 'unknown', healthDetail: null } as const;
  if (job === null) return { ...nothing, ...unknown, job: 'absent', why: null };
  const last = attempts.at(-1);
  if (isOver(job.state)) return { ...nothing, ...unknown, job: 'over', why: reasonOf(job, last) };
  const live = attempts.find((a) => a.state === 'running' || a.state === 'stopping');
  if (live?.startedMs === undefined || live.startedMs === null) {
    return { ...nothing, ...unknown, job: 'waiting', why: waitsFor(job, last) };
  }
  const instance = instances.get(live.instance);
  const { startedMs } = live;
  const place = { instance: live.instance, attempt: live.id, goneMs: goneMsOf(instance, live) };
  return { ...nothing, ...unknown, ...place, job: 'running', why: null, startedMs };
}

/** An instance that is not known any more, or that is given back, is as good as lost. */
function goneMsOf(instance: Instance | undefined, { placedMs }: Attempt): EpochMs | null {
  if (instance === undefined || !isLive(instance)) return placedMs;
  if (instance.state === 'warned') return instance.goneMs ?? placedMs;
  return instance.state === 'releasing' ? placedMs : null;
}

function reasonOf(job: Job, last: Attempt | undefined): string {
  if (last?.outcome === 'succeeded') return 'its process ended with exit code 0: a server is expected to keep running';
  if (last?.reason !== null && last?.reason !== undefined) return last.reason;
  if (last?.exitCode !== null && last?.exitCode !== undefined)
    return `its process ended with exit code ${last.exitCode}`;
  return job.stateReason ?? `its job has ${job.state}`;
}

const waitsFor = (job: Job, last: Attempt | undefined): string =>
  job.held !== undefined
    ? `no decision can be made for it: ${job.held.reason}`
    : last?.outcome === 'interrupted'
      ? 'its instance was lost; it waits for another'
      : last !== undefined && last.state === 'starting'
        ? 'its instance starts'
        : 'it waits for capacity';
