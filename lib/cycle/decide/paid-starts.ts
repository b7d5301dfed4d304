import type { GroupId } from '../../kernel/ids.ts';
import { seconds } from '../../kernel/units.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type { Allotment, Placement } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import { quantileToDoS } from '../../domain/work-to-do.ts';
import type { OrderInput, OrderPolicy, Started } from '../../policy/contracts.ts';
import { MOST_ROUNDS, type Purse } from '../money/purse.ts';

/**
 * Starts with room whose jobs' limits pay for them. Room of refused starts goes to others: otherwise instances bought
 * for those would be released and bought again. O(starts) per round, one round without refusals.
 */
export function paidStarts(
  input: OrderInput,
  order: OrderPolicy,
  { arriving, purse }: { readonly arriving: readonly Placement[]; readonly purse: Purse },
): Started {
  const { offers, hosts } = input;
  const runtimeOf = (group: PendingGroup) => medianToDo(group, input.forecasts);
  const starts = purse.meantFor(input.allotment.starts, { offers, runtimeOf: (g) => seconds(runtimeOf(g)), hosts });
  let allotment = { ...input.allotment, starts };
  for (let round = 1; ; round++) {
    const wanted = order({ ...input, allotment });
    const giveBack = purse.remembered();
    const placing = [...arriving, ...wanted.placements];
    const placements = purse.placed(placing, runtimeOf);
    if (placements.length === placing.length || round >= MOST_ROUNDS) return { ...wanted, placements };
    const kept = new Set(placements);
    const refused = new Map<GroupId, number>();
    for (const p of placing) if (!kept.has(p)) refused.set(p.group, (refused.get(p.group) ?? 0) + 1);
    giveBack(new Set([...refused.keys()].flatMap((id) => input.groups.get(id)?.job ?? [])));
    allotment = { ...allotment, starts: startsWithout(allotment.starts, refused) };
  }
}

/** Fewer starts of some groups. */
function startsWithout(starts: Allotment['starts'], fewer: ReadonlyMap<GroupId, number>): Allotment['starts'] {
  const left = new Map(fewer);
  return starts.flatMap((s) => {
    const less = Math.min(s.count, left.get(s.option.group) ?? 0);
    left.set(s.option.group, (left.get(s.option.group) ?? 0) - less);
    return less === 0 ? [s] : less === s.count ? [] : [{ ...s, count: s.count - less }];
  });
}

/** A task's own running time still to come, seconds: the median. */
export function medianToDo(group: PendingGroup, { runtime }: Forecasts): number {
  const forecast = runtime.get(`${group.job}/${group.stage.name}`);
  return forecast === undefined ? 0 : quantileToDoS(forecast.runtime, group, 0.5);
}
