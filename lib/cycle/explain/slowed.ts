/** Running tasks that take longer because of their neighbours, in words. */
import { dominantShare } from '../../domain/resources.ts';
import type { InstanceView } from '../../domain/snapshot.ts';
import { templateOf, type Tenant } from '../../policy/colocation/together.ts';
import type { Deliberation } from '../decide/deliberation.ts';

/** Least factor that is worth a word. */
const LEAST = 1.2;

/** Empty where no neighbour is known to matter. O(templates on the instance). */
export function slowedText(
  { snapshot, slowdowns: belief }: Pick<Deliberation, 'snapshot' | 'slowdowns'>,
  template: string,
  { attempts, pool }: Pick<InstanceView, 'attempts' | 'pool'>,
): string {
  if (belief === null || !belief.tells(template)) return '';
  const tenants = new Map<string, Required<Tenant>>();
  for (const { attempt, stage } of attempts) {
    const job = snapshot.jobs.get(attempt.job);
    if (job === undefined) continue;
    const of = templateOf(job, stage);
    const part = Math.min(1, dominantShare(attempt.resources, pool.type.capacity));
    tenants.set(of, { template: of, part, tasks: (tenants.get(of)?.tasks ?? 0) + 1 });
  }
  const beside = [...tenants.values()].map((t) => (t.template === template ? { ...t, tasks: t.tasks - 1 } : t));
  const { factor } = belief.slowdown(template, beside, pool.type);
  if (factor < LEAST) return '';
  const of = (tenant: Tenant): number => belief.slowdown(template, [tenant], pool.type).factor;
  const [worst] = beside.toSorted((a, b) => of(b) - of(a));
  return `; takes about ${factor.toFixed(1)}x longer there, beside ${worst?.template ?? 'others'}`;
}
