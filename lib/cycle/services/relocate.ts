/**
 * Replicas of an instance go to cheaper pools, as a plan advises: others begin there, and only there, and these drain
 * once those serve. A pool that refuses costs nothing but time: after a while they stay where they are. Pure.
 */
import { plus, raw, seconds, secondsBetween } from '../../kernel/units.ts';
import type { Relocation, Service } from '../../domain/service.ts';
import type { Facts } from './facts.ts';
import type { Moment, Note } from './follow.ts';
import { isRelocated } from './reconcile.ts';

/** Longest time of a relocation, engine seconds: several times what an instance takes to start. */
const PATIENCE_S = 900;
/** Pause after one, and after one that failed, engine seconds. */
const PAUSE_S = 60;
const PAUSE_AFTER_FAILURE_S = 3600;

interface Relocated {
  readonly service: Service;
  readonly notes: readonly Note[];
}

export function relocate(
  service: Service,
  { facts, advised }: { readonly facts: Facts; readonly advised: Relocation | null },
  at: Moment,
): Relocated {
  return service.relocation === undefined
    ? begun(service, { facts, advised }, at)
    : followed(service, service.relocation, facts, at);
}

/** Begins only while all is well: all wanted replicas are healthy, and no update goes on. */
function begun(
  service: Service,
  { facts, advised }: { readonly facts: Facts; readonly advised: Relocation | null },
  { nowMs }: Moment,
): Relocated {
  const stays: Relocated = { service, notes: [] };
  const { replicas, wanted, rollout, isDeleting, noRelocationBeforeMs } = service;
  if (advised === null || rollout !== null || isDeleting) return stays;
  if (noRelocationBeforeMs !== undefined && raw(noRelocationBeforeMs) > raw(nowMs)) return stays;
  const isWell = replicas.length === wanted.replicas && replicas.every((r) => r.phase === 'healthy');
  const isLost = [...facts.values()].some((f) => f.goneMs !== null);
  if (!isWell || isLost || ![...facts.values()].some((f) => f.instance === advised.instance)) return stays;
  const text = `replicas relocate: ${advised.reason}`;
  return {
    service: { ...service, relocation: { ...advised, sinceMs: nowMs } },
    notes: [{ type: 'service-relocating', text }],
  };
}

function followed(
  service: Service,
  relocation: NonNullable<Service['relocation']>,
  facts: Facts,
  { nowMs }: Moment,
): Relocated {
  const left = service.replicas.filter(({ number, phase }) => {
    const fact = facts.get(number);
    return phase !== 'draining' && phase !== 'stopping' && fact !== undefined && isRelocated(service, fact);
  });
  const isStopped = service.rollout !== null || service.isDeleting;
  if (left.length === 0 || isStopped) return ended(service, plus(nowMs, seconds(PAUSE_S)), []);
  if (secondsBetween(relocation.sinceMs, nowMs) < PATIENCE_S) return { service, notes: [] };
  const text = `replicas stay where they are: others did not serve elsewhere within ${PATIENCE_S} s`;
  const given = service.replicas.map((r) =>
    r.within !== undefined && (r.phase === 'starting' || r.phase === 'unhealthy')
      ? { ...r, phase: 'stopping' as const, sinceMs: nowMs, detail: 'cheaper capacity did not come' }
      : r,
  );
  const until = plus(nowMs, seconds(PAUSE_AFTER_FAILURE_S));
  return ended({ ...service, replicas: given }, until, [{ type: 'service-relocation-failed', text }]);
}

function ended(
  { relocation: _, ...service }: Service,
  noRelocationBeforeMs: NonNullable<Service['noRelocationBeforeMs']>,
  notes: readonly Note[],
): Relocated {
  return { service: { ...service, noRelocationBeforeMs }, notes };
}
