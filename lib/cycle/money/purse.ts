/**
 * Limits on money: allows or refuses a purchase or start of a job with a limit (`maxCost`), before the decision makes
 * it. Without such jobs it costs nothing.
 * A purchase commits a job to its part of the instance for the least time that it will be held: start-up, the expected
 * running time of its tasks, and rounding of bills. Committed money is not available to the next purchase.
 */
import type { GroupId, InstanceId, JobId } from '../../kernel/ids.ts';
import { invariant } from '../../kernel/errors.ts';
import { ZERO_S, isoOf, raw, scale, secondsBetween, type EpochMs, type Seconds, excess } from '../../kernel/units.ts';

import { slowdownOn, slowsAnywhere } from '../../domain/slowdown.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Allotment, LimitReached, Placement, Purchase } from '../../domain/plan.ts';
import { isSpotPool, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { dominantShare, fits } from '../../domain/resources.ts';
import {
  workDoneS,
  type Budget,
  type InstanceView,
  type PendingGroup,
  type Period,
  type RunningTask,
  type SpendingLimit,
} from '../../domain/snapshot.ts';
import { doneOnceS } from '../../domain/work-to-do.ts';
import { withOffers, type GroupOffers, type Host, type Leftover } from '../../policy/contracts.ts';
import { limitText } from './deployment-limits.ts';
import { leftS } from '../../policy/left-of.ts';
import { LotCosts, lotBid, withCosts, type CostInput, type OnInstance } from './lot-costs.ts';
import { beneficiaries, lotsOf, type Lot, type Lots, type TakenFor } from './lots.ts';
import { chargedS } from '../../market/billing.ts';
import { exitS, moreChargedS, usdFor, usdText } from './worst-cost.ts';

/** A job with refused starts or purchases, because its limit could be passed. US dollars. */
export interface Short {
  readonly limitUsd: number;
  readonly spentUsd: number;
  /** For instances that it holds and tasks that run. */
  readonly committedUsd: number;
  /** The least that going on would take, beyond that. */
  readonly neededUsd: number;
  readonly detail: string;
}

export interface Bought {
  readonly purchases: readonly Purchase[];
  readonly lots: Lots;
}

type Acquire = (leftovers: readonly Leftover[], offers: ReadonlyMap<GroupId, GroupOffers>) => readonly Purchase[];

/**
 * Most repetitions of placement and purchase without the refused ones; then jobs with a limit wait for the next
 * decision.
 */
export const MOST_ROUNDS = 8;

interface Money {
  readonly limitUsd: number;
  readonly spentUsd: number;
  readonly committedUsd: number;
  leftUsd: number;
}

const NO_BUDGETS: ReadonlyMap<JobId, Budget> = new Map();

export class Purse {
  /** Jobs without purchases because of a limit of the deployment, with the reason. */
  readonly heldUp = new Map<JobId, string>();
  readonly #reached = new Map<Period, LimitReached>();
  readonly #limits: readonly { readonly limit: SpendingLimit; leftUsd: number }[];
  /** Seconds from now that live instances are counted to be held. */
  readonly #heldUntilS = new Map<InstanceId, number>();
  /** Jobs that were refused something in this decision. */
  readonly short = new Map<JobId, Short>();
  readonly #input: CostInput;
  readonly #money = new Map<JobId, Money>();
  readonly #pools = new Map<string, PoolView>();
  readonly #exitS = new Map<JobId, number>();
  readonly #costs: LotCosts;
  /** Tasks on instances with placements of this decision, these included. */
  #beside = new Map<InstanceId, readonly OnInstance[]>();

  constructor(input: CostInput) {
    this.#input = input;
    this.#costs = new LotCosts(input, { pools: this.#pools, exitS: this.#exitS });
    const { budgets = NO_BUDGETS, spendingLimits = [] } = input.snapshot;
    this.#limits = spendingLimits.map((limit) => ({
      limit,
      leftUsd: limit.limitUsd - limit.spentUsd - limit.committedUsd,
    }));
    if (budgets.size + spendingLimits.length === 0) return;
    for (const view of input.snapshot.pools) this.#pools.set(view.pool.id, view);
    if (spendingLimits.length > 0) this.#commitLive();
    for (const [job, { limitUsd, spentUsd, reservedUsd, heldUsd }] of budgets) {
      const spec = input.snapshot.jobs.get(job)?.spec;
      if (spec === undefined) continue;
      this.#exitS.set(job, exitS(spec.stages, input.config));
      const committedUsd = heldUsd + Math.max(reservedUsd, this.#costs.runningUsd(job));
      this.#money.set(job, { limitUsd, spentUsd, committedUsd, leftUsd: limitUsd - spentUsd - committedUsd });
    }
  }

  /** Limits of the deployment with a refusal that people were not told of before. */
  get limitsReached(): readonly LimitReached[] {
    return [...this.#reached.values()];
  }

  /**
   * Placements without those that could pass the limit of their job. A gang is placed whole or not at all, and one that
   * is not keeps no money from others. O(placements), up to MOST_ROUNDS times where gangs are refused.
   */
  placed(placements: readonly Placement[], runtimeOf: (group: PendingGroup) => number): readonly Placement[] {
    if (this.#money.size + this.#limits.length === 0) return placements;
    const groups = new Map(this.#input.snapshot.groups.map((g) => [g.id, g]));
    let open = placements;
    for (let round = 1; ; round++) {
      const giveBack = this.remembered();
      const { kept, refusedGangs } = this.#paidFor(open, groups, runtimeOf);
      if (refusedGangs.size === 0) return kept;
      const without = (of: readonly Placement[]) => of.filter((p) => !refusedGangs.has(p.group));
      if (round >= MOST_ROUNDS) return without(kept);
      giveBack(jobsOf(refusedGangs, groups));
      open = without(open);
    }
  }

  /** Restore point: later takings and refusals are undone, except the refusals of the given jobs. */
  remembered(): (refused: ReadonlySet<JobId>) => void {
    const heldUp = new Set(this.heldUp.keys());
    const limits = this.#limits.map((l) => l.leftUsd);
    const jobs = [...this.#money].map(([job, { leftUsd }]) => [job, leftUsd] as const);
    const held = new Map(this.#heldUntilS);
    const beside = new Map(this.#beside);
    return (refused) => {
      this.#beside = new Map(beside);
      for (const job of this.heldUp.keys()) if (!heldUp.has(job) && !refused.has(job)) this.heldUp.delete(job);
      this.#limits.forEach((l, i) => (l.leftUsd = limits[i] ?? l.leftUsd));
      for (const [job, leftUsd] of jobs) this.#moneyOf(job).leftUsd = leftUsd;
      for (const [instance, untilS] of held) this.#heldUntilS.set(instance, untilS);
    };
  }

  #paidFor(
    placements: readonly Placement[],
    groups: ReadonlyMap<GroupId, PendingGroup>,
    runtimeOf: (group: PendingGroup) => number,
  ): { readonly kept: readonly Placement[]; readonly refusedGangs: ReadonlySet<GroupId> } {
    const refused = new Set<GroupId>();
    const kept = placements.filter((p) => {
      const group = groups.get(p.group);
      if (group === undefined) return true;
      const { on: instance } = p;
      const money = this.#money.get(group.job);
      const slowdown = this.#slowdownOn(instance, group);
      const runtimeS = runtimeOf(group) * slowdown;
      const heldS = Math.max(runtimeS, toldToDoS(group) * slowdown);
      const over = refused.has(group.id) ? null : this.#overByHolding(instance, heldS);
      if (over !== null) {
        if (group.stage.gang) refused.add(group.id);
        this.heldUp.set(group.job, over);
        return false;
      }
      const there = this.#money.size === 0 ? undefined : this.#input.snapshot.instances.get(instance);
      if (there === undefined) return !refused.has(group.id);
      const beside = this.#besideOn(there);
      if (money !== undefined) {
        const usd = this.#costs.placementUsd(group, { there, beside, runtimeS });
        if (usd > money.leftUsd + 1e-9 || refused.has(group.id)) {
          if (group.stage.gang) refused.add(group.id);
          this.#refuse(group.job, usd, `a task on ${instance}`);
          return false;
        }
        money.leftUsd -= usd;
      }
      this.#putBeside(group, there, runtimeS);
      return true;
    });
    return { kept, refusedGangs: refused };
  }

  /**
   * Takes the money for a copy on an instance that is there, or says why there is none. No job is short of a copy: it
   * waits for nothing.
   */
  heldByCopy(group: PendingGroup, on: InstanceId, workS: number): string | null {
    const there = this.#input.snapshot.instances.get(on);
    if (there === undefined || this.#money.size + this.#limits.length === 0) return null;
    const slowdown = this.#slowdownOn(on, group);
    const runtimeS = workS * slowdown;
    const usd = this.#money.has(group.job)
      ? this.#costs.placementUsd(group, { there, beside: this.#besideOn(there), runtimeS })
      : 0;
    const heldS = Math.max(runtimeS, toldToDoS(group) * slowdown);
    const over = this.#overCopying(group.job, usd) ?? this.#overByHolding(on, heldS);
    if (over !== null) return over;
    this.#pay(group.job, usd);
    this.#putBeside(group, there, runtimeS);
    return null;
  }

  /**
   * Takes the money for a copy on an instance that is bought, as if for that alone, or says why there is none.
   * `isFirst`: nothing else is meant for the instance yet.
   */
  boughtForCopy(
    of: TakenFor['leftover'],
    { pool, bid, isFirst }: { readonly pool: Pool; readonly bid: Bid; readonly isFirst: boolean },
  ): string | null {
    const { job } = of.group;
    const taken = [{ leftover: of, tasks: 1 }];
    const costs = this.#costs.lotUsd({ taken, boughtFor: [{ job, part: 1 }] }, { pool, bid });
    const usd = costs.get(job)?.usd ?? 0;
    const over =
      this.#overCopying(job, usd) ?? (isFirst ? this.#overLimit({ pool: pool.id }, this.#heldS({ taken })) : null);
    if (over === null) this.#pay(job, usd);
    return over;
  }

  /**
   * Takes the money for an instance that is bought ahead of demand, of all jobs that it serves, or says why there is
   * none.
   */
  boughtAhead(taken: readonly TakenFor[], { pool, bid }: { readonly pool: Pool; readonly bid: Bid }): string | null {
    const costs = this.#costs.lotUsd({ taken, boughtFor: beneficiaries(pool, taken) }, { pool, bid });
    for (const [job, { usd }] of costs) {
      const money = this.#money.get(job);
      if (money !== undefined && usd > money.leftUsd + 1e-9)
        return `the limit of ${usdText(money.limitUsd)} (maxCost) of ${job} could be passed`;
    }
    const over = this.#overLimit({ pool: pool.id }, this.#heldS({ taken }));
    if (over === null) for (const [job, { usd }] of costs) this.#pay(job, usd);
    return over;
  }

  /** What an instance is bought for that was paid for by `boughtForCopy` or `boughtAhead`. */
  lotPaid(taken: readonly TakenFor[], { pool, bid }: { readonly pool: Pool; readonly bid: Bid }): Lot {
    const boughtFor = beneficiaries(pool, taken);
    const costs = this.#costs.lotUsd({ taken, boughtFor }, { pool, bid });
    return {
      taken: [],
      boughtFor: withCosts(boughtFor, costs),
      ...(this.#limits.length === 0 ? {} : { expectedS: this.#heldS({ taken }) }),
    };
  }

  /** The bid of an instance for these jobs: those with a limit have one. */
  bidFor(jobs: readonly JobId[], { pool, bid }: { readonly pool: Pool; readonly bid: Bid }): Bid {
    return jobs.some((job) => this.#money.has(job)) ? lotBid(bid, pool, this.#costs.quoteUsd(pool)) : bid;
  }

  /** The money of a job is first for its tasks that wait. */
  #overCopying(job: JobId, usd: number): string | null {
    const money = this.#money.get(job);
    if (money === undefined) return null;
    if (this.#input.snapshot.groups.some((g) => g.job === job)) return 'its maxCost is kept for its tasks that wait';
    if (usd <= money.leftUsd + 1e-9) return null;
    return `its limit of ${usdText(money.limitUsd)} (maxCost) could be passed: a copy takes ${usdText(usd)}`;
  }

  #pay(job: JobId, usd: number): void {
    const money = this.#money.get(job);
    if (money !== undefined) money.leftUsd -= usd;
  }

  /** How much longer a task of the group runs there, where its soft constraints are not met. */
  #slowdownOn(id: InstanceId, { stage }: PendingGroup): number {
    const pool = slowsAnywhere(stage.preferences) ? this.#input.snapshot.instances.get(id)?.pool : undefined;
    return pool === undefined ? 1 : slowdownOn(stage.preferences, pool);
  }

  #besideOn(there: InstanceView): readonly OnInstance[] {
    return this.#beside.get(there.instance.id) ?? this.#costs.runningOn(there);
  }

  #putBeside({ job, need }: PendingGroup, there: InstanceView, runtimeS: number): void {
    const added = { job, endS: runtimeS, share: dominantShare(need, there.pool.type.capacity) };
    this.#beside.set(there.instance.id, [...this.#besideOn(there), added]);
  }

  /** Purchases of the acquirer for the leftovers within the limits of their jobs, with their beneficiaries. */
  bought(leftovers: readonly Leftover[], offers: ReadonlyMap<GroupId, GroupOffers>, acquire: Acquire): Bought {
    const { snapshot } = this.#input;
    if (leftovers.length === 0) return { purchases: [], lots: [] };
    if (this.#money.size + this.#limits.length === 0) {
      const purchases = acquire(leftovers, offers);
      return { purchases, lots: lotsOf(purchases, leftovers, snapshot) };
    }
    let open = this.#affordable(leftovers, offers);
    for (let round = 1; ; round++) {
      if (open.leftovers.length === 0) return { purchases: [], lots: [] };
      const purchases = acquire(open.leftovers, open.offers);
      const judged = this.#judge(purchases, lotsOf(purchases, open.leftovers, snapshot));
      for (const [job, { usd, why }] of judged.refused) this.#refuse(job, usd, why);
      if (!judged.harmsOthers) {
        const giveBack = this.remembered();
        const { bought, refusedGangs } = this.#withinLimits(judged.bought);
        if (refusedGangs.size === 0 || round >= MOST_ROUNDS) {
          for (const { boughtFor } of bought.lots.flat()) for (const { job, usd = 0 } of boughtFor) this.#pay(job, usd);
          return bought;
        }
        // The money goes to others, and so does the room bought for them beside the gang.
        giveBack(new Set(open.leftovers.flatMap((l) => (refusedGangs.has(l.group.id) ? [l.group.job] : []))));
        open = { ...open, leftovers: open.leftovers.filter((l) => !refusedGangs.has(l.group.id)) };
        continue;
      }
      const left = open.leftovers.flatMap((l): Leftover[] => {
        if (round >= MOST_ROUNDS && this.#money.has(l.group.job)) return [];
        if (!judged.refused.has(l.group.job)) return [l];
        const count = l.group.stage.gang ? 0 : (judged.accepted.get(l) ?? 0);
        return count === 0 ? [] : [{ ...l, count }];
      });
      open = { leftovers: left, offers: open.offers };
    }
  }

  /** Purchases that no limit of the deployment refuses, in their order; a gang whole or not at all. */
  #withinLimits({ purchases, lots }: Bought): { readonly bought: Bought; readonly refusedGangs: ReadonlySet<GroupId> } {
    const gangs = new Set<GroupId>();
    if (this.#limits.length === 0) return { bought: { purchases, lots }, refusedGangs: gangs };
    const kept = lots.map((of, i) =>
      of.flatMap((lot): Lot[] => {
        const expectedS = this.#heldS(lot);
        const over = this.#overLimit(purchases[i], expectedS);
        if (over === null) return [{ ...lot, expectedS }];
        for (const { leftover } of lot.taken) {
          if (leftover.group.stage.gang) gangs.add(leftover.group.id);
          this.heldUp.set(leftover.group.job, over);
        }
        return [];
      }),
    );
    const whole = kept.map((of) => of.filter((lot) => !lot.taken.some((t) => gangs.has(t.leftover.group.id))));
    const bought: Bought = {
      purchases: purchases.flatMap((p, i) => {
        const count = whole[i]?.length ?? 0;
        return count === 0 ? [] : [{ ...p, count }];
      }),
      lots: whole.filter((of) => of.length > 0),
    };
    return { bought, refusedGangs: gangs };
  }

  /**
   * Takes the money for a task that prolongs the life of an instance, or names the limit of the deployment that it
   * could pass.
   */
  #overByHolding(id: InstanceId, runtimeS: number): string | null {
    const view = this.#limits.length === 0 ? undefined : this.#input.snapshot.instances.get(id);
    if (view === undefined) return null;
    // Expectations may be wrong again and again: once a limit is used up, nothing starts, however soon it should be
    // done.
    const usedUp = this.#limits.find(({ limit }) => limit.spentUsd >= limit.limitUsd);
    if (usedUp !== undefined) {
      const { period, limitUsd, spentUsd, untilMs } = usedUp.limit;
      return `${limitText(period, limitUsd)} is used up: ${usdText(spentUsd)} spent; nothing starts before ${minuteText(untilMs)}`;
    }
    const knownS = this.#heldUntilS.get(id) ?? 0;
    const startS = view.instance.state === 'ready' ? 0 : this.#input.config.startDelayMaxS;
    const untilS = startS + runtimeS + this.#input.config.turnoverS;
    if (untilS <= knownS) return null;
    const usdUntil = (seconds: number): number => this.#heldUsd(view, seconds);
    const over = this.#take(
      `a task on ${id}`,
      (leftS) => usdUntil(Math.min(untilS, leftS)) - usdUntil(Math.min(knownS, leftS)),
    );
    if (over === null) this.#heldUntilS.set(id, untilS);
    return over;
  }

  /** Charge for holding a live instance for so long from now, US dollars. */
  #heldUsd({ instance, pool }: InstanceView, seconds: number): number {
    const { snapshot, config } = this.#input;
    return usdFor(moreChargedS(instance.launchedMs, snapshot.nowMs, seconds, config), this.#costs.quoteUsd(pool));
  }

  /** Commits also the excess of running time over the expected holding time of its instance. */
  #commitLive(): void {
    const { snapshot, leftOf, config } = this.#input;
    for (const view of snapshot.instances.values()) {
      const { instance, attempts } = view;
      const goneS = secondsBetween(instance.requestedMs, snapshot.nowMs);
      const countedS = Math.max(exitS([], config), (instance.expectedS ?? 0) - goneS);
      const runsS = attempts.reduce(
        (most, r) => Math.max(most, Math.max(leftS(r, leftOf), toldLeftS(r, snapshot.nowMs)) + config.turnoverS),
        0,
      );
      this.#heldUntilS.set(instance.id, Math.max(countedS, runsS));
      for (const of of this.#limits) {
        const leftS = secondsBetween(snapshot.nowMs, of.limit.untilMs);
        const moreUsd = this.#heldUsd(view, Math.min(runsS, leftS)) - this.#heldUsd(view, Math.min(countedS, leftS));
        if (moreUsd > 0) of.leftUsd -= moreUsd;
      }
    }
  }

  /** Takes the money for an instance, or names the limit that it could pass. */
  #overLimit(purchase: Pick<Purchase, 'pool'> | undefined, heldS: number): string | null {
    const { config } = this.#input;
    const pool = purchase === undefined ? undefined : this.#pools.get(purchase.pool)?.pool;
    if (pool === undefined) return null;
    const quote = this.#costs.quoteUsd(pool);
    return this.#take(`an instance in ${pool.id}`, (leftS) => usdFor(chargedS(Math.min(heldS, leftS), config), quote));
  }

  /**
   * Takes money of each limit, or names the one that `what` could pass. `usdWithin`: its charge within so many seconds
   * from now.
   */
  #take(what: string, usdWithin: (leftS: number) => number): string | null {
    const { snapshot } = this.#input;
    const costs = this.#limits.map(({ limit }) =>
      usdWithin(Math.max(0, secondsBetween(snapshot.nowMs, limit.untilMs))),
    );
    for (const [i, { limit, leftUsd }] of this.#limits.entries()) {
      const usd = costs[i] ?? 0;
      if (usd <= leftUsd + 1e-9) continue;
      const { period, limitUsd, settledUsd, spentUsd, untilMs, isReached } = limit;
      const committedUsd = Math.max(0, limitUsd - spentUsd - leftUsd);
      const text =
        `${limitText(period, limitUsd)} could be passed: ${usdText(spentUsd)} spent, ${usdText(committedUsd)} committed, ` +
        `and ${what} takes ${usdText(usd)}; nothing like it is bought before ` +
        minuteText(untilMs);
      if (!isReached) this.#reached.set(period, { period, limitUsd, settledUsd, spentUsd, committedUsd, text });
      return text;
    }
    for (const [i, limited] of this.#limits.entries()) limited.leftUsd -= costs[i] ?? 0;
    return null;
  }

  #heldS({ taken }: { readonly taken: readonly TakenFor[] }): number {
    const { startDelayMaxS, turnoverS } = this.#input.config;
    return (
      startDelayMaxS +
      turnoverS +
      taken.reduce((most, t) => Math.max(most, raw(t.leftover.runtimeS), toldToDoS(t.leftover.group)), 0)
    );
  }

  #moneyOf(job: JobId): Money {
    return invariant(this.#money.get(job), `job ${job} has no limit`);
  }

  #refuse(job: JobId, neededUsd: number, what: string): void {
    const known = this.short.get(job);
    if (known !== undefined && known.neededUsd <= neededUsd) return;
    const { limitUsd, spentUsd, committedUsd } = this.#moneyOf(job);
    const held = committedUsd > 0 ? ` and ${usdText(committedUsd)} committed to its instances` : '';
    const detail =
      `its limit of ${usdText(limitUsd)} (maxCost) could be passed: ${usdText(spentUsd)} spent${held}, ` +
      `and ${what} takes ${usdText(neededUsd)}, start-up and unused time included`;
    this.short.set(job, { limitUsd, spentUsd, committedUsd, neededUsd, detail });
  }

  /** Leftovers on offers that their job can pay for, if an instance is bought for one of its tasks alone. */
  #affordable(
    leftovers: readonly Leftover[],
    offers: ReadonlyMap<GroupId, GroupOffers>,
  ): { readonly leftovers: readonly Leftover[]; readonly offers: ReadonlyMap<GroupId, GroupOffers> } {
    const within = new Map(offers);
    const open = leftovers.flatMap((leftover): Leftover[] => {
      const { group, option } = leftover;
      if (!this.#money.has(group.job)) return [leftover];
      const { payable, leastUsd } = this.#payableFor(leftover, offers);
      const chosen = payable.find((o) => o === option.offer) ?? payable[0];
      if (chosen === undefined) {
        if (leastUsd < Infinity) this.#refuse(group.job, leastUsd, 'the cheapest instance for one task');
        return [];
      }
      const of = offers.get(group.id);
      if (of !== undefined) within.set(group.id, withOffers(of, payable));
      return [{ ...leftover, option: { ...option, offer: chosen } }];
    });
    return { leftovers: open, offers: within };
  }

  /**
   * Starts with an offer that the job's limit pays for: spot in place of on-demand, if it pays for no on-demand
   * instance. `bought` then buys spot for them, and later decisions start them there.
   */
  meantFor(
    starts: Allotment['starts'],
    of: {
      readonly offers: ReadonlyMap<GroupId, GroupOffers>;
      readonly runtimeOf: (group: PendingGroup) => Seconds;
      readonly hosts: readonly Host[];
    },
  ): Allotment['starts'] {
    if (this.#money.size === 0) return starts;
    const groups = new Map(this.#input.snapshot.groups.map((g) => [g.id, g]));
    return starts.map((start) => {
      const group = groups.get(start.option.group);
      if (group === undefined || !this.#money.has(group.job) || isSpotPool(start.option.offer.pool)) return start;
      const { payable } = this.#payableFor(
        { group, option: start.option, runtimeS: scale(of.runtimeOf(group), start.option.offer.slowdown ?? 1) },
        of.offers,
      );
      const onSpot = payable.length > 0 ? payable : this.#spotHeldFor(group, of);
      const isForSpot = onSpot.every((o) => isSpotPool(o.pool));
      const [offer] = onSpot;
      if (offer === undefined || !isForSpot || of.hosts.some((h) => staysWithRoomFor(group, h))) return start;
      return { ...start, option: { ...start.option, offer } };
    });
  }

  /** Offers of spot pools in which an instance was bought for the job. */
  #spotHeldFor(
    { id, job }: PendingGroup,
    { offers, hosts }: { readonly offers: ReadonlyMap<GroupId, GroupOffers>; readonly hosts: readonly Host[] },
  ): readonly Offer[] {
    const { instances } = this.#input.snapshot;
    const held = new Set(
      hosts.flatMap((h) =>
        instances.get(h.on)?.instance.boughtFor?.some((b) => b.job === job) === true ? [h.pool.id] : [],
      ),
    );
    return (offers.get(id)?.offers ?? []).filter((o) => isSpotPool(o.pool) && held.has(o.pool));
  }

  /** Offers that the job can pay for, if an instance is bought for one of its tasks alone. */
  #payableFor(
    leftover: Pick<Leftover, 'group' | 'option' | 'runtimeS'>,
    offers: ReadonlyMap<GroupId, GroupOffers>,
  ): { readonly payable: readonly Offer[]; readonly leastUsd: number } {
    const { group, option } = leftover;
    const { leftUsd } = this.#moneyOf(group.job);
    const stays = !isSpotPool(option.offer.pool);
    const known = offers.get(group.id)?.offers ?? [];
    const may = known.filter((o) => !stays || !isSpotPool(o.pool));
    const all = may.some((o) => o.pool === option.offer.pool && o.bid === option.offer.bid)
      ? may
      : [...may, option.offer];
    let leastUsd = Infinity;
    const isPayable = (offer: Offer): boolean => {
      const usd = this.#aloneUsd(leftover, offer);
      leastUsd = Math.min(leastUsd, usd);
      return usd <= leftUsd + 1e-9;
    };
    const meant = all.filter(isPayable);
    // Spot may still be in time where the limit does not pay for on-demand; nothing at all cannot.
    const payable = meant.length > 0 || !stays ? meant : known.filter(isPayable);
    return { payable, leastUsd };
  }

  #aloneUsd(leftover: TakenFor['leftover'], { pool: id, bid }: Offer): number {
    const pool = this.#pools.get(id)?.pool;
    if (pool === undefined) return Infinity;
    const taken = [{ leftover, tasks: 1 }];
    const { job } = leftover.group;
    return this.#costs.lotUsd({ taken, boughtFor: [{ job, part: 1 }] }, { pool, bid }).get(job)?.usd ?? Infinity;
  }

  /** Instances that may be bought, in their order. */
  #judge(
    purchases: readonly Purchase[],
    lots: Lots,
  ): {
    readonly bought: Bought;
    readonly refused: ReadonlyMap<JobId, { readonly usd: number; readonly why: string }>;
    /** Tasks with room on accepted purchases. */
    readonly accepted: ReadonlyMap<Leftover, number>;
    /** An instance was refused that tasks of other jobs, or others of a gang, were to run with. */
    readonly harmsOthers: boolean;
  } {
    const takenUsd = new Map<JobId, number>();
    const waiting = this.#waitingTasks();
    const refused = new Map<JobId, { usd: number; why: string }>();
    const accepted = new Map<Leftover, number>();
    let harmsOthers = false;
    const kept: Purchase[] = [];
    const keptLots: Lot[][] = [];
    purchases.forEach((purchase, i) => {
      const pool = this.#pools.get(purchase.pool)?.pool;
      const mine: Lot[] = [];
      let bid = purchase.bid;
      for (const lot of lots[i] ?? []) {
        if (pool === undefined) {
          mine.push(lot);
          continue;
        }
        const capped = lotBid(purchase.bid, pool, this.#costs.quoteUsd(pool));
        const costs = this.#costs.lotUsd(lot, { pool, bid: capped });
        const over = [...costs].flatMap(([job, { usd, perTaskUsd, tasks }]) => {
          const rest = Math.max(0, (waiting.get(job) ?? 0) - tasks) * perTaskUsd;
          const needed = usd + rest;
          return needed > this.#moneyOf(job).leftUsd - (takenUsd.get(job) ?? 0) + 1e-9 ? [{ job, needed }] : [];
        });
        if (over.length > 0) {
          for (const { job, needed } of over) {
            if (!refused.has(job)) refused.set(job, { usd: needed, why: 'an instance for what waits' });
          }
          harmsOthers ||= lot.taken.some(
            ({ leftover: { group } }) => group.stage.gang || !over.some((o) => o.job === group.job),
          );
          continue;
        }
        for (const [job, { usd, tasks }] of costs) {
          takenUsd.set(job, (takenUsd.get(job) ?? 0) + usd);
          waiting.set(job, (waiting.get(job) ?? 0) - tasks);
        }
        for (const { leftover, tasks } of lot.taken) accepted.set(leftover, (accepted.get(leftover) ?? 0) + tasks);
        if (costs.size > 0) bid = capped;
        mine.push({ ...lot, boughtFor: withCosts(lot.boughtFor, costs) });
      }
      if (mine.length === 0) return;
      kept.push({ ...purchase, bid, count: mine.length });
      keptLots.push(mine);
    });
    return { bought: { purchases: kept, lots: keptLots }, refused, accepted, harmsOthers };
  }

  /** Tasks that wait now, of jobs with a limit. */
  #waitingTasks(): Map<JobId, number> {
    const waiting = new Map<JobId, number>();
    for (const { job, count } of this.#input.snapshot.groups) {
      if (this.#money.has(job)) waiting.set(job, (waiting.get(job) ?? 0) + count);
    }
    return waiting;
  }
}

/** True for an instance that the market does not take, with room for a task. */
const staysWithRoomFor = ({ need, stage }: PendingGroup, { pool, free }: Host): boolean =>
  pool.option !== 'spot' && fits(need, free) && brokenConstraint(stage.constraints, pool) === null;

const jobsOf = (ids: ReadonlySet<GroupId>, groups: ReadonlyMap<GroupId, PendingGroup>): ReadonlySet<JobId> =>
  new Set([...ids].flatMap((id) => groups.get(id)?.job ?? []));

/**
 * Remaining running time by the user's estimate, seconds; 0 without one. A limit of the deployment uses the longer of
 * that and the forecast, because a short run of another program of the owner may pull the forecast down.
 */
const toldToDoS = (group: PendingGroup): number => excess(group.stage.expectedRuntimeS ?? ZERO_S, doneOnceS(group));
const toldLeftS = (running: RunningTask, nowMs: EpochMs): number =>
  excess(running.stage.expectedRuntimeS ?? ZERO_S, workDoneS(running, nowMs)) * (running.attempt.slowdown ?? 1);

const minuteText = (at: EpochMs): string => `${isoOf(at).slice(0, 16).replace('T', ' ')} UTC`;
