/**
 * Consolidation: all work of an instance goes to others that have room, or the work of several to one new instance that
 * costs less. Stratus' instance clearing (section 3.2.4) and the consolidation of cluster autoscalers, judged in
 * dollars with what is known of running times. For instances V, and running instances U that take their work or a new
 * instance n:
 *   saves      sum_V P_v (E[longest of v] - paid time)  -  sum_U P_u (E[longest of u and what comes] - E[longest of u])
 *              or, of a new instance,  - P_n E[longest of all that comes]
 *   disrupts   P_v x time to stop, P_n x start-up, the tasks' share of the target for their set-up and for work done
 *              again, and what more an interruption takes there than here: P(interrupted) x (start-up + set-up + lost work)
 * Prices are means of the time to come: the higher of it and now where work goes, the lower where it is, so that a
 * spike is neither fled nor walked into. New spot instances are bought at a bid of the on-demand price. Times are
 * charged times: under billing by the hour the rest of a started hour is paid. Work that moves runs longer by
 * its move. It must save more than TWICE what it disrupts, because forecasts err, and each of these tasks moves at most
 * once an hour: prices that go up and down move nothing to and fro. Work on on-demand stays off spot, for it is there
 * for a reason (returns.ts brings it back). Nothing moves that its deadline has no room for, or that would lose too
 * much (own-stops.ts). Nothing new goes on what is being left (lib/policy/leaving.ts).
 * All follows from the snapshot, so that a new process decides the same.
 * O(instances log instances + instances x (pools + rooms looked at)).
 */
import { invariant } from '../../kernel/errors.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import { excess, plus, raw, rawOrNull, seconds, secondsBetween } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Distribution } from '../../domain/distribution.ts';
import { pInterruptedWithin } from '../../domain/forecast.ts';
import { expectedLongestS, type Alike } from '../../domain/longest.ts';
import { capUsd, usdPerHourOf, type Bid, type Pool } from '../../domain/pool.ts';
import { dominantShare, fits, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import {
  instanceParts,
  isStopping,
  workDoneS,
  workKeptS,
  type InstanceView,
  type RunningTask,
} from '../../domain/snapshot.ts';
import { chargedS } from '../../market/billing.ts';
import { countedNeighbours } from '../../policy/colocation/counted-neighbours.ts';
import { leavingFor, longerTogether, lostS, sharersOf } from '../../policy/colocation/lost-time.ts';
import type { NeighbourBelief } from '../../policy/colocation/neighbour-belief.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { LEAVING } from '../../policy/leaving.ts';
import { leftOfEach, type LeftOf } from '../../policy/left-of.ts';
import { moveS, moveStopS } from '../../policy/move-cost.ts';
import { pricedPools, type PricedPool } from '../../policy/on-demand-bids.ts';
import { hasSettled, lossOf, relocationS, workLeft } from '../../policy/work-left.ts';
import { restartOf } from './deadline-guard.ts';
import { keepsProgress } from './own-stops.ts';
import { RoomIndex, type Found } from './room-index.ts';
import { ageS, mayFollow } from './whole-instance.ts';

/** Savings over disruption. */
const TWICE = 2;
/** Least time between two moves of a task, seconds. */
const ONCE_AN_HOUR_S = 3600;
/** Below the cost of a minute on the smallest instance nothing is worth a move. */
const LEAST_USD = 1e-4;
/** Time over which pools are compared by their expected price, seconds. */
const USUAL_S = 10_800;
/** Most instances whose work goes to one new instance together, and how many are looked at for that. */
const MOST_TOGETHER = 8;
const MOST_MERGED = 200;

/** An instance whose work may go elsewhere. */
interface Source {
  readonly view: InstanceView;
  readonly usdPerHour: number;
  readonly need: Resources;
  readonly ageS: number;
  /** Longest time until one of its tasks has stopped. */
  readonly stopS: number;
  /** Expected time until its last task is done. */
  readonly longestS: number;
  readonly isSpot: boolean;
}

/** What a move is expected to save and to cost, US dollars. */
interface Judged {
  readonly savesUsd: number;
  readonly disruptsUsd: number;
  readonly riskUsd: number;
}

/** Moves of work whose instances are not among `going`, which other moves empty. */
export const consolidatingMoves = (context: DecisionContext, going: ReadonlySet<InstanceId>): readonly Move[] =>
  new Consolidation(context, going).moves();

class Consolidation {
  readonly #context: DecisionContext;
  readonly #going: ReadonlySet<InstanceId>;
  readonly #leftOf: LeftOf;
  /** Null: nobody is known to slow anyone down. */
  readonly #neighbours: NeighbourBelief | null;
  readonly #lefts = new Map<RunningTask, Distribution>();
  readonly #longest = new Map<InstanceId, number>();
  readonly #means = new Map<string, number | null>();
  readonly #byPrice: readonly PricedPool[];
  readonly #quotes: ReadonlyMap<string, Parameters<typeof usdPerHourOf>[1]>;
  /** Pools with an instance that is up or starts, and runs nothing: a move that was begun waits for it. */
  readonly #idle: ReadonlySet<string>;

  constructor(context: DecisionContext, going: ReadonlySet<InstanceId>) {
    this.#context = context;
    this.#going = going;
    this.#leftOf = leftOfEach(context);
    const neighbours = countedNeighbours(context);
    this.#neighbours = neighbours?.tellsAny() === true ? neighbours : null;
    this.#quotes = new Map(context.snapshot.pools.map((v) => [v.pool.id, v.quote]));
    const expected = pricedPools(context).map((p) => ({ ...p, usdPerHour: this.#priceOf(p.pool, p.bid, USUAL_S) }));
    this.#byPrice = expected.sort((a, b) => a.usdPerHour - b.usdPerHour);
    this.#idle = new Set(instanceParts(context.snapshot).idle.map((v) => v.pool.id));
  }

  moves(): readonly Move[] {
    const sources = this.#sources();
    const left = new Set<InstanceId>(this.#emptying());
    const moves: Move[] = [];
    const rest: Source[] = [];
    if (sources.length > 0) {
      const rooms = this.#rooms();
      for (const source of sources) {
        const { id } = source.view.instance;
        // What takes work in this cycle stays.
        const found = rooms.isTarget(id) ? null : this.#ontoRunning(source, rooms);
        if (found === null) {
          if (!rooms.isTarget(id)) rest.push(source);
          continue;
        }
        left.add(id);
        rooms.drop(id);
        moves.push(...found);
      }
      for (const [of, found] of this.#ontoNew(rest)) {
        for (const source of of) left.add(source.view.instance.id);
        moves.push(...found);
      }
    }
    this.#context.memory.of(LEAVING).leavesNow(left);
    return moves;
  }

  /** Instances that all work is leaving: what came there now would keep them. */
  #emptying(): readonly InstanceId[] {
    return [...this.#context.snapshot.instances.values()].flatMap(({ instance, attempts }) =>
      attempts.length > 0 && attempts.every((r) => isStopping(r) && r.attempt.goesTo !== undefined)
        ? [instance.id]
        : [],
    );
  }

  /** The dearest per used part first. */
  #sources(): readonly Source[] {
    const { snapshot, config } = this.#context;
    const sources: (Source & { readonly perUse: number })[] = [];
    for (const view of snapshot.instances.values()) {
      if (this.#going.has(view.instance.id) || !this.#mayLeave(view)) continue;
      const longestS = this.#longestS(view);
      const usdPerHour = this.#leastPriceOf(view.pool, longestS);
      const need = view.attempts.reduce((sum, r) => plusResources(sum, r.attempt.resources), NO_RESOURCES);
      sources.push({
        view,
        usdPerHour,
        need,
        ageS: ageS(view, snapshot),
        stopS: view.attempts.reduce((most, r) => Math.max(most, moveStopS(r, config)), 0),
        longestS,
        isSpot: view.pool.option === 'spot',
        perUse: usdPerHour / Math.max(1e-9, dominantShare(need, view.pool.type.capacity)),
      });
    }
    return sources.sort((a, b) => b.perUse - a.perUse || (a.view.instance.id < b.view.instance.id ? -1 : 1));
  }

  #mayLeave({ instance, attempts }: InstanceView): boolean {
    if (instance.state !== 'ready' || instance.rebalance || attempts.length === 0) return false;
    return attempts.every((r) => this.#mayMove(r));
  }

  #mayMove(running: RunningTask): boolean {
    const { snapshot, config, worths } = this.#context;
    const { attempt, stage } = running;
    if (attempt.state !== 'running' || !mayFollow(stage)) return false;
    const hereS = attempt.startedMs === null ? 0 : secondsBetween(attempt.startedMs, snapshot.nowMs);
    if (attempt.movedFrom !== undefined && hereS < ONCE_AN_HOUR_S) return false;
    if (!hasSettled(running, this.#context) || !keepsProgress(running, this.#context)) return false;
    const worth = worths.ofRunning(running);
    if (worth === undefined) return false;
    const awayS = relocationS(config, moveStopS(running, config));
    return !isGuarded(worth, plus(snapshot.nowMs, seconds(awayS)), config.cyclePeriodS);
  }

  /** Instances that stay: they are up, and nothing on them stops. */
  #rooms(): RoomIndex {
    const { snapshot } = this.#context;
    const views = [...snapshot.instances.values()].filter(
      ({ instance, attempts }) =>
        instance.state === 'ready' &&
        !instance.rebalance &&
        attempts.length > 0 &&
        !attempts.some(isStopping) &&
        !this.#going.has(instance.id),
    );
    return new RoomIndex(views, snapshot, this.#leftOf);
  }

  /** A running instance for each task, or null. */
  #ontoRunning(source: Source, rooms: RoomIndex): readonly Move[] | null {
    const { view, isSpot } = source;
    // Nothing is saved where others only take over the whole price.
    if (source.usdPerHour * this.#chargedS(source, source.longestS) < 3600 * LEAST_USD) return null;
    const found = rooms.find(view, (pool) => isSpot || pool.option !== 'spot');
    if (found === null) return null;
    const judged = this.#judgeRunning(source, found);
    if (!isWorth(judged)) {
      rooms.undo(found);
      return null;
    }
    const targets = new Map(found.map((f) => [f.running, { instance: f.on.instance.id }]));
    return this.#movesOf([source], judged, (r) => invariant(targets.get(r), 'each task has a place'));
  }

  #judgeRunning(source: Source, found: readonly Found[]): Judged {
    const { config } = this.#context;
    const { view } = source;
    const stayUsd = source.usdPerHour * this.#chargedS(source, source.longestS);
    let addedUsd = 0;
    let disruptsUsd = source.usdPerHour * this.#chargedS(source, source.stopS);
    let riskUsd = 0;
    for (const [on, tasks] of Map.groupBy(found, (f) => f.on)) {
      const coming = tasks.map((f) => f.running);
      const before = this.#longestS(on);
      const after = expectedLongestS([
        ...this.#alike(on.attempts, () => 0),
        ...this.#alike(coming, (r) => moveS(r, config) + this.#againS(r)),
      ]);
      const age = ageS(on, this.#context.snapshot);
      const usdPerHour = this.#priceOf(on.pool, on.instance.bid, after);
      addedUsd += usdPerHour * (this.#moreS(age, after) - this.#moreS(age, before));
      disruptsUsd += this.#setUpUsdS(coming, on.pool, usdPerHour);
      disruptsUsd += usdPerHour * this.#lostS(on.attempts, [[view, coming]], on.pool);
      riskUsd += this.#riskUsdS(coming, { from: source, pool: on.pool, bid: on.instance.bid, usdPerHour });
    }
    return dollars({ savesUsd: stayUsd - addedUsd, disruptsUsd, riskUsd });
  }

  /** Sets of instances that one new instance replaces, with the moves. */
  #ontoNew(rest: readonly Source[]): readonly (readonly [readonly Source[], readonly Move[]])[] {
    const done: (readonly [readonly Source[], readonly Move[]])[] = [];
    for (const isSpot of [true, false]) {
      const side = rest.filter((s) => s.isSpot === isSpot);
      const small = side.slice(0, MOST_MERGED).toSorted((a, b) => a.usdPerHour - b.usdPerHour);
      const merged = new Set<Source>();
      for (let at = 0; at < small.length;) {
        const best = this.#bestTogether(small.slice(at, at + MOST_TOGETHER));
        if (best === null) at++;
        else {
          done.push([best.of, best.moves]);
          for (const source of best.of) merged.add(source);
          at += best.of.length;
        }
      }
      for (const source of side.slice(MOST_MERGED)) {
        const best = merged.has(source) ? null : this.#bestTogether([source]);
        if (best !== null) done.push([best.of, best.moves]);
      }
    }
    return done;
  }

  /** The first few of these sources that save most together. */
  #bestTogether(
    sources: readonly Source[],
  ): { readonly of: readonly Source[]; readonly moves: readonly Move[] } | null {
    let best: { readonly of: readonly Source[]; readonly to: PricedPool; readonly judged: Judged } | null = null;
    let need = NO_RESOURCES;
    let usdPerHour = 0;
    for (const [i, source] of sources.entries()) {
      need = plusResources(need, source.need);
      usdPerHour += source.usdPerHour;
      const of = sources.slice(0, i + 1);
      const to = this.#cheapestFor(of, need, usdPerHour);
      if (to === null) continue;
      const judged = this.#judgeNew(of, to);
      const net = judged.savesUsd - judged.disruptsUsd;
      if (
        isWorth(judged, this.#idle.has(to.pool.id)) &&
        (best === null || net > best.judged.savesUsd - best.judged.disruptsUsd)
      )
        best = { of, to, judged };
    }
    if (best === null) return null;
    const { of, to, judged } = best;
    const target = { pool: to.pool.id, bid: to.bid };
    return { of, moves: this.#movesOf(of, judged, () => target) };
  }

  /** The cheapest pool of which one instance holds all, for less than these cost now. */
  #cheapestFor(of: readonly Source[], need: Resources, usdPerHour: number): PricedPool | null {
    const mayBeSpot = of.every((s) => s.isSpot);
    for (const to of this.#byPrice) {
      if (to.usdPerHour >= usdPerHour) return null;
      if (!mayBeSpot && to.pool.option === 'spot') continue;
      if (of.length === 1 && to.pool.id === of[0]?.view.pool.id) continue;
      if (!fits(need, to.pool.type.capacity)) continue;
      if (of.every(({ view }) => view.attempts.every((r) => brokenConstraint(r.stage.constraints, to.pool) === null)))
        return to;
    }
    return null;
  }

  #judgeNew(of: readonly Source[], { pool, bid }: PricedPool): Judged {
    const { config } = this.#context;
    const coming = of.flatMap((s) => s.view.attempts);
    const startS = this.#idle.has(pool.id) ? 0 : config.startDelayMeanS;
    const runS = expectedLongestS(this.#alike(coming, (r) => moveS(r, config) + this.#againS(r)));
    const usdPerHour = this.#priceOf(pool, bid, runS);
    let savesUsd = -usdPerHour * chargedS(runS, config);
    const lost = this.#lostS(
      [],
      of.map(({ view }) => [view, view.attempts]),
      pool,
    );
    let disruptsUsd = usdPerHour * (startS + lost) + this.#setUpUsdS(coming, pool, usdPerHour);
    let riskUsd = 0;
    for (const source of of) {
      savesUsd += source.usdPerHour * this.#chargedS(source, source.longestS);
      disruptsUsd += source.usdPerHour * this.#chargedS(source, startS + source.stopS);
      riskUsd += this.#riskUsdS(source.view.attempts, { from: source, pool, bid, usdPerHour });
    }
    return dollars({ savesUsd, disruptsUsd, riskUsd });
  }

  /** All work of these instances, each task to its own target. */
  #movesOf(
    of: readonly Source[],
    judged: Judged,
    targetOf: (running: RunningTask) => NonNullable<Move['to']>,
  ): readonly Move[] {
    const { savesUsd, disruptsUsd, riskUsd } = judged;
    const tasks = of.reduce((n, s) => n + s.view.attempts.length, 0);
    const whole = of.length === 1 ? 'its instance' : `${of.length} instances`;
    const risk = Math.max(0, riskUsd);
    const reason =
      `${whole} can be given back once all work goes on elsewhere: that saves $${savesUsd.toPrecision(2)} and costs ` +
      `$${disruptsUsd.toPrecision(2)}${risk > 0 ? `, $${risk.toPrecision(2)} of it for the risk there` : ''}`;
    const expected = { savedUsd: (savesUsd - disruptsUsd) / tasks, riskUsd: risk / tasks };
    return of.flatMap(({ view }) =>
      view.attempts.map((running) => ({
        attempt: running.attempt.id,
        reason,
        running,
        view,
        to: targetOf(running),
        ...expected,
        ...restartOf(running),
      })),
    );
  }

  /** Expected price of the next seconds, no less than now, for who pays up to the bid; USD per hour. */
  #priceOf(pool: Pool, bid: Bid, overS: number): number {
    const now = usdPerHourOf(pool, this.#quotes.get(pool.id));
    return pool.option === 'spot' ? Math.min(capUsd(bid), Math.max(now, this.#meanOf(pool, overS) ?? now)) : now;
  }

  /** The same, no more than now: a peak that ends soon is no reason to leave. */
  #leastPriceOf(pool: Pool, overS: number): number {
    const now = usdPerHourOf(pool, this.#quotes.get(pool.id));
    return pool.option === 'spot' ? Math.min(now, this.#meanOf(pool, overS) ?? now) : now;
  }

  /** Mean price of the next seconds, which double from one answer to the next. */
  #meanOf(pool: Pool, overS: number): number | null {
    const doublings = Math.round(Math.log2(Math.max(60, overS) / 60));
    const key = `${pool.id} ${doublings}`;
    let mean = this.#means.get(key);
    if (mean === undefined) {
      const { market } = this.#context.forecasts;
      mean = rawOrNull(market.meanPrice?.(pool, seconds(60 * 2 ** doublings)) ?? null);
      this.#means.set(key, mean);
    }
    return mean;
  }

  #left(running: RunningTask): Distribution {
    const one = running.like ?? running;
    let left = this.#lefts.get(one);
    if (left === undefined) this.#lefts.set(one, (left = workLeft(one, this.#context)));
    return left;
  }

  #alike(tasks: readonly RunningTask[], laterS: (r: RunningTask) => number): readonly Alike[] {
    const alike: { left: Distribution; laterS: number; count: number }[] = [];
    for (const r of tasks) {
      const left = this.#left(r);
      const known = alike.find((of) => of.left === left);
      if (known === undefined) alike.push({ left, laterS: laterS(r), count: 1 });
      else known.count++;
    }
    return alike;
  }

  /** Expected time until the last task of an instance is done. */
  #longestS({ instance: { id }, attempts }: InstanceView): number {
    let known = this.#longest.get(id);
    if (known === undefined) this.#longest.set(id, (known = expectedLongestS(this.#alike(attempts, () => 0))));
    return known;
  }

  /** Work that a task does again after a move. */
  #againS(running: RunningTask): number {
    const { nowMs } = this.#context.snapshot;
    return running.stage.checkpoint === null ? excess(workDoneS(running, nowMs), workKeptS(running, nowMs)) : 0;
  }

  /** Further charged seconds of a source that stays for so long. */
  #chargedS(source: Pick<Source, 'ageS'>, s: number): number {
    return this.#moreS(source.ageS, s);
  }

  #moreS(age: number, s: number): number {
    const { config } = this.#context;
    return chargedS(age + s, config) - (age > 0 ? chargedS(age, config) : 0);
  }

  /** The tasks' share of the target while they read what they saved and do work again; USD/h x s. */
  #setUpUsdS(tasks: readonly RunningTask[], pool: Pool, usdPerHour: number): number {
    const { restoreS } = this.#context.config;
    const share = (r: RunningTask): number => Math.min(1, dominantShare(r.attempt.resources, pool.type.capacity));
    return tasks.reduce((sum, r) => sum + usdPerHour * share(r) * (restoreS + this.#againS(r)), 0);
  }

  /** Running time lost on a target by neighbours, beyond what they take now; below 0: gained. Seconds of all of it. */
  #lostS(
    there: readonly RunningTask[],
    from: readonly (readonly [InstanceView, readonly RunningTask[]])[],
    { type }: Pool,
  ): number {
    const belief = this.#neighbours;
    if (belief === null) return 0;
    const { snapshot } = this.#context;
    const of = { belief, snapshot, leftOf: this.#leftOf };
    const coming = from.flatMap(([view, tasks]) => leavingFor(type, view, tasks, of));
    return lostS(longerTogether(sharersOf({ attempts: there }, { ...of, type }), coming, { belief, type }));
  }

  /** What more an interruption takes there than here; USD/h x s. */
  #riskUsdS(
    tasks: readonly RunningTask[],
    of: { readonly from: Source; readonly pool: Pool; readonly bid: Bid; readonly usdPerHour: number },
  ): number {
    const { config, forecasts } = this.#context;
    const { view } = of.from;
    return tasks.reduce((sum, r) => {
      const leftS = raw(this.#leftOf(r));
      const within = seconds(Math.max(1, leftS));
      const pIn = (pool: Pool, bid: Bid): number =>
        pool.option === 'spot' ? pInterruptedWithin(forecasts.market.interruption(pool, bid), within) : 0;
      const more = pIn(of.pool, of.bid) - pIn(view.pool, view.instance.bid);
      const lostS = Math.min(lossOf(r.stage), leftS / 2);
      const share = Math.min(1, dominantShare(r.attempt.resources, of.pool.type.capacity));
      return sum + more * of.usdPerHour * share * (config.startDelayMeanS + config.restoreS + lostS);
    }, 0);
  }
}

/** USD from USD/h x s; more risk there is disruption, less risk a saving. */
function dollars({ savesUsd, disruptsUsd, riskUsd }: Judged): Judged {
  const [saves, disrupts, risk] = [savesUsd / 3600, disruptsUsd / 3600, riskUsd / 3600];
  return { savesUsd: saves - Math.min(0, risk), disruptsUsd: disrupts + Math.max(0, risk), riskUsd: risk };
}

/** A move that was begun, whose target is there, need not save as much again. */
const isWorth = ({ savesUsd, disruptsUsd }: Judged, isBegun = false): boolean =>
  savesUsd > (isBegun ? 1 : TWICE) * disruptsUsd && savesUsd - disruptsUsd > LEAST_USD;
