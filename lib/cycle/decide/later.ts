/** Demand by time: work that waits for later, in the order of its time, for purchases ahead of it. */
import { ascending, most, seconds } from '../../kernel/units.ts';
import type { Allotment } from '../../domain/plan.ts';
import type { DecisionContext, LaterDemand, Stages } from '../../policy/contracts.ts';
import { medianToDo } from './paid-starts.ts';

/**
 * Deferred starts of the plan, and work with an earliest start that has an offer, appraised as if it waited now.
 * O(deferred log(deferred)), and an appraisal of what is postponed.
 */
export function laterDemand<S>(
  stages: Pick<Stages<S>, 'value' | 'appraise'>,
  context: DecisionContext,
  { deferred }: Pick<Allotment, 'deferred'>,
): readonly LaterDemand[] {
  const { snapshot, forecasts, offers } = context;
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const planned = deferred.flatMap(({ option, count }): LaterDemand[] => {
    const group = groups.get(option.group);
    if (group === undefined) return [];
    const runtimeS = seconds(medianToDo(group, forecasts));
    return [{ group, option, count, runtimeS, fromMs: option.startMs, offers: offers.get(group.id)?.offers ?? [] }];
  });
  return [...planned, ...postponedDemand(stages, context)].sort((a, b) => ascending(a.fromMs, b.fromMs));
}

function postponedDemand<S>(
  stages: Pick<Stages<S>, 'value' | 'appraise'>,
  { snapshot, offers: _, ...context }: DecisionContext,
): readonly LaterDemand[] {
  const { postponed = [] } = snapshot;
  if (postponed.length === 0) return [];
  const waiting = { ...snapshot, groups: postponed.map((p) => p.group) };
  const worths = stages.value({ ...context, snapshot: waiting });
  const appraised = stages.appraise({ ...context, snapshot: waiting, worths });
  return postponed.flatMap(({ group, fromMs }): LaterDemand[] => {
    const offers = appraised.get(group.id)?.offers ?? [];
    const [offer] = offers;
    if (offer === undefined) return [];
    const startMs = most(fromMs, snapshot.nowMs);
    const option = { group: group.id, offer, slot: 0, startMs, worthUsd: 0, costUsd: offer.expectedCostUsd };
    const runtimeS = seconds(medianToDo(group, context.forecasts));
    return [{ group, option, count: group.count, runtimeS, fromMs: startMs, offers }];
  });
}
