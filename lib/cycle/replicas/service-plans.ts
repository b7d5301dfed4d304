/** What decisions and the controller of services tell each other: plans of services, and what services need. */
import { mostTogether } from '../../domain/placement-rules.ts';
import { SERVICE_PLAN_PREFIX, specOf, type Service, type ServiceNeed, type ServicePlan } from '../../domain/service.ts';
import type { Store } from '../../ports/store.ts';
import type { Decision } from '../decide/decision.ts';
import type { WorkingState } from '../state/working-state.ts';

/** A service that is to have so many replicas at least is to survive the loss of one. */
const LEAST_APART = 2;

/** Writes what has changed since the last decision of this process. */
export function noteServicePlans(
  state: WorkingState,
  { servicePlans = [] }: Pick<Decision, 'servicePlans'>,
  written: Map<string, string>,
): void {
  for (const { service, ...plan } of servicePlans) {
    const text = JSON.stringify(plan);
    if (written.get(service) === text) continue;
    state.putMemory(`${SERVICE_PLAN_PREFIX}${service}`, text);
    written.set(service, text);
  }
}

/** Last plans, by service. */
export async function servicePlansIn(store: Pick<Store, 'memory'>): Promise<ReadonlyMap<string, ServicePlan>> {
  const rows = [...(await store.memory(SERVICE_PLAN_PREFIX))];
  return new Map(
    rows.map(([key, text]) => {
      const service = key.slice(SERVICE_PLAN_PREFIX.length);
      return [service, { service, ...(JSON.parse(text) as Omit<ServicePlan, 'service'>) }];
    }),
  );
}

/** What plans need to know of services. */
export const needsOf = (services: readonly Service[]): ReadonlyMap<string, ServiceNeed> =>
  new Map(
    services.map((service) => {
      const { name, wanted, relocation } = service;
      const { min, target, utility, replica } = specOf(service).spec;
      const [stage] = replica.stages;
      const isLeft = min < LEAST_APART || mostTogether(stage?.placement ?? {}) < Infinity;
      return [
        name,
        {
          name,
          utility,
          needed: wanted.replicas - wanted.spare,
          together: isLeft ? null : Math.ceil(wanted.replicas / 2),
          target: target.percent / 100,
          ...(stage === undefined ? {} : { stage }),
          ...(relocation === undefined ? {} : { leaving: relocation.instance }),
        },
      ];
    }),
  );
