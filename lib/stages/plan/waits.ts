/** Reason why a group, or a part of it, does not start now: one from a closed list, and a sentence with numbers. */
import { once } from '../../kernel/once.ts';
import { isoOf, plus, raw, seconds, type EpochMs } from '../../kernel/units.ts';
import type { Allotment, WaitReason } from '../../domain/plan.ts';
import { milliCpuOf, vcpusOf, type PoolView } from '../../domain/pool.ts';
import { quotaOf } from '../../domain/quota.ts';
import { countFits, milliCpuIn } from '../../domain/resources.ts';
import { tasksBy, type Selection } from './fill.ts';
import type { DeadlineAnswer } from './deadline-choice.ts';
import type { PlannedOption } from './options.ts';
import { atOnceMilliCpu, usdText, type GroupChoices, type Problem } from './problem.ts';

type Wait = Allotment['waits'][number];
interface Why {
  readonly why: WaitReason;
  readonly detail: string;
  readonly quota?: string;
}

export function waitsOf(problem: Problem, selection: Selection): readonly Wait[] {
  const sharesLeft = once(() => sharesLeftBy(problem, selection));
  return problem.groups.flatMap((entry) => {
    const planned = entry.choices.map((index) => ({
      slot: problem.choices[index]?.planned.option.slot ?? 0,
      option: problem.choices[index]?.planned,
      count: tasksBy(selection, index),
    }));
    const now = planned.filter((p) => p.slot === 0).reduce((sum, p) => sum + p.count, 0);
    const waiting = entry.group.count - Math.round(now);
    if (waiting < 1) return [];
    const later =
      planned.filter((p) => p.slot > 0 && p.count > 0.5).sort((a, b) => b.count - a.count)[0]?.option ?? null;
    return [
      {
        group: entry.group.id,
        count: waiting,
        ...(shareUsedUp(problem, entry, sharesLeft) ?? why(problem, entry, later)),
      },
    ];
  });
}

/** mCPU that each owner or queue may still start after this cycle's starts. O(choices). */
function sharesLeftBy({ shares, choices, groups }: Problem, selection: Selection): ReadonlyMap<string, number> {
  const left = new Map(shares.partitions.map(({ id, capacity }) => [id, capacity[0]?.[0] ?? 0]));
  choices.forEach((choice, index) => {
    const group = groups[choice.group]?.group;
    if (group === undefined || choice.planned.option.slot > 0) return;
    for (const { partition, perUnit } of shares.drawOf(group))
      left.set(partition, (left.get(partition) ?? 0) - tasksBy(selection, index) * (perUnit[0] ?? 0));
  });
  return left;
}

/** Reason if the others' shares keep a group from starting; null: they do not. */
function shareUsedUp(
  { shares, input }: Problem,
  { group, overBudget }: GroupChoices,
  sharesLeft: () => ReadonlyMap<string, number>,
): Why | null {
  const [draw] = shares.partitions.length === 0 || overBudget !== null ? [] : shares.drawOf(group);
  if (draw === undefined || (sharesLeft().get(draw.partition) ?? Infinity) >= (draw.perUnit[0] ?? 0)) return null;
  const who = input.config.fairShares === 'owner' ? 'its owner' : 'its queue';
  return {
    why: 'capacity',
    detail: `${who} has its fair share of the vCPUs, and what is left is due to others that wait too (fairShares)`,
  };
}

function why(problem: Problem, entry: GroupChoices, later: PlannedOption | null): Why {
  const { input } = problem;
  const offers = input.offers.get(entry.group.id);
  if (entry.overBudget !== null) return { why: 'budget', detail: entry.overBudget };
  if (offers === undefined || offers.offers.length === 0) return noOffer(offers?.excluded ?? []);
  const now = best(entry.options, (slot) => slot === 0);
  const after = best(entry.options, (slot) => slot > 0);
  const bestNow = now?.netUsd ?? -Infinity;
  if (bestNow <= 0 && (after?.netUsd ?? 0) <= 0) return tooDear(now ?? after);
  const cheaper = later !== null && later.netUsd > bestNow ? later : bestNow <= 0 ? after : null;
  if (cheaper !== null) return cheaperLater(problem, cheaper, now);
  return noRoom(problem, entry, later);
}

function best(options: readonly PlannedOption[], slots: (slot: number) => boolean): PlannedOption | null {
  let found: PlannedOption | null = null;
  for (const planned of options) {
    if (slots(planned.option.slot) && planned.netUsd > (found?.netUsd ?? -Infinity)) found = planned;
  }
  return found;
}

function noOffer(excluded: readonly { readonly constraint: string; readonly pools: number }[]): Why {
  if (excluded.length === 0) return { why: 'capacity', detail: 'no pool that could run it quotes a price now' };
  const list = excluded.map((e) => `${e.constraint} excludes ${count(e.pools, 'pool')}`).join(', ');
  return { why: 'constraint', detail: `no pool is left to run it: ${list}` };
}

function tooDear(option: PlannedOption | null): Why {
  if (option === null) return { why: 'capacity', detail: 'no pool that could run it is known to the market' };
  const { worthUsd, costUsd, offer } = option.option;
  return {
    why: 'price',
    detail:
      `finishing a task is expected to be worth ${usdText(worthUsd)}, and the best offer (${offer.pool} at ` +
      `${usdText(raw(offer.priceUsdPerHour))} per hour) would cost ${usdText(costUsd)}`,
  };
}

function cheaperLater({ input }: Problem, later: PlannedOption, now: PlannedOption | null): Why {
  const { option } = later;
  if (option.offer.opens !== undefined) return waitsForSpot(input, later, now);
  const inText = `in ${minutes(option.slot * input.config.slotS)}`;
  const then = `${option.offer.pool} is expected to cost ${usdText(option.costUsd)} a task ${inText}`;
  const instead = now === null ? '' : `, against ${usdText(now.option.costUsd)} on ${now.option.offer.pool} now`;
  return { why: 'cheaper-later', detail: `${then}${instead}` };
}

/** Without an open spot pool a group waits for one in back-off, while the deadline allows. */
function waitsForSpot(
  { snapshot }: Problem['input'],
  { option, answer }: PlannedOption,
  now: PlannedOption | null,
): Why {
  const { pool, opens } = option.offer;
  const quota = snapshot.pools.find((view) => view.pool.id === pool)?.backOff?.quota;
  const closed =
    quota === undefined
      ? 'no spot pool that suits it gives capacity now'
      : `the account's vCPU quota ${quota} is used up, as its last refusal says`;
  const instead = now === null ? '' : `, against ${usdText(now.option.costUsd)} on ${now.option.offer.pool} now`;
  const chance = `${Math.round(100 * (opens?.p ?? 1))} %`;
  const risk = answer === undefined ? '' : `; ${riskOfWaiting(answer, snapshot.nowMs)}`;
  return {
    why: 'cheaper-later',
    detail:
      `${closed}; ${pool} is tried again later (chance ${chance}), ` +
      `so that a task is expected to cost ${usdText(option.costUsd)}${instead}${risk}`,
    ...(quota === undefined ? {} : { quota }),
  };
}

/** Dollars that waiting risks, and until when, by the deadline program. */
function riskOfWaiting({ choice, wait }: DeadlineAnswer, nowMs: EpochMs): string {
  if (choice === null) return 'its last safe start has come';
  const { lastsS, thenUsd } = wait();
  const risksUsd = Math.max(0, thenUsd - choice.onDemandUsd);
  return (
    `to the end, waiting is expected to cost ${usdText(choice.stayUsd)} and on-demand now ` +
    `${usdText(choice.onDemandUsd)}; it waits until ${isoOf(plus(nowMs, seconds(lastsS)))} at most, ` +
    `and risks ${usdText(risksUsd)} more than on-demand now, if no spot comes by then`
  );
}

function noRoom(problem: Problem, entry: GroupChoices, later: PlannedOption | null): Why {
  const { capacity, input } = problem;
  const limit = capacity.limitMilliCpu / 1000;
  const free = capacity.headroomMilliCpu / 1000;
  const next = later === null ? '' : `; expected to start in ${minutes(later.option.slot * input.config.slotS)}`;
  const quota = `${tidy(limit - free)} of ${tidy(limit)} vCPUs are taken`;
  const closed = closedPools(problem, entry);
  if (closed !== null) return { why: 'capacity', ...closed, detail: `${closed.detail}${next}` };
  if (entry.gang) {
    const needs = tidy((entry.group.count * milliCpuIn(entry.group.need)) / 1000);
    const lacks = quotaTooSmall(problem, entry) ?? { detail: quota };
    const detail = `its ${entry.group.count} tasks start together and need ${needs} vCPUs at once; ${lacks.detail}${next}`;
    return { why: 'gang', ...lacks, detail };
  }
  const machines = [...new Set(entry.options.map((o) => vcpusOf(o.pool)))];
  const smallest = machines.reduce((least, x) => Math.min(least, x), Infinity);
  const each =
    smallest > free
      ? `the smallest instance it may use has ${count(smallest, 'vCPU')}`
      : 'other work brings more for the room that is left';
  return { why: 'capacity', detail: `${quota}, and ${each}${next}` };
}

/** Reason if no quota bears a whole gang at once in any pool it might use; names the pool that bears most. */
function quotaTooSmall(problem: Problem, { group, options }: GroupChoices): Omit<Why, 'why'> | null {
  const pools = new Set(options.map((o) => o.pool.id));
  const views = problem.input.snapshot.pools.filter((view) => pools.has(view.pool.id));
  if (views.some((view) => tasksAtOnce(group, view) >= group.count)) return null;
  const [most] = views.toSorted((a, b) => (b.quota?.boundMilliCpu ?? 0) - (a.quota?.boundMilliCpu ?? 0));
  if (most?.quota === undefined) return null;
  const { usedMilliCpu, boundMilliCpu } = most.quota;
  const quota = quotaOf(most.pool.id);
  const detail =
    `the account's vCPU quota ${quota} refused ${tidy(boundMilliCpu / 1000)} at once and has ` +
    `${tidy(usedMilliCpu / 1000)} in use: ask AWS for a higher one, or make the gang smaller; it is tried again within the hour`;
  return { quota, detail };
}

/** Number of tasks that fit on new machines of a pool within its quota. */
const tasksAtOnce = ({ need }: GroupChoices['group'], view: PoolView): number =>
  Math.floor(atOnceMilliCpu(view, 0) / milliCpuOf(view.pool)) * countFits(need, view.pool.type.capacity);

/** Reason if every pool it might use now is closed. */
function closedPools(problem: Problem, entry: GroupChoices): Omit<Why, 'why'> | null {
  const { snapshot } = problem.input;
  const now = new Set(entry.options.filter((o) => o.option.slot === 0).map((o) => o.pool.id));
  const views = snapshot.pools.filter((view) => now.has(view.pool.id));
  if (views.length === 0 || views.some((view) => view.open && view.quote !== null)) return null;
  // A quota is named before a lack of capacity, because a person can raise it.
  const named = views.find((view) => view.backOff?.quota !== undefined) ?? views[0];
  const reason = named?.closedReason ?? 'no price is quoted';
  const detail = `none of the ${count(views.length, 'pool')} that suit it can be bought now (${named?.pool.id}: ${reason})`;
  const quota = named?.backOff?.quota;
  return { detail, ...(quota === undefined ? {} : { quota }) };
}

const tidy = (x: number): string => String(Math.round(x * 10) / 10);
const count = (n: number, what: string): string => `${tidy(n)} ${what}${n === 1 ? '' : 's'}`;
const minutes = (s: number): string => (s < 90 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`);
