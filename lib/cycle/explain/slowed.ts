/** Running tasks that take longer because of their neighbours, in words. */
import type { InstanceView } from '../../domain/snapshot.ts';
import { besideOneOf, tenantsOn } from '../../policy/colocation/tenants.ts';
import type { Tenant } from '../../policy/colocation/together.ts';
import type { Deliberation } from '../decide/deliberation.ts';

/** Least factor that is worth a word. */
const LEAST = 1.2;

/** Empty where no neighbour is known to matter. O(templates on the instance). */
export function slowedText(
  { snapshot, slowdowns: belief }: Pick<Deliberation, 'snapshot' | 'slowdowns'>,
  template: string,
  view: Pick<InstanceView, 'attempts' | 'pool'>,
): string {
  if (belief === null || !belief.tells(template)) return '';
  const { type } = view.pool;
  const beside = besideOneOf(tenantsOn(view, snapshot).values(), template);
  const { factor } = belief.slowdown(template, beside, type);
  if (factor < LEAST) return '';
  const of = (tenant: Tenant): number => belief.slowdown(template, [tenant], type).factor;
  const [worst] = beside.toSorted((a, b) => of(b) - of(a));
  return `; takes about ${factor.toFixed(1)}x longer there, beside ${worst?.template ?? 'others'}`;
}
