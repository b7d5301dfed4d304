/**
 * Removes exchanges within a stage. A plan counts room by pool and running times in slots, so it may preempt some tasks
 * of a stage and start as many others of it in the same pool. All of them have to run: nothing is gained, work is
 * redone, and the next plan would exchange them once more.
 */
import { invariant } from '../../kernel/errors.ts';
import type { GroupId } from '../../kernel/ids.ts';
import type { Allotment } from '../../domain/plan.ts';
import type { PlanPolicy } from '../../policy/contracts.ts';
import { runningNamed, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';

type Preemption = Allotment['preemptions'][number];

/**
 * The same policy without such pairs; their tasks wait. O(preemptions + starts + running), nothing without
 * preemptions.
 */
export const withoutExchanges =
  <S>(plan: PlanPolicy<S>): PlanPolicy<S> =>
  async (input, solver) => {
    const { snapshot } = input;
    const allotment = await plan(input, solver);
    if (allotment.preemptions.length === 0) return allotment;
    return withoutPairs(allotment, snapshot, new Map(snapshot.groups.map((g) => [g.id, g])));
  };

function withoutPairs(allotment: Allotment, snapshot: Snapshot, groups: ReadonlyMap<GroupId, PendingGroup>): Allotment {
  const stopped = stoppedByPlace(allotment.preemptions, snapshot);
  const exchangedStops = new Set<Preemption>();
  const starts: Allotment['starts'][number][] = [];
  const waits = [...allotment.waits];
  for (const start of allotment.starts) {
    const { group, offer } = start.option;
    const { job, stage } = invariant(groups.get(group), `the plan starts group ${group}, which does not wait`);
    const alike = stage.gang ? [] : (stopped.get(`${job}/${stage.name} ${offer.pool}`) ?? []);
    const exchanged = alike.splice(Math.max(0, alike.length - start.count));
    for (const p of exchanged) exchangedStops.add(p);
    const count = start.count - exchanged.length;
    if (count > 0) starts.push({ ...start, count });
    if (exchanged.length > 0 && !waits.some((w) => w.group === group)) {
      const detail = `other tasks of its stage run in ${offer.pool}, and there is no room for more`;
      waits.push({ group, count: exchanged.length, why: 'capacity', detail });
    }
  }
  if (exchangedStops.size === 0) return allotment;
  return { ...allotment, starts, waits, preemptions: allotment.preemptions.filter((p) => !exchangedStops.has(p)) };
}

/** Stops of the plan, by stage and pool. */
function stoppedByPlace(preemptions: readonly Preemption[], snapshot: Snapshot): Map<string, Preemption[]> {
  const running = runningNamed(
    snapshot,
    preemptions.map((p) => p.attempt),
  );
  const stopped = new Map<string, Preemption[]>();
  for (const p of preemptions) {
    const { attempt } = invariant(running.get(p.attempt), `the plan stops attempt ${p.attempt}, which does not run`);
    const pool = snapshot.instances.get(attempt.instance)?.pool.id;
    if (pool === undefined) continue;
    const key = `${attempt.job}/${attempt.stage} ${pool}`;
    const there = stopped.get(key);
    if (there === undefined) stopped.set(key, [p]);
    else there.push(p);
  }
  return stopped;
}
