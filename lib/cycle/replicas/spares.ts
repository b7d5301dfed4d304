import { SPARE_PREFIX, type Service, type ServiceNeed } from '../../domain/service.ts';
import { specOf } from '../../domain/service.ts';
import type { Store } from '../../ports/store.ts';
import type { Decision } from '../decide/decision.ts';
import type { WorkingState } from '../state/working-state.ts';

/** Writes what has changed since the last decision of this process. */
export function noteSpares(
  state: WorkingState,
  { spares = [] }: Pick<Decision, 'spares'>,
  written: Map<string, number>,
): void {
  for (const { service, replicas } of spares) {
    if (written.get(service) === replicas) continue;
    state.putMemory(`${SPARE_PREFIX}${service}`, String(replicas));
    written.set(service, replicas);
  }
}

/** Spare replicas by service, as plans want them. */
export async function sparesIn(store: Pick<Store, 'memory'>): Promise<ReadonlyMap<string, number>> {
  const rows = [...(await store.memory(SPARE_PREFIX))];
  return new Map(rows.map(([key, value]) => [key.slice(SPARE_PREFIX.length), Math.max(0, Number(value) || 0)]));
}

/** What plans need to know of services. */
export const needsOf = (services: readonly Service[]): ReadonlyMap<string, ServiceNeed> =>
  new Map(
    services.map((service) => {
      const { name, wanted } = service;
      const { target, utility } = specOf(service).spec;
      return [name, { name, utility, needed: wanted.replicas - wanted.spare, target: target.percent / 100 }];
    }),
  );
