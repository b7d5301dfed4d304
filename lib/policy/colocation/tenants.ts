/** Tasks on one instance, by template. */
import type { InstanceType } from '../../domain/pool.ts';
import type { Job } from '../../domain/job.ts';
import { dominantShare, type Resources } from '../../domain/resources.ts';
import type { InstanceView, RunningTask, Snapshot } from '../../domain/snapshot.ts';
import { templateOf, type Tenant } from './together.ts';

export type Tenants = ReadonlyMap<string, Required<Tenant>>;

/** Part of an instance that a task asks for, in [0, 1]. */
export const partIn = ({ capacity }: Pick<InstanceType, 'capacity'>, need: Resources): number =>
  Math.min(1, dominantShare(need, capacity));

/** Running tasks that stay, with their templates. Tasks of unknown jobs are left out. O(attempts). */
export function* stayingOn(
  { attempts }: Pick<InstanceView, 'attempts'>,
  { jobs }: { readonly jobs: ReadonlyMap<Job['id'], Pick<Job, 'template'>> },
): Generator<readonly [template: string, running: RunningTask]> {
  for (const running of attempts) {
    const job = jobs.get(running.attempt.job);
    if (job !== undefined && running.attempt.state !== 'stopping') yield [templateOf(job, running.stage), running];
  }
}

/** With a task more; of tasks of one template the largest part counts. */
export function withTask(tenants: Map<string, Required<Tenant>>, template: string, part: number): void {
  const known = tenants.get(template);
  tenants.set(template, { template, part: Math.max(known?.part ?? 0, part), tasks: (known?.tasks ?? 0) + 1 });
}

/** Tenants of an instance. O(attempts). */
export function tenantsOn(view: Pick<InstanceView, 'attempts' | 'pool'>, snapshot: Pick<Snapshot, 'jobs'>) {
  const tenants = new Map<string, Required<Tenant>>();
  for (const [template, { attempt }] of stayingOn(view, snapshot))
    withTask(tenants, template, partIn(view.pool.type, attempt.resources));
  return tenants;
}

/** Neighbours of one task of a template that is among them. */
export const besideOneOf = (tenants: Iterable<Required<Tenant>>, template: string): readonly Required<Tenant>[] =>
  Array.from(tenants, (t) => (t.template === template ? { ...t, tasks: t.tasks - 1 } : t));
