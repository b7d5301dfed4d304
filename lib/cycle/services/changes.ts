/** Changes of a service that people ask for. Pure: the store takes the record by compare-and-set. */
import { canonicalJson } from '../../kernel/canonical-json.ts';
import { seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { Caller } from '../../domain/caller.ts';
import { specOf, type Revision, type Service, type ServiceLoad, type ServiceSpec } from '../../domain/service.ts';
import { withRevision } from './reconcile.ts';

export interface Asking {
  readonly atMs: EpochMs;
  /** Absent: not known. */
  readonly by?: Caller;
}

/** Length of a monitoring period where nothing else is said, engine seconds: the clock of Tributary, section 2.2. */
export const PERIOD_S: Seconds = seconds(60);

const noLoad = (atMs: EpochMs): ServiceLoad => ({
  periodS: PERIOD_S,
  rps: [],
  endMs: atMs,
  last: null,
  learned: null,
  requests: 0,
  slow: 0,
  failed: 0,
});

/** A service that begins. */
export function newService(spec: ServiceSpec, { atMs, by }: Asking): Service {
  const empty: Service = {
    name: spec.name,
    version: 1,
    revisions: [],
    createdMs: atMs,
    state: 'deploying',
    detail: 'its first replicas are coming',
    wanted: { replicas: spec.min, spare: 0, reason: 'nothing has been measured yet' },
    fixedReplicas: null,
    isDeleting: false,
    replicas: [],
    nextReplica: 1,
    good: null,
    rollout: null,
    notBeforeMs: null,
    failuresInARow: 0,
    lastFailure: null,
    load: noLoad(atMs),
  };
  return withRevision(empty, revision(1, spec, { atMs, ...(by === undefined ? {} : { by }) }), atMs);
}

const revision = (number: number, spec: ServiceSpec, asking: Asking): Revision => ({ number, spec, ...asking });

/**
 * The service with this specification. Null: it has it already. A change of what replicas do not depend on (`min`,
 * `target`, `scaling` and so on) takes effect at once and replaces no replica.
 */
export function applied(service: Service, spec: ServiceSpec, asking: Asking): Service | null {
  const now = specOf(service);
  if (isSame(now.spec, spec) && !service.isDeleting) return null;
  const next = { ...service, version: service.version + 1, isDeleting: false };
  const isSameReplica = isSame(now.spec.replica, spec.replica);
  const number = now.number + 1;
  if (!isSameReplica) {
    const fresh = { ...next, failuresInARow: 0, notBeforeMs: null, lastFailure: null };
    return withRevision(fresh, revision(number, spec, asking), asking.atMs);
  }
  const of = now.of ?? now.number;
  const kept = { ...revision(number, spec, asking), of };
  return { ...next, revisions: withRevision(next, kept, asking.atMs).revisions };
}

const isSame = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b);

/** A number of replicas set by a person; null: the scaling policy decides again. */
export const scaledTo = (service: Service, replicas: number | null): Service => ({
  ...service,
  version: service.version + 1,
  fixedReplicas: replicas,
});

/** Its replicas are drained and ended; then it is forgotten. */
export const deleted = (service: Service): Service => ({
  ...service,
  version: service.version + 1,
  isDeleting: true,
  state: 'deleting',
  detail: 'its replicas are drained',
});
