/**
 * Instances for replicas of services, beside those for jobs: which pools, which bids, and how many replicas beyond
 * those that the load needs, because some may be lost (Tributary, sections 2.2.2 and 2.2.3). One acquirer buys for all:
 * what a service asks for here is bought by the same plan, within the same limits, as instances for jobs; and replicas
 * first take room on instances that are there.
 */
import type { StageSpec } from '../../domain/job.ts';
import type { Purchase } from '../../domain/plan.ts';
import { SERVICE_LABEL, type ServiceNeed, type ServicePlan } from '../../domain/service.ts';
import type { Leftover, ScalePolicy } from '../../policy/contracts.ts';
import { demandOf, serviceOf, type Acquiring, type Known, type Priced } from './demand.ts';
import { relocationOf } from './relocation.ts';
import { roomThatGivesWay } from './room.ts';

/** Most spare replicas, over those that the load needs: beyond that a market is no place for a service. */
const MOST_SPARE = 1;

/** The same policy for jobs; replicas without room get instances as the footprint policy says, as far as it says. */
export const scaleReplicas =
  (scale: ScalePolicy, { footprint, buys }: Acquiring): ScalePolicy =>
  (input) => {
    // Replicas that relocate others have constraints of their own.
    const alike = Map.groupBy(input.leftovers, ({ group }) => {
      const name = serviceOf(group.job, input.snapshot);
      return name === null ? null : `${name} ${JSON.stringify(group.stage.constraints)}`;
    });
    const bought: Purchase[] = [];
    const left: Leftover[] = [...(alike.get(null) ?? [])];
    for (const [key, of] of alike) {
      if (key === null) continue;
      const [first] = of;
      const name = first === undefined ? null : serviceOf(first.group.job, input.snapshot);
      const need = name === null ? undefined : input.snapshot.services?.get(name);
      if (need === undefined || first === undefined) left.push(...of);
      else {
        const covered = cover(of, changeFor(need, first.group.stage, { ...input, footprint, ...(buys && { buys }) }));
        bought.push(...covered.purchases);
        left.push(...covered.left);
      }
    }
    if (bought.length === 0) return scale(input);
    const rest = scale({ ...input, leftovers: left });
    return { ...rest, purchases: [...bought, ...rest.purchases] };
  };

/** Purchases in the order of the policy until all replicas have room; replicas beyond are left. */
function cover(of: readonly Leftover[], { change, fits }: Priced) {
  let open = of.reduce((n, l) => n + l.count, 0);
  const purchases: Purchase[] = [];
  for (const { pool, bid, count, reason } of change.buy) {
    const each = fits(pool);
    const instances = Math.min(count, Math.ceil(open / Math.max(1, each)));
    if (instances < 1 || each < 1) continue;
    open = Math.max(0, open - instances * each);
    purchases.push({ pool, bid, count: instances, reason: `for replicas of a service: ${reason}` });
  }
  const left: Leftover[] = [];
  for (const l of [...of].reverse()) {
    const count = Math.min(open, l.count);
    if (count > 0) left.unshift({ ...l, count });
    open -= count;
  }
  return { purchases, left };
}

/** Plans of each service that runs. O(services x pools x bids x instances). */
export function servicePlansOf(known: Known, acquiring: Acquiring): readonly ServicePlan[] {
  const { snapshot } = known;
  const stages = new Map<string, StageSpec>();
  for (const { spec } of snapshot.jobs.values()) {
    const name = spec.class === 'service' ? spec.labels[SERVICE_LABEL] : undefined;
    const [stage] = spec.stages;
    if (name !== undefined && stage !== undefined) stages.set(name, stage);
  }
  return [...stages].flatMap(([name, of]): ServicePlan[] => {
    const need = snapshot.services?.get(name);
    if (need === undefined || need.needed === 0) return [];
    const stage = need.stage ?? of;
    const asked = demandOf(need, stage, { ...known, ...acquiring });
    const priced = { ...asked, change: acquiring.footprint(asked.context) };
    const spare = Math.max(0, spareOf(need, priced) - roomThatGivesWay(stage, snapshot));
    return [{ service: name, spare, relocation: relocationOf(name, priced, { ...known, ...acquiring }) }];
  });
}

/** Replicas beyond those that are needed. */
function spareOf({ needed }: ServiceNeed, { change, fits, held }: Priced): number {
  const released = new Set(change.release.map((r) => r.instance));
  const stays = held.reduce((sum, h) => (released.has(h.id) ? sum : sum + (h.units ?? 0)), 0);
  const comes = change.buy.reduce((sum, { pool, count }) => sum + count * fits(pool), 0);
  // A last instance may have room for more than is asked for.
  const largest = change.buy.reduce((most, { pool }) => Math.max(most, fits(pool)), 1);
  const wanted = stays + Math.max(0, comes - (largest - 1));
  return Math.min(Math.ceil(MOST_SPARE * needed), Math.max(0, wanted - needed));
}

/** What the policy buys, with empty instances counted as held: they were bought for replicas that still wait. */
const changeFor = (need: ServiceNeed, stage: StageSpec, known: Known & Acquiring): Priced => {
  const { context, fits, held, empty } = demandOf(need, stage, known);
  return { change: known.footprint({ ...context, held: [...held, ...empty] }), fits, held };
};
