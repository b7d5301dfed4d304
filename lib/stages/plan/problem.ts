/**
 * The plan's problem in one flat form, the source of the greedy fill, the Lagrangian bound and the STRL expression. It
 * has choices (tasks of a group, on an offer, from a slot, in free room or on new instances), kills (preemptible work)
 * and their shared supply. Groups, offers, pools and attempts are in an order of their own, so that a plan does not
 * depend on the order of its input.
 */

import type { JobId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import { countFits, vector, milliCpuIn, type Resources } from '../../domain/resources.ts';
import { milliCpuOf, type Pool, type PoolView } from '../../domain/pool.ts';
import { limitOf, type PendingGroup } from '../../domain/snapshot.ts';
import type { Move, PlanInput } from '../../policy/contracts.ts';
import { QUOTA, budgetOf, capacityOf, fittings, type Capacity, type Fitting, type Room } from './supply.ts';
import { killsOf, releasesOf, type Kill, type Kills } from './kills.ts';
import {
  GUARDED,
  optionContext,
  startOptions,
  type OptionContext,
  type PlannedOption,
  type StartRules,
} from './options.ts';
import { CommonDraws } from './common-draws.ts';
import { fairSharesOf, NO_SHARES, type FairShares } from './fair-shares.ts';
import { shortJobsFirst } from '../../policy/short-jobs.ts';
import { slotsUntilFree } from './preempt.ts';
import { supplyRows, type Draw, type Partition, type RowUse, type Supply, type SupplyRows } from './strl/supply.ts';

/**
 * Discount (fraction of the cost) of a start in free room: the instance is paid for whether used or not, and a plan
 * that changes pools between cycles would leave new instances idle. Only for starts now: room that comes free later is
 * released if nobody takes it, and waiting for it would use up slack, to be bought back at on-demand prices.
 */
export const ROOM_CREDIT = 0.05;

export interface ChoiceMember {
  readonly name: 'room' | 'new';
  readonly use: RowUse;
  readonly atMost: number;
}

/** One member of each name. */
export const MOST_MEMBERS = 2;

/** Tasks of a group by one option. Divisible groups have one member per choice; a gang's may come from both at once. */
export interface Choice {
  readonly group: number;
  readonly planned: PlannedOption;
  /** What a task brings, > 0: US dollars, times the priority of its job (short-jobs.ts). */
  readonly netUsd: number;
  readonly members: readonly ChoiceMember[];
}

export interface GroupChoices {
  readonly group: PendingGroup;
  readonly gang: boolean;
  /** Indices into `choices`, best first. */
  readonly choices: readonly number[];
  /** All options, including those with a net loss: for reasons. */
  readonly options: readonly PlannedOption[];
  /** Not over budget, or why. */
  readonly overBudget: string | null;
}

export interface Problem {
  readonly input: PlanInput;
  readonly capacity: Capacity;
  readonly supply: Supply;
  readonly rows: SupplyRows;
  readonly groups: readonly GroupChoices[];
  readonly choices: readonly Choice[];
  readonly kills: readonly Kill[];
  readonly moves: readonly Move[];
  readonly shares: FairShares;
}

/** The input of a plan that starts what it can now and plans nothing later: no other slots are worked out. */
export const nowAlone = (input: PlanInput): PlanInput => ({
  ...input,
  config: { ...input.config, lookAheadSlots: 1 },
});

/** Start options of a plan: beyond so many its window has fewer slots, at least this cycle's. */
const MOST_OPTIONS = 200_000;

/**
 * The input of a plan of very many groups with a shorter window: time is linear in options. What would have been put
 * off to a later slot starts now, or is decided in a later cycle.
 */
export function withinOptions(input: PlanInput): PlanInput {
  const { config, snapshot } = input;
  const perSlot = snapshot.groups.length * config.offersPerGroup;
  const slots = Math.max(1, Math.min(config.lookAheadSlots, Math.floor(MOST_OPTIONS / Math.max(1, perSlot))));
  return slots === config.lookAheadSlots ? input : { ...input, config: { ...config, lookAheadSlots: slots } };
}

/** Room for the moves that were proposed is kept before anything else gets some. */
export function problemOf(input: PlanInput, rules: StartRules = GUARDED): Problem {
  const { moves = [] } = input;
  const capacity = capacityOf(input, reservedFor(moves));
  const context = optionContext(input, capacity, rules);
  const groups = [...input.snapshot.groups].sort((a, b) => (a.id < b.id ? -1 : 1));
  const options = groups.map((group) => startOptions(group, context));
  const over = overBudgets(context, groups, options);
  const lacksRoom = mayLackRoom(groups, options, { capacity, context });
  const { kills: killDrafts, partitions: killPartitions } = lacksRoom ? stopsUnder(rules)(capacity) : NO_KILLS;

  const partitions: Partition[] = [capacity.quota, ...roomsAsked(capacity, lacksRoom ? null : options)];
  for (const [job, left] of context.leftUsd) {
    partitions.push({ id: budgetOf(job), renewable: false, kinds: ['usd'], capacity: [[left]] });
  }
  const fitting = fittings();
  const shares = lacksRoom ? fairSharesOf(input, startableOf({ groups, options, capacity, context })) : NO_SHARES;
  const supply: Supply = {
    slots: capacity.slots,
    partitions: [...partitions, ...shares.partitions, ...killPartitions],
  };
  const rows = supplyRows(supply);
  const from = slotsUntilFree(input.config);
  const kills = killDrafts
    .filter((kill) => kill.slots > from)
    .map((kill): Kill => ({ ...kill, use: rows.use(kill.draws, from, kill.slots) }));
  const returnable = kills.reduce(
    (sum, kill) => sum + kill.atMost * Math.max(0, kill.draws.find((d) => d.partition === QUOTA)?.perUnit[0] ?? 0),
    0,
  );
  const build: Build = {
    capacity,
    fitting,
    context,
    rows,
    shares,
    common: new CommonDraws(),
    priority: lacksRoom && input.config.shortJobsFirst && !rules.hasOrder ? shortJobsFirst(input) : null,
    quotaMilliCpu: capacity.headroomMilliCpu + returnable,
  };
  const choices: Choice[] = [];
  const entries = groups.map((group, index): GroupChoices => {
    const mine = options[index] ?? [];
    const overBudget = over.get(group.job) ?? null;
    const made = overBudget === null ? choicesOf(group, index, mine, build) : [];
    const first = choices.length;
    choices.push(...made);
    return { group, gang: isGang(group), choices: made.map((_, i) => first + i), options: mine, overBudget };
  });
  return { input, capacity, supply, rows, groups: entries, choices, kills, moves, shares };
}

/**
 * Rooms of the pools that anything may start in; of all pools (`options` null) if running work may be preempted. In the
 * order of pools.
 */
function roomsAsked(capacity: Capacity, options: readonly (readonly PlannedOption[])[] | null): Partition[] {
  const asked = options === null ? null : new Set(options.flatMap((of) => of.map((o) => o.pool.id)));
  return [...capacity.rooms].flatMap(([pool, room]) => (asked === null || asked.has(pool) ? [room.partition()] : []));
}

const NO_KILLS: Kills = { kills: [], partitions: [] };
const stopsUnder = ({ hasOrder }: StartRules): ((capacity: Capacity) => Kills) => (hasOrder ? releasesOf : killsOf);

/**
 * True if some work may find no room: all waiting work, each group at its largest option, in whole machines, against
 * the free quota. If all of it can be bought, nothing has to be preempted and running work need not be appraised:
 * O(options) instead of O(running attempts). Work that may only use closed pools may need room there.
 */
function mayLackRoom(
  groups: readonly PendingGroup[],
  options: readonly (readonly PlannedOption[])[],
  { capacity, context }: Pick<Build, 'capacity' | 'context'>,
): boolean {
  let milliCpu = 0;
  for (const [index, group] of groups.entries()) {
    const mine = options[index] ?? [];
    let most = 0;
    for (const { pool } of mine) {
      const perMachine = countFits(group.need, pool.type.capacity);
      if (perMachine < 1) continue;
      most = Math.max(most, Math.ceil(group.count / Math.min(perMachine, group.count)) * milliCpuOf(pool));
    }
    milliCpu += most;
    const now = mine.filter((o) => o.option.slot === 0);
    if (now.length > 0 && !now.some(({ pool }) => isBuyable(group, pool, context))) return true;
  }
  return milliCpu > capacity.headroomMilliCpu;
}

/** Tasks that fit on a room's instances beside what runs. O(instances of the room), once for each distinct need. */
function besideRunning(): (need: PendingGroup['need'], room: Room) => number {
  const known = new Map<Room, Map<string, number>>();
  return (need, room) => {
    let of = known.get(room);
    if (of === undefined) known.set(room, (of = new Map<string, number>()));
    const key = vector(need).join();
    let count = of.get(key);
    if (count === undefined) {
      count = 0;
      for (let i = 0; i < room.count; i++) count += countFits(need, room.free(i));
      of.set(key, count);
    }
    return count;
  };
}

/** Tasks of a group that could start now, if nothing else did: in room, or in what can be bought. */
function startableOf({
  groups,
  options,
  capacity,
  context,
}: Pick<Build, 'capacity' | 'context'> & {
  readonly groups: readonly PendingGroup[];
  readonly options: readonly (readonly PlannedOption[])[];
}): (group: PendingGroup) => number {
  const position = new Map(groups.map((group, index) => [group.id, index]));
  const fitting = besideRunning();
  return (group) => {
    let most = 0;
    for (const { option, pool } of options[position.get(group.id) ?? -1] ?? []) {
      if (option.slot > 0 || most >= group.count) continue;
      const room = capacity.rooms.get(pool.id);
      if (room !== undefined) most = Math.max(most, Math.min(group.count, fitting(group.need, room)));
      if (!isBuyable(group, pool, context)) continue;
      const there = context.pools.get(pool.id)?.reservedLeft ?? Infinity;
      const machines = Math.min(there, Math.floor(capacity.headroomMilliCpu / milliCpuOf(pool)));
      most = Math.min(group.count, Math.max(most, machines * countFits(group.need, pool.type.capacity)));
    }
    return most;
  };
}

function isBuyable(group: PendingGroup, pool: Pool, context: OptionContext): boolean {
  const view = context.pools.get(pool.id);
  return view?.open === true && view.quote !== null && countFits(group.need, pool.type.capacity) >= 1;
}

export const isGang = (group: PendingGroup): boolean => group.stage.gang && group.count > 1;

/** New capacity that moving attempts will need, mCPU: at least their own needs. */
const reservedFor = (moves: readonly Move[]): number =>
  moves.reduce((sum, move) => sum + milliCpuIn(move.running.attempt.resources), 0);

interface Build {
  readonly capacity: Capacity;
  readonly fitting: Fitting;
  readonly context: OptionContext;
  readonly rows: SupplyRows;
  readonly shares: FairShares;
  readonly common: CommonDraws;
  /** Factor on what a task of a group brings; null: 1 for all. */
  readonly priority: ((group: PendingGroup) => number) | null;
  /** Most vCPUs that new instances could have now, with all releasable capacity returned, mCPU. */
  readonly quotaMilliCpu: number;
}

/**
 * A job may start when its spending, its running work and the cheapest way to do its waiting work stay within
 * `maxCostUsd`.
 */
function overBudgets(
  { input: { snapshot }, leftUsd }: OptionContext,
  groups: readonly PendingGroup[],
  options: readonly (readonly PlannedOption[])[],
): ReadonlyMap<JobId, string> {
  const needed = new Map<JobId, number>();
  groups.forEach((group, index) => {
    const costs = (options[index] ?? []).map((o) => o.option.costUsd);
    if (costs.length === 0 || !leftUsd.has(group.job)) return;
    needed.set(group.job, (needed.get(group.job) ?? 0) + group.count * costs.reduce((a, b) => Math.min(a, b)));
  });
  const over = new Map<JobId, string>();
  for (const [job, neededUsd] of needed) {
    const left = leftUsd.get(job) ?? 0;
    if (neededUsd <= left + 1e-9) continue;
    const { limitUsd, spentUsd } = limitOf(snapshot, job) ?? { limitUsd: 0, spentUsd: 0 };
    const runningUsd = limitUsd - spentUsd - left;
    const spent = `${usdText(spentUsd)} spent`;
    const soFar = runningUsd > 1e-9 ? `${spent} and ${usdText(runningUsd)} for what runs` : spent;
    over.set(
      job,
      `${soFar}, and at least ${usdText(neededUsd)} for what waits, would pass the job's limit of ${usdText(limitUsd)}`,
    );
  }
  return over;
}

export const usdText = (x: number): string => `$${x >= 1 || x === 0 ? x.toFixed(2) : x.toPrecision(2)}`;

function choicesOf(group: PendingGroup, index: number, options: readonly PlannedOption[], build: Build): Choice[] {
  const made: Choice[] = [];
  const ofJob = build.priority?.(group) ?? 1;
  const need = build.common.need(group.need);
  for (const planned of options) {
    const members = membersOf(group, planned, need, build);
    const priority = ofJob === 1 ? 1 : ofJob * partOfSlots(planned, build);
    if (isGang(group)) {
      const room = members.reduce((sum, m) => sum + m.atMost, 0);
      if (planned.netUsd > 0 && room >= group.count) {
        made.push({ group: index, planned, netUsd: priority * planned.netUsd, members });
      }
      continue;
    }
    for (const member of members) {
      const netUsd = planned.netUsd + savedUsd(planned, member, build);
      if (netUsd > 0) made.push({ group: index, planned, netUsd: priority * netUsd, members: [member] });
    }
  }
  const kept = isGang(group) ? made : undominated(made, build.context.leftUsd.has(group.job));
  return kept.sort((a, b) => b.netUsd - a.netUsd || a.planned.option.slot - b.planned.option.slot);
}

/**
 * Slots that a task draws over its running time, at least 1: a plan sees whole slots, and a task that takes a part of
 * one would come after one that takes all of it.
 */
function partOfSlots({ option: { offer }, slots }: PlannedOption, { context }: Build): number {
  const { slotS } = context.input.config;
  return Math.max(1, (slots * slotS) / Math.max(1, raw(offer.expectedDurationS)));
}

/**
 * Saving of a task against its option's cost, US dollars; may be negative. In free room it pays at most its own
 * share of the instance; of a new one also the unused part.
 */
function savedUsd({ option, pool }: PlannedOption, { name }: ChoiceMember, { capacity }: Build): number {
  const { roomShare, newShare } = option.offer;
  // An idle instance is released before a later slot, or held for it: either costs the whole instance, as a new one
  // does.
  const isNew = name === 'new' || (option.slot > 0 && capacity.rooms.get(pool.id)?.stays() !== true);
  if (isNew || !(newShare > 0)) return 0;
  const credit = option.slot > 0 ? 0 : ROOM_CREDIT;
  return (1 - ((1 - credit) * roomShare) / newShare) * option.costUsd;
}

/** `need`: that of the group, from `build.common`. */
function membersOf(group: PendingGroup, planned: PlannedOption, need: Resources, build: Build): ChoiceMember[] {
  const { capacity, common, context, rows } = build;
  const { pool, option, slots } = planned;
  const { share, roomShare, newShare } = option.offer;
  // In room that is paid anyway a task costs others nothing, but its job bears its share.
  const borne = { room: newShare > 0 ? Math.max(share, roomShare) / newShare : 1, new: 1 };
  const isLimited = build.context.leftUsd.has(group.job);
  const shared = build.shares.drawOf(group);
  const members: ChoiceMember[] = [];
  const add = (name: ChoiceMember['name'], atMost: number, draw: Draw): void => {
    if (atMost < 1) return;
    const budget = (): Draw => ({ partition: budgetOf(group.job), perUnit: [option.costUsd * borne[name]] });
    const draws = [draw, ...(isLimited ? [budget()] : []), ...shared];
    const use = rows.use(draws, option.slot, option.slot + slots);
    members.push({ name, use, atMost: Math.min(group.count, atMost) });
  };
  const room = capacity.rooms.get(pool.id);
  if (room !== undefined) {
    const fit = option.slot === 0 ? build.fitting(need, room, group.count) : group.count;
    add('room', fit, common.ofRoom(pool, need));
  }
  const perMachine = countFits(need, pool.type.capacity);
  const machineMilliCpu = milliCpuOf(pool);
  const view = context.pools.get(pool.id);
  const buyable = planned.roomOnly !== true && (option.slot > 0 || (view?.open === true && view.quote !== null));
  if (buyable && perMachine >= 1) {
    const within = option.slot === 0 ? build.quotaMilliCpu : capacity.limitMilliCpu;
    // A group that is no gang uses any part. Of a gang nothing would run while the first of its instances are paid for.
    const atOnce = isGang(group) ? atOnceMilliCpu(view, option.slot) : Infinity;
    // Live instances are room, in every slot.
    const there = view?.reservedLeft ?? Infinity;
    const machines = Math.min(there, Math.floor(Math.min(within, atOnce) / machineMilliCpu + 1e-9));
    add('new', machines * perMachine, common.ofQuota(machineMilliCpu / Math.min(perMachine, 1e6)));
  }
  return members;
}

/** mCPU of new instances that the account's quota of a pool may still bear at once, as far as its refusals tell. */
export function atOnceMilliCpu(view: PoolView | undefined, slot: number): number {
  if (view?.quota === undefined) return Infinity;
  const { usedMilliCpu, boundMilliCpu } = view.quota;
  // Below the bound, which was refused; in a later slot running work may have ended.
  return Math.max(0, boundMilliCpu - 1 - (slot === 0 ? usedMilliCpu : 0));
}

/**
 * Drops choices that another one of the same group and slot dominates: worth no less, drawing no more quota (and
 * budget), for no longer, for as many tasks. Choices in a pool's free room always stay.
 */
function undominated(choices: readonly Choice[], budgeted: boolean): Choice[] {
  const kept: Choice[] = [];
  const order = [...choices].sort((a, b) => b.netUsd - a.netUsd);
  for (const choice of order) {
    if (choice.members[0]?.name === 'room' || !kept.some((other) => dominates(other, choice, budgeted)))
      kept.push(choice);
  }
  return kept;
}

function dominates(a: Choice, b: Choice, budgeted: boolean): boolean {
  const [x, y] = [a.members[0], b.members[0]];
  if (x === undefined || y === undefined || x.name !== 'new' || a.planned.option.slot !== b.planned.option.slot)
    return false;
  return (
    (x.use.draws[0]?.perUnit[0] ?? 0) <= (y.use.draws[0]?.perUnit[0] ?? 0) + 1e-9 &&
    a.planned.slots <= b.planned.slots &&
    x.atMost >= y.atMost &&
    (!budgeted || a.planned.option.costUsd <= b.planned.option.costUsd + 1e-12)
  );
}
