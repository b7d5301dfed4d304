/**
 * Throughput-normalised reservation prices (Eva: "Eva: Cost-Efficient Cloud-Based Cluster Scheduling", EuroSys 2025). A
 * task is worth the price of the cheapest instance on which it fits alone, times its throughput beside others over that
 * alone.
 */
import type { InstanceType } from '../../domain/pool.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import type { Tenant } from './together.ts';

/** Throughput beside a neighbour of which nothing is known: Eva's default. */
const UNKNOWN = 0.95;

/** A task with its reservation price, US dollars per hour. */
export interface Priced extends Tenant {
  readonly usdPerHour: number;
}

/** Throughput of a task over that alone, in (0, 1]: what was learned, and a default for each unknown neighbour. */
export function throughputOf(
  { template }: Pick<Tenant, 'template'>,
  beside: readonly Tenant[],
  { belief, type }: { readonly belief: NeighbourBelief; readonly type: InstanceType },
): number {
  const group = belief.groupOf(template);
  const isKnown = (of: Tenant): boolean => {
    const other = belief.groupOf(of.template);
    return group !== null && other !== null && belief.pair(group, other) !== null;
  };
  const unknown = beside.reduce((sum, of) => (isKnown(of) ? sum : sum + (of.tasks ?? 1)), 0);
  return UNKNOWN ** unknown / belief.slowdown(template, beside, type).factor;
}

/** Sum of the normalised reservation prices of tasks that share an instance. O(tenants squared). */
export function worthTogether(
  tenants: readonly Priced[],
  of: { readonly belief: NeighbourBelief; readonly type: InstanceType },
): number {
  return tenants.reduce((sum, tenant) => {
    const { tasks = 1, usdPerHour } = tenant;
    const beside = tenants.flatMap((other) => {
      if (other !== tenant) return [other];
      return tasks > 1 ? [{ ...tenant, tasks: tasks - 1 }] : [];
    });
    return sum + tasks * usdPerHour * throughputOf(tenant, beside, of);
  }, 0);
}

/** The same with one task more. */
export function withOneMore(tenants: readonly Priced[], of: Omit<Priced, 'tasks'>): readonly Priced[] {
  const known = tenants.find((t) => t.template === of.template && t.usdPerHour === of.usdPerHour);
  if (known === undefined) return [...tenants, { ...of, tasks: 1 }];
  return tenants.map((t) => (t === known ? { ...t, tasks: (t.tasks ?? 1) + 1 } : t));
}
