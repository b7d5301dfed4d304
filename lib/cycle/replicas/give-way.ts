/**
 * Best-effort tasks give way to replicas in seconds: their headroom is that of the service too. A plan prefers to buy
 * where it may, for work can wait for an instance; requests cannot. So it may stop as many of these tasks as the
 * replicas that wait need room, the cheapest to do again first. Free room is taken first: what no start needs runs on.
 */
import { countFits, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { Allotment, PlanInput, PlanPolicy } from '../../policy/contracts.ts';
import { preemptible, type Preemptible } from '../../stages/plan/preempt.ts';
import { bestEffortWhere } from './room.ts';

const REASON = 'a replica of a service needs its room: requests cannot wait for an instance, and this work can';

/** O(running tasks log running tasks) where replicas wait. */
export const givingWay =
  <S>(plan: PlanPolicy<S>): PlanPolicy<S> =>
  async (input, solver) => {
    const allotment = await plan(input, solver);
    const preemptions = new Map(allotment.preemptions.map((p) => [p.attempt, p]));
    const moving = new Set(allotment.moves.map((m) => m.running.attempt.id));
    for (const { class: kind, stage, count } of input.snapshot.groups) {
      if (kind !== 'service') continue;
      for (const { running } of cheapest(stage, count, input, (id) => preemptions.has(id) || moving.has(id))) {
        preemptions.set(running.attempt.id, { attempt: running.attempt.id, reason: REASON });
      }
    }
    return preemptions.size === allotment.preemptions.length
      ? allotment
      : { ...allotment, preemptions: [...preemptions.values()] };
  };

type Attempt = Allotment['preemptions'][number]['attempt'];

/** Tasks that make room for so many replicas, as far as there are any. */
function cheapest(
  stage: StageSpec,
  count: number,
  input: PlanInput,
  isTaken: (attempt: Attempt) => boolean,
): readonly Preemptible[] {
  const sets: { readonly tasks: readonly Preemptible[]; readonly usd: number }[] = [];
  for (const { view, tasks } of bestEffortWhere(stage, input.snapshot)) {
    const others = tasks.filter((r) => !isTaken(r.attempt.id));
    const there = others.flatMap((r) => preemptible(r, view, input) ?? []).sort((a, b) => a.costUsd - b.costUsd);
    sets.push(...setsOf(there, stage.resources));
  }
  return sets
    .sort((a, b) => a.usd - b.usd)
    .slice(0, count)
    .flatMap((set) => set.tasks);
}

/** Tasks of an instance in sets, each of which makes room for a replica. */
function setsOf(there: readonly Preemptible[], need: Resources) {
  const sets: { readonly tasks: readonly Preemptible[]; readonly usd: number }[] = [];
  let [tasks, room]: [Preemptible[], Resources] = [[], NO_RESOURCES];
  for (const task of there) {
    tasks.push(task);
    room = plusResources(room, task.running.attempt.resources);
    if (countFits(need, room) < 1) continue;
    sets.push({ tasks, usd: tasks.reduce((usd, t) => usd + t.costUsd, 0) });
    [tasks, room] = [[], NO_RESOURCES];
  }
  return sets;
}
