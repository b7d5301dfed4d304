/**
 * Replicas that a service is to begin, and those that are to go: so many healthy ones of its current revision as are
 * wanted. Pure.
 * Invariant: nothing here takes a healthy replica out while that would leave fewer healthy ones than wanted, less what
 * an update may lack (`maxUnavailable`). A replica whose instance is about to be lost is not counted: the next one
 * begins at once, and it serves until that one is healthy, or as long as it can.
 */
import { raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import {
  replicasOf,
  rootOf,
  specOf,
  type Replica,
  type Revision,
  type Rollout,
  type Service,
} from '../../domain/service.ts';
import type { Facts, ReplicaFacts } from './facts.ts';
import type { Moment, Note } from './follow.ts';

export interface Reconciled {
  /** With phases of those that go; without those that begin. */
  readonly service: Service;
  /** Replicas of the current revision to begin: all, and those of them that relocate others. */
  readonly begin: { readonly count: number; readonly relocating: number };
  readonly notes: readonly Note[];
}

const NONE_TO_BEGIN = { count: 0, relocating: 0 };
/** Failed replicas of a new revision after which the earlier one comes back. */
const MOST_FAILURES = 3;
/** Wall seconds before the end of an instance at which its replica has no requests in flight any more. */
const SPARE_S = 5;

/** O(replicas log replicas). */
export function reconcile(given: Service, facts: Facts, at: Moment): Reconciled {
  if (given.isDeleting) {
    const service = {
      ...given,
      rollout: null,
      replicas: given.replicas.map((r) => goes(r, 'the service is deleted', at)),
    };
    return { service, begin: NONE_TO_BEGIN, notes: [] };
  }
  const { service: rolled, notes } = rolledBack(given, at);
  const counts = countsOf(rolled, facts);
  const leaving = departed(rolled, counts, { facts, at });
  const retired = retire(leaving, counts, at);
  const done = finished(retired, counts);
  return { service: done.service, begin: toBegin(done.service, counts, at), notes: [...notes, ...done.notes] };
}

interface Counts {
  /** Replicas of the current revision that are, or may become, of use. */
  readonly current: readonly Replica[];
  /** The same of other revisions. */
  readonly others: readonly Replica[];
  /** Replicas whose instance is being lost, or left for a cheaper one. */
  readonly leaving: readonly Replica[];
  /** Most of the current revision and of others at once. */
  readonly mostAtOnce: number;
  /** Fewest healthy ones that an act of ours may leave. */
  readonly fewest: number;
}

/** True for a replica on the instance that the service leaves. */
export const isRelocated = ({ relocation }: Service, { instance }: Pick<ReplicaFacts, 'instance'>): boolean =>
  relocation !== undefined && instance === relocation.instance;

const isOfUse = ({ phase }: Replica): boolean => phase === 'starting' || phase === 'healthy' || phase === 'unhealthy';
const isHealthy = ({ phase }: Replica): boolean => phase === 'healthy';

function countsOf(service: Service, facts: Facts): Counts {
  const { number, spec } = specOf(service);
  const { replicas: wanted } = service.wanted;
  const root = rootOf(service, number);
  const useful = service.replicas.filter(isOfUse);
  const isLeaving = ({ number: n }: Replica): boolean => {
    const fact = facts.get(n);
    return fact !== undefined && (fact.goneMs !== null || isRelocated(service, fact));
  };
  const stay = useful.filter((r) => !isLeaving(r));
  const isCurrent = (r: Replica): boolean => rootOf(service, r.revision) === root;
  const lacking = replicasOf(spec.update.maxUnavailable, wanted, 'down');
  const surge = replicasOf(spec.update.maxSurge, wanted, 'up');
  const more = Math.max(surge, lacking === 0 ? 1 : 0);
  return {
    current: stay.filter(isCurrent),
    others: stay.filter((r) => !isCurrent(r)),
    leaving: useful.filter(isLeaving),
    mostAtOnce: wanted + more,
    // Without a surge an update can only begin with fewer.
    fewest: more > 0 ? Math.max(Math.min(spec.min, wanted), wanted - lacking) : wanted - lacking,
  };
}

/**
 * Replicas whose instances are being lost or left are drained once others are there, or when the time comes. Those that
 * can stay serve longest.
 */
function departed(
  service: Service,
  counts: Counts,
  { facts, at }: { readonly facts: Facts; readonly at: Moment },
): Service {
  if (counts.leaving.length === 0) return service;
  const goneMsOf = ({ number }: Replica): EpochMs | null => facts.get(number)?.goneMs ?? null;
  const byTime = [...counts.leaving].sort((a, b) => Number(goneMsOf(b) === null) - Number(goneMsOf(a) === null));
  let spare = [...counts.current, ...counts.others].filter(isHealthy).length - service.wanted.replicas;
  const gone = new Map<number, string>();
  for (const replica of byTime) {
    if (isHealthy(replica) && spare < 0 && hasTime(service, goneMsOf(replica), at)) spare += 1;
    else gone.set(replica.number, goneMsOf(replica) === null ? RELOCATED : LOST);
  }
  const replicas = service.replicas.map((replica) => {
    const why = gone.get(replica.number);
    return why === undefined ? replica : goes(replica, why, at);
  });
  return { ...service, replicas };
}

const RELOCATED = 'others serve where it costs less';
const LOST = 'its instance is taken by the market or given back';

/** True if a replica can still serve and then drain before its instance is gone. Null: it stays. */
function hasTime(service: Service, goneMs: EpochMs | null, { nowMs, speed }: Moment): boolean {
  if (goneMs === null) return true;
  const leftS = secondsBetween(nowMs, goneMs) / speed;
  const { drainS } = specOf(service).spec;
  return leftS > Math.min(raw(drainS), leftS / 2) + SPARE_S && leftS > 2 * SPARE_S;
}

/** Replicas beyond those that are wanted, and those of other revisions as far as the current one stands in. */
function retire(service: Service, { current, others, fewest }: Counts, at: Moment): Service {
  let healthy = [...current, ...others].filter(isHealthy).length;
  const gone = new Map<number, string>();
  const take = (replica: Replica, why: string): void => {
    if (isHealthy(replica)) {
      if (healthy - 1 < fewest) return;
      healthy -= 1;
    }
    gone.set(replica.number, why);
  };
  for (const replica of [...others].sort(leastUseful)) take(replica, 'a newer revision takes its place');
  const excess = current.length - service.wanted.replicas;
  if (excess > 0) {
    for (const replica of [...current].sort(leastUseful).slice(0, excess)) take(replica, 'fewer replicas are wanted');
  }
  const replicas = service.replicas.map((r) => {
    const why = gone.get(r.number);
    return why === undefined ? r : goes(r, why, at);
  });
  return { ...service, replicas };
}

/** Those that do not serve first; of equals the youngest, which has served least. */
const leastUseful = (a: Replica, b: Replica): number => RANK[a.phase] - RANK[b.phase] || b.number - a.number;
const RANK: Readonly<Record<Replica['phase'], number>> = {
  stopping: 0,
  draining: 0,
  unhealthy: 1,
  starting: 2,
  healthy: 3,
};

/** The replica on its way out: drained first where it may have requests. */
function goes(replica: Replica, why: string, { nowMs }: { readonly nowMs: EpochMs }): Replica {
  if (!isOfUse(replica)) return replica;
  const phase = replica.phase === 'healthy' || replica.phase === 'unhealthy' ? 'draining' : 'stopping';
  return { ...replica, phase, sinceMs: nowMs, detail: why };
}

function toBegin(
  service: Service,
  { current, others, leaving, mostAtOnce }: Counts,
  { nowMs }: Moment,
): Reconciled['begin'] {
  const { notBeforeMs, wanted, rollout } = service;
  if (notBeforeMs !== null && raw(notBeforeMs) > raw(nowMs)) return NONE_TO_BEGIN;
  const missing = wanted.replicas - current.length;
  const begin = Math.max(0, Math.min(missing, mostAtOnce - current.length - others.length));
  // A revision that has failed begins one at a time until it is healthy once.
  const isDoubtful = (rollout?.failures ?? 0) > 0 && !current.some(isHealthy);
  const count = isDoubtful ? Math.min(begin, Math.max(0, 1 - current.length)) : begin;
  // Each that leaves for the cost's sake has one that comes there.
  const coming = current.filter((r) => r.within !== undefined && !isHealthy(r)).length;
  const relocating = service.relocation === undefined ? 0 : Math.min(count, Math.max(0, leaving.length - coming));
  return { count, relocating };
}

/** An update is over once the wanted replicas of its revision are healthy and no other is left. */
function finished(service: Service, { current, others }: Counts): { service: Service; notes: readonly Note[] } {
  const { number } = specOf(service);
  const healthy = current.filter(isHealthy).length;
  if (healthy < service.wanted.replicas || others.length > 0) return { service, notes: [] };
  const root = rootOf(service, number);
  if (service.rollout === null && service.good === root) return { service, notes: [] };
  const text = `revision ${number} is in place: ${healthy} healthy ${healthy === 1 ? 'replica' : 'replicas'}`;
  return { service: { ...service, rollout: null, good: root }, notes: [{ type: 'service-updated', text }] };
}

/** The last good revision in place of one that failed. */
function rolledBack(service: Service, { nowMs }: Moment): { service: Service; notes: readonly Note[] } {
  const { rollout, revisions } = service;
  if (rollout === null || rollout.from === null || rollout.failures < MOST_FAILURES) return { service, notes: [] };
  const good = revisions.find((r) => r.number === rollout.from);
  if (good === undefined) return { service, notes: [] };
  const number = specOf(service).number + 1;
  const by = good.by === undefined ? {} : { by: good.by };
  const back: Revision = { number, spec: good.spec, atMs: nowMs, of: good.number, ...by };
  const text = `revision ${rollout.revision} failed ${rollout.failures} times: back to revision ${good.number} as ${number}`;
  return {
    service: withRevision({ ...service, failuresInARow: 0, notBeforeMs: null }, back, nowMs),
    notes: [{ type: 'service-rolled-back', text }],
  };
}

/** Revisions kept besides those that replicas have. */
const REVISIONS_KEPT = 10;

/** The service with a new revision, and the update to it. */
export function withRevision(service: Service, revision: Revision, nowMs: EpochMs): Service {
  const rollout: Rollout = { revision: revision.number, from: service.good, sinceMs: nowMs, failures: 0 };
  const inUse = new Set([...service.replicas.map((r) => r.revision), service.good, rootOf(service, revision.number)]);
  const all = [...service.revisions, revision];
  const revisions = all.filter((r, i) => i >= all.length - REVISIONS_KEPT || inUse.has(r.number));
  return { ...service, revisions, rollout };
}
