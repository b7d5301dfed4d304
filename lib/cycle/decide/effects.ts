/** Effects of a plan, each with its key. */
import { invariant } from '../../kernel/errors.ts';
import { effectKey, instanceOf, type GroupId, type InstanceId, type JobId } from '../../kernel/ids.ts';
import { stageKey, type StageSpec, type TaskRef } from '../../domain/job.ts';
import type { Allotment, Effect, Placement, Purchase, Release } from '../../domain/plan.ts';
import { memberOf, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';
import type { Lots } from '../money/lots.ts';
import type { Neighbours } from '../neighbours/neighbours.ts';
import { allowedStarts } from '../neighbours/starts.ts';
import { attemptName, taskKey } from '../state/working-state.ts';
import type { PlacedCopy } from './copies.ts';
import type { DecideInput } from './deliberation.ts';
import { forecastAtPurchase } from './forecast-at-purchase.ts';
import { slowdownKey } from '../../domain/slowdown.ts';
import { randomOrder, taskAt, type TaskOrder } from '../../domain/task-order.ts';
import { pacesBeside } from './paces.ts';
import type { Stop } from './stops.ts';
import { allocationKey, launchKey } from '../../domain/launch-keys.ts';

export function effectsOf<S>(
  input: Pick<DecideInput<S>, 'snapshot' | 'plan' | 'forecasts' | 'config' | 'beliefs'>,
  what: {
    readonly stops: readonly Stop[];
    readonly purchases: readonly Purchase[];
    readonly lots: Lots;
    readonly placements: readonly Placement[];
    readonly pilots: ReadonlyMap<GroupId, number>;
    readonly neighbours: Neighbours | null;
    readonly copies: readonly Pick<PlacedCopy, 'running' | 'on' | 'copy'>[];
    readonly releases: readonly Release[];
  },
): Effect[] {
  const { snapshot, plan } = input;
  const starts = readyPlacements(snapshot, what);
  const tried = attemptsSoFar(snapshot, starts);
  const paceOf = pacesBeside(input, starts);
  const effects: Effect[] = [];
  for (const s of what.stops) effects.push({ kind: 'stop', key: effectKey(`${plan}/stop/${s.attempt}`), ...s });
  effects.push(...launchesOf(input, what));
  for (const p of starts) {
    const attempt = attemptName(p.task, (p.fresh ? 0 : (tried.get(taskKey(p.task)) ?? 0)) + 1);
    effects.push({
      kind: 'start',
      key: effectKey(`start/${attempt}`),
      attempt,
      task: p.task,
      instance: p.instance,
      reason: p.reason,
      ...(p.isPilot ? { role: 'pilot' } : {}),
      ...paceOf(p),
    });
  }
  for (const { running, on, copy } of what.copies) {
    const view = snapshot.instances.get(on);
    if (view?.instance.state !== 'ready') continue;
    const { job, stage, index, number } = running.attempt;
    const task: TaskRef = { job, stage, index };
    const attempt = attemptName(task, (running.attempts ?? number) + 1);
    const key = effectKey(`start/${attempt}`);
    const pace = slowdownKey(running.stage.preferences, view.pool);
    effects.push({ kind: 'start', key, attempt, task, instance: on, role: 'copy', reason: copy.reason, ...pace });
  }
  for (const r of what.releases) {
    effects.push({ kind: 'release', key: effectKey(`release/${r.instance}`), instance: r.instance, reason: r.reason });
  }
  return effects;
}

function launchesOf<S>(
  { snapshot, plan, forecasts }: Pick<DecideInput<S>, 'snapshot' | 'plan' | 'forecasts'>,
  { purchases, lots }: { readonly purchases: readonly Purchase[]; readonly lots: Lots },
): readonly Effect[] {
  return purchases.flatMap((p, i) => {
    const allocation = allocationKey(plan, i);
    const forecast = forecastAtPurchase(snapshot, forecasts.market, p);
    return Array.from({ length: p.count }, (_, n): Effect => {
      const { boughtFor = [], expectedS } = lots[i]?.[n] ?? {};
      return {
        kind: 'launch',
        key: launchKey(allocation, n),
        instance: instanceOf(allocation, n),
        allocation,
        pool: p.pool,
        bid: p.bid,
        reason: p.reason,
        ...(boughtFor.length === 0 ? {} : { boughtFor }),
        ...(expectedS === undefined ? {} : { expectedS }),
        ...(forecast === null ? {} : { forecast }),
      };
    });
  });
}

/** Number of pilots by group. Tasks of a group are alike: the first ones that start are pilots (`FreshTasks`). */
export function pilotsOf({ starts }: Pick<Allotment, 'starts'>): ReadonlyMap<GroupId, number> {
  const pilots = new Map<GroupId, number>();
  for (const { option, count, role } of starts)
    if (role === 'pilot') pilots.set(option.group, count + (pilots.get(option.group) ?? 0));
  return pilots;
}

/** Attempts of each task that was tried among these; others of the same index may be there too. */
function attemptsSoFar(snapshot: Snapshot, starts: readonly ReadyStart[]): ReadonlyMap<string, number> {
  const tried = new Map<string, number>();
  const again = starts.filter((s) => !s.fresh);
  if (again.length === 0) return tried;
  const indices = new Map<JobId, Set<number>>();
  for (const { task } of again) {
    const { job, index } = task;
    const of = indices.get(job);
    if (of === undefined) indices.set(job, new Set([index]));
    else of.add(index);
  }
  for (const t of snapshot.tasks) if (indices.get(t.job)?.has(t.index) === true) tried.set(taskKey(t), t.attempts);
  return tried;
}

interface ReadyStart {
  readonly task: TaskRef;
  readonly instance: InstanceId;
  readonly reason: string;
  /** True for a group of never-tried tasks. */
  readonly fresh: boolean;
  readonly isPilot: boolean;
  readonly stage: StageSpec;
}

/** Placements that can start now. A gang starts only when all of it is on instances that are up. */
function readyPlacements(
  snapshot: Snapshot,
  {
    placements,
    pilots,
    neighbours,
  }: {
    readonly placements: readonly Placement[];
    readonly pilots: ReadonlyMap<GroupId, number>;
    readonly neighbours: Neighbours | null;
  },
): ReadyStart[] {
  const isUp = (p: Placement): boolean => snapshot.instances.get(p.on)?.instance.state === 'ready';
  const gangs = new Set(snapshot.groups.filter((g) => g.stage.gang).map((g) => g.id));
  const held = new Set(placements.filter((p) => gangs.has(p.group) && !isUp(p)).map((p) => p.group));
  const placed = new Map<GroupId, number>();
  if (gangs.size > 0) for (const p of placements) placed.set(p.group, (placed.get(p.group) ?? 0) + 1);
  for (const g of snapshot.groups) {
    if (g.stage.gang && (placed.get(g.id) ?? 0) < g.count) held.add(g.id);
  }
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const ready = placements.filter((p) => isUp(p) && !held.has(p.group));
  const allowed =
    neighbours === null
      ? ready
      : allowedStarts(ready, neighbours, {
          isGang: (p) => gangs.has(p.group),
          isArrival: (p) => groups.get(p.group)?.goesTo !== undefined,
        });
  const started = new Map<GroupId, number>();
  const fresh = new FreshTasks(snapshot);
  return allowed.map((p) => {
    const group = invariant(groups.get(p.group), `a task of group ${p.group} is placed, which does not wait`);
    const nth = started.get(p.group) ?? 0;
    started.set(p.group, nth + 1);
    const isFresh = 'freshFrom' in group.members;
    const isPilot = nth < (pilots.get(group.id) ?? 0);
    const next = isFresh ? fresh.next(group, isPilot) : memberOf(group, nth);
    const index = invariant(next, `group ${p.group} has no task ${nth}`);
    const task: TaskRef = { job: p.task.job, stage: p.task.stage, index };
    return { task, instance: p.on, reason: p.reason, fresh: isFresh, isPilot, stage: group.stage };
  });
}

/**
 * Tasks of a group are alike, so its first tasks start. Fresh tasks must begin in their order, because StageProgress
 * keeps only the number of begun ones: the packer's order would skip tasks whose host is not up, and the fresh tasks of
 * a stage may be in several groups. A stage whose first task is a pilot draws them all at random.
 */
class FreshTasks {
  readonly #next = new Map<string, { readonly order: TaskOrder | null; readonly nth: number }>();

  constructor({ groups }: Pick<Snapshot, 'groups'>) {
    for (const { job, stage, members } of groups) {
      if (!('freshFrom' in members)) continue;
      const key = stageKey({ job, stage: stage.name });
      const nth = Math.min(this.#next.get(key)?.nth ?? Infinity, members.freshFrom);
      this.#next.set(key, { order: members.order ?? null, nth });
    }
  }

  next({ job, stage }: Pick<PendingGroup, 'job' | 'stage'>, isPilot: boolean): number | undefined {
    const key = stageKey({ job, stage: stage.name });
    const next = this.#next.get(key);
    if (next === undefined) return undefined;
    const { nth } = next;
    const order = nth === 0 && isPilot ? randomOrder(job, stage) : next.order;
    this.#next.set(key, { order, nth: nth + 1 });
    return taskAt(order, nth);
  }
}
