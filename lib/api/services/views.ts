/** Records of services as answers. */
import { raw, type EpochMs } from '../../kernel/units.ts';
import { specOf, type PeriodMeasures, type Replica, type Service } from '../../domain/service.ts';
import { callerText } from '../../domain/caller.ts';
import type { Instance } from '../../domain/instance.ts';
import { iso } from '../views.ts';
import type { ReplicaView, ServiceSummaryView, ServiceView } from './schemas.ts';

/** Periods of load in an answer. */
const PERIODS_SHOWN = 180;

export function summaryView(service: Service, url: string | null): ServiceSummaryView {
  const { number, spec } = specOf(service);
  const { load, replicas } = service;
  const all = load.requests + load.failed;
  return {
    name: service.name,
    owner: spec.owner,
    labels: { ...spec.labels },
    state: service.state,
    detail: service.detail,
    revision: number,
    url,
    replicas: {
      healthy: replicas.filter((r) => r.phase === 'healthy').length,
      wanted: service.wanted.replicas,
      all: replicas.length,
      min: spec.min,
      max: spec.max,
    },
    rps: load.rps.at(-1) ?? null,
    slowShare: all === 0 ? null : (load.slow + load.failed) / all,
    createdAt: iso(service.createdMs),
  };
}

export function serviceViewOf(
  service: Service,
  of: {
    readonly url: string | null;
    readonly now: EpochMs;
    readonly cost: ServiceView['cost'];
    readonly instances: ReadonlyMap<number, Pick<Instance, 'id' | 'pool'>>;
  },
): ServiceView {
  const { spec } = specOf(service);
  const { load, rollout } = service;
  return {
    ...summaryView(service, of.url),
    asOf: iso(of.now),
    target: { latencyS: raw(spec.target.latencyS), percent: spec.target.percent },
    scaling: {
      policy: spec.scaling,
      reason: service.wanted.reason,
      fixed: service.fixedReplicas,
      capacityRps: spec.capacityRps ?? load.learned?.rps ?? null,
      learned: spec.capacityRps === null,
    },
    update:
      rollout === null
        ? null
        : { revision: rollout.revision, from: rollout.from, sinceAt: iso(rollout.sinceMs), failures: rollout.failures },
    lastFailure: service.lastFailure,
    lastPeriod: load.last === null ? null : periodView(load.last),
    load: {
      periodS: raw(load.periodS),
      rps: load.rps.slice(-PERIODS_SHOWN),
      requests: load.requests,
      slow: load.slow,
      failed: load.failed,
    },
    replicaList: service.replicas.map((r) => replicaView(r, of.instances.get(r.number))),
    revisions: service.revisions.map((r) => ({
      number: r.number,
      at: iso(r.atMs),
      by: r.by === undefined ? null : callerText(r.by),
      of: r.of ?? null,
      command: [...(r.spec.replica.stages[0]?.command ?? [])],
    })),
    cost: of.cost,
  };
}

const periodView = ({ fromMs, toMs, ...rest }: PeriodMeasures): NonNullable<ServiceView['lastPeriod']> => ({
  fromAt: iso(fromMs),
  toAt: iso(toMs),
  ...rest,
});

const replicaView = (replica: Replica, on: Pick<Instance, 'id' | 'pool'> | undefined): ReplicaView => ({
  number: replica.number,
  revision: replica.revision,
  phase: replica.phase,
  sinceAt: iso(replica.sinceMs),
  detail: replica.detail,
  job: replica.job,
  port: replica.port,
  instance: on?.id ?? null,
  pool: on?.pool ?? null,
});
