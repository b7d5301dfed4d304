/** The last word on starts: those that rules allow beside all that lives and all that starts with them. */
import { stageKey } from '../../domain/job.ts';
import type { Placement } from '../../domain/plan.ts';
import type { Neighbours, RuledStage, Site } from './neighbours.ts';

interface Ruled {
  readonly placement: Placement;
  readonly of: RuledStage;
  readonly site: Site;
}

/**
 * Starts that the rules allow, those that no rule concerns first; of a gang all or none. Zones of a stage take turns,
 * the one with the fewest first, so that as many start as may. What arrives by a move was allowed when it left.
 * O(starts x zones).
 */
export function allowedStarts(
  starts: readonly Placement[],
  neighbours: Neighbours,
  { isGang, isArrival }: { readonly isGang: (p: Placement) => boolean; readonly isArrival: (p: Placement) => boolean },
): readonly Placement[] {
  const ruled = starts.flatMap((placement): Ruled[] => {
    const of = isArrival(placement) ? null : neighbours.of(placement.task);
    const site = of === null ? null : neighbours.siteOf(placement.on);
    return of === null || site === null ? [] : [{ placement, of, site }];
  });
  if (ruled.length === 0) return starts;
  const taken: Ruled[] = [];
  const takes = ({ of, site }: Ruled): boolean =>
    neighbours.mostIn(of, site.zone) >= 1 && site.on !== null && neighbours.mostOn(of, site.on) >= 1;
  const take = (r: Ruled): boolean => {
    if (!takes(r)) return false;
    neighbours.add(r.of, r.site);
    taken.push(r);
    return true;
  };
  for (const stage of Map.groupBy(ruled, (r) => stageKey(r.placement.task)).values()) {
    const [first] = stage;
    if (first === undefined) continue;
    if (!isGang(first.placement)) {
      inTurn(stage, take);
      continue;
    }
    const before = taken.length;
    if (stage.every(take)) continue;
    for (const { of, site } of taken.splice(before)) neighbours.add(of, site, -1);
  }
  for (const { of, site } of taken) neighbours.add(of, site, -1);
  const known = new Set(ruled.map((r) => r.placement));
  return [...starts.filter((p) => !known.has(p)), ...taken.map((r) => r.placement)];
}

/** Starts of one stage, always in the zone with the fewest of it. */
function inTurn(stage: readonly Ruled[], take: (r: Ruled) => boolean): void {
  const queues = [...Map.groupBy(stage, (r) => r.site.zone)].map(([zone, of]) => ({ zone, of, next: 0 }));
  const { live } = (stage[0] as Ruled).of;
  for (;;) {
    const open = queues.filter((q) => q.next < q.of.length);
    const [first] = open;
    if (first === undefined) return;
    const queue = open.reduce((a, b) => (live.in('zone', b.zone) < live.in('zone', a.zone) ? b : a), first);
    take(queue.of[queue.next++] as Ruled);
  }
}
