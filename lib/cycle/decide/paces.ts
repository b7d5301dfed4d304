/** How much longer starting tasks are expected to run where they start. */
import { invariant } from '../../kernel/errors.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import type { Attempt, StageSpec, TaskRef } from '../../domain/job.ts';
import { slowdownOn } from '../../domain/slowdown.ts';
import { countedNeighbours } from '../../policy/colocation/counted-neighbours.ts';
import { besideOneOf, partIn, tenantsOn, withTask, type Tenants } from '../../policy/colocation/tenants.ts';
import { templateOf } from '../../policy/colocation/together.ts';
import type { DecideInput } from './deliberation.ts';

interface Start {
  readonly task: TaskRef;
  readonly instance: InstanceId;
  readonly stage: StageSpec;
}
type Pace = Pick<Attempt, 'slowdown' | 'beside'>;

/** Factors nearer to 1 are none: alike tasks stay alike. */
const LEAST = 0.05;

/**
 * By soft constraints, and by neighbours: those that run there, and those that start with it. The rest of the instance
 * is taken to be as usual. O(starts + tenants of their instances), and O(templates of an instance) for each start.
 */
export function pacesBeside<S>(
  { snapshot, ...context }: Pick<DecideInput<S>, 'snapshot' | 'beliefs' | 'config'>,
  starts: readonly Start[],
): (start: Start) => Pace {
  const belief = starts.length > 0 ? countedNeighbours(context) : null;
  const viewOf = (id: InstanceId) =>
    invariant(snapshot.instances.get(id), `a task starts on ${id}, which is not there`);
  const soft = ({ stage, instance }: Start): number => slowdownOn(stage.preferences, viewOf(instance).pool);
  const keys = (softly: number, beside: number): Pace => ({
    ...(softly * beside === 1 ? {} : { slowdown: softly * beside }),
    ...(beside === 1 ? {} : { beside }),
  });
  if (belief?.tellsAny() !== true) return (start) => keys(soft(start), 1);
  const starting = Map.groupBy(starts, (s) => s.instance);
  const known = new Map<InstanceId, Tenants>();
  const templateIn = ({ job }: Pick<TaskRef, 'job'>, stage: StageSpec): string | null => {
    const of = snapshot.jobs.get(job);
    return of === undefined ? null : templateOf(of, stage);
  };
  const all = (id: InstanceId): Tenants => {
    const view = viewOf(id);
    const tenants = tenantsOn(view, snapshot);
    for (const { task, stage } of starting.get(id) ?? []) {
      const template = templateIn(task, stage);
      if (template !== null) withTask(tenants, template, partIn(view.pool.type, stage.resources));
    }
    return tenants;
  };
  return (start) => {
    const template = templateIn(start.task, start.stage);
    if (template === null || !belief.tells(template)) return keys(soft(start), 1);
    let tenants = known.get(start.instance);
    if (tenants === undefined) known.set(start.instance, (tenants = all(start.instance)));
    const beside = besideOneOf(tenants.values(), template);
    const used = tenants.values().reduce((sum, t) => sum + t.tasks * t.part, 0);
    const { type } = viewOf(start.instance).pool;
    const { factor } = belief.againstUsual(template, beside, { type, known: Math.min(1, used) });
    return keys(soft(start), Math.abs(factor - 1) < LEAST ? 1 : Number(factor.toFixed(2)));
  };
}
