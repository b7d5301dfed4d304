/** Running time that tasks lose by sharing an instance. */
import { raw } from '../../kernel/units.ts';
import type { InstanceType } from '../../domain/pool.ts';
import type { InstanceView, RunningTask, Snapshot } from '../../domain/snapshot.ts';
import type { LeftOf } from '../left-of.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import { besideOneOf, partIn, stayingOn, withTask } from './tenants.ts';
import type { Tenant } from './together.ts';

/** Tasks of one template that share an instance, or are about to. */
export interface Sharer extends Required<Tenant> {
  /** Longest remaining running time among them, seconds. */
  readonly leftS: number;
  /** Some neighbour is known to slow them down. */
  readonly isSlowed: boolean;
  /** Factor on their running time by the neighbours that they have now. Absent: 1, they do not run. */
  readonly now?: number;
}

export interface Longer {
  readonly of: Sharer;
  /** Seconds by which each of its tasks runs longer; below 0 where it leaves worse neighbours. */
  readonly byS: number;
}

/** Where tasks are, or are to be. */
export interface On {
  readonly belief: NeighbourBelief;
  readonly type: InstanceType;
}

export interface Sharing extends On {
  readonly snapshot: Pick<Snapshot, 'jobs'>;
  readonly leftOf: LeftOf;
}

/** Running tasks that stay, as they would share an instance of a type. O(attempts). */
export function sharersOf(
  { attempts }: Pick<InstanceView, 'attempts'>,
  { belief, type, snapshot, leftOf }: Sharing,
): readonly Sharer[] {
  const tenants = new Map<string, Required<Tenant>>();
  const leftS = new Map<string, number>();
  for (const [template, running] of stayingOn({ attempts }, snapshot)) {
    withTask(tenants, template, partIn(type, running.attempt.resources));
    leftS.set(template, Math.max(leftS.get(template) ?? 0, raw(leftOf(running))));
  }
  return Array.from(tenants.values(), (tenant) => ({
    ...tenant,
    leftS: leftS.get(tenant.template) ?? 0,
    isSlowed: belief.tells(tenant.template),
  }));
}

/**
 * Running tasks of an instance as they would share another of a type, with what their neighbours take from them now.
 * O(attempts + templates squared).
 */
export function leavingFor(
  type: InstanceType,
  { pool, attempts }: Pick<InstanceView, 'pool' | 'attempts'>,
  tasks: readonly RunningTask[],
  of: Omit<Sharing, 'type'>,
): readonly Sharer[] {
  const here = sharersOf({ attempts }, { ...of, type: pool.type });
  const now = new Map(
    here.map((s) => [s.template, of.belief.slowdown(s.template, besideOneOf(here, s.template), pool.type).factor]),
  );
  return sharersOf({ attempts: tasks }, { ...of, type }).map((s) => ({ ...s, now: now.get(s.template) ?? 1 }));
}

/** How much longer those that are there run when others come, and those that come. O(templates squared). */
export function longerTogether(
  there: readonly Sharer[],
  coming: readonly Sharer[],
  { belief, type }: On,
): readonly Longer[] {
  const factor = ({ template }: Sharer, beside: readonly Tenant[]): number =>
    belief.slowdown(template, beside, type).factor;
  const togetherS = coming.reduce((most, { leftS }) => Math.max(most, leftS), 0);
  const longer = [
    ...there.map((of) => {
      if (!of.isSlowed) return { of, byS: 0 };
      const beside = besideOneOf(there, of.template);
      const times = factor(of, [...beside, ...coming]) / factor(of, beside);
      return { of, byS: Math.min(of.leftS, togetherS) * (times - 1) };
    }),
    ...coming.map((of) => {
      if (!of.isSlowed) return { of, byS: 0 };
      const times =
        factor(of, [...there, ...coming.map((c) => (c === of ? { ...c, tasks: c.tasks - 1 } : c))]) / (of.now ?? 1);
      return { of, byS: of.leftS * (times - 1) };
    }),
  ];
  return longer.filter(({ byS }) => byS !== 0);
}

/** Seconds of the whole instance: each task counts by its part. */
export const lostS = (longer: readonly Longer[]): number =>
  longer.reduce((sum, { of, byS }) => sum + of.tasks * of.part * byS, 0);
