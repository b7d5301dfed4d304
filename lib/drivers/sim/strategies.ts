/**
 * The cheapest strategies of tasks for the `oracle` preset, each as if its task were alone, with the answers of a
 * decision. Lifecycle: `choose` for each pending group while offers are appraised; `pending` and `chosen` answer by it
 * later in the same decision; `running` for live attempts. Strategies are cached by stage and deadline within
 * MOST_BYTES; the least recently asked goes first.
 */
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { Pool } from '../../domain/pool.ts';
import { countFits, fits } from '../../domain/resources.ts';
import { membersOf, workDoneS, type InstanceView, type PendingGroup, type RunningTask } from '../../domain/snapshot.ts';
import type { AppraiseContext, Move, PlanInput } from '../../policy/contracts.ts';
import type { GroupId, JobId, PoolId } from '../../kernel/ids.ts';
import { add, epochMs, raw, secondsBetween, sub, type EpochMs } from '../../kernel/units.ts';
import { availableAt, indexAt, priceAt } from '../../market/price-steps.ts';
import { hasSpot, type Choice } from '../../stages/plan/strategy.ts';
import { OfflineStrategy, OneRunStrategy, type Begun, type On, type SpotUsdPerS } from './offline.ts';
import type { Truth } from './truth.ts';

/** Time for which work without a deadline waits for spot. */
const PATIENCE_S = 86_400;
/** Memory of cached strategies: one takes 7 MB for each pool for hours of work, less than one for minutes. */
const MOST_BYTES = 512 * 2 ** 20;
/**
 * Deadlines of inner stages move by seconds as tasks end; a strategy is for the earliest deadline within this width.
 */
const ALIKE_S = 60;
/** Spot pools that a strategy chooses among. */
const MOST_POOLS = 4;
/** Times in the window at which pools are compared. */
const SAMPLES = 96;

interface Wanted {
  readonly job: JobId;
  readonly stage: StageSpec;
  readonly nowMs: EpochMs;
  readonly deadlineMs: EpochMs;
  readonly config: SchedulerConfig;
}

interface Known {
  readonly pools: readonly PoolId[];
  readonly bytes: number;
  best(atS: number, leftS: number, on: On, begun: Begun | null): On;
}

interface Chosen {
  readonly best: On;
  readonly pool: PoolId | null;
  /** Time since which the answer is that pool. */
  readonly sinceMs: EpochMs;
}

export const setupOf = ({ setupS }: Truth): number => raw(setupS);

/** Time scale of strategies: seconds since 1970. */
const secondOf = (t: EpochMs): number => raw(t) / 1000;

/** Running time of the longest task of a group. */
export function longestOf(group: PendingGroup, truth: Truth): number {
  const runtimes = truth.runtimesS(group.job, group.stage.name);
  return membersOf(group).reduce((longest, i) => Math.max(longest, runtimes[i] ?? 0), 0);
}

export class Strategies {
  readonly #truth: Truth;
  readonly #known = new Map<string, Known>();
  #chosen = new Map<GroupId, Chosen>();
  #chosenMs: EpochMs | null = null;
  /** Answers of the decision before: what was bought by them may be starting. */
  #before: ReadonlyMap<GroupId, Chosen> = new Map();
  #bytes = 0;

  constructor(truth: Truth) {
    this.#truth = truth;
  }

  /** The spot pool that the group's strategy takes now; null: none, or it has no deadline. */
  choose(
    group: PendingGroup,
    { snapshot, worths, config }: Pick<AppraiseContext, 'snapshot' | 'worths' | 'config'>,
  ): PoolId | null {
    const { nowMs } = snapshot;
    if (this.#chosenMs !== nowMs) {
      this.#before = this.#chosen;
      this.#chosen = new Map();
    }
    this.#chosenMs = nowMs;
    const deadlineMs = worths.groups.get(group.id)?.taskDeadlineMs ?? null;
    if (deadlineMs === null) return null;
    const known = this.#of({ job: group.job, stage: group.stage, nowMs, deadlineMs, config });
    // The saved part includes the first set-up; a strategy counts the next one as its changeover.
    const keptS = Math.max(0, raw(group.keptS) - setupOf(this.#truth));
    const best = known.best(
      secondOf(nowMs),
      Math.max(0, longestOf(group, this.#truth) - keptS),
      'nowhere',
      this.#begunFor(group.id, known.pools, nowMs),
    );
    const pool = typeof best === 'number' ? (known.pools[best] ?? null) : null;
    const before = this.#before.get(group.id);
    const sinceMs = before !== undefined && before.pool === pool ? before.sinceMs : nowMs;
    this.#chosen.set(group.id, { best, pool, sinceMs });
    return pool;
  }

  #begunFor(group: GroupId, pools: readonly PoolId[], nowMs: EpochMs): Begun | null {
    const before = this.#before.get(group);
    if (before === undefined || before.pool === null) return null;
    const pool = pools.indexOf(before.pool);
    return pool < 0 ? null : { pool, elapsedS: secondsBetween(before.sinceMs, nowMs) };
  }

  chosen(group: GroupId): PoolId | null {
    return this.#chosen.get(group)?.pool ?? null;
  }

  pending(group: PendingGroup, input: PlanInput): Choice {
    const best = this.#chosen.get(group.id)?.best;
    if (best === undefined) return this.#withoutDeadline(group, input);
    if (typeof best === 'number' && hasSpot(group, input))
      return { take: 'spot', why: 'the cheapest strategy goes on spot now' };
    return best === 'nowhere'
      ? { take: 'wait', why: 'the cheapest strategy waits for spot' }
      : { take: 'on-demand', why: 'the cheapest strategy needs on-demand now' };
  }

  #withoutDeadline(group: PendingGroup, input: PlanInput): Choice {
    if (hasSpot(group, input)) return { take: 'spot', why: 'a spot pool has capacity' };
    return secondsBetween(group.submittedMs, input.snapshot.nowMs) < PATIENCE_S
      ? { take: 'wait', why: 'no spot pool has capacity now' }
      : { take: 'on-demand', why: 'it has waited for a day' };
  }

  running(
    running: RunningTask,
    view: InstanceView,
    of: Pick<Wanted, 'nowMs' | 'config'> & { readonly deadlineMs: EpochMs | null },
  ): Move | null {
    const { attempt, stage } = running;
    if (of.deadlineMs === null || stage.gang || stage.checkpoint === null || view.pool.option === 'reserved')
      return null;
    if (view.instance.state !== 'ready') return null;
    const known = this.#of({ ...of, deadlineMs: of.deadlineMs, job: attempt.job, stage });
    const place = known.pools.indexOf(view.pool.id);
    // Capacity in a pool that the strategy does not know is left alone until it is taken.
    if (view.pool.option === 'spot' && place < 0) return null;
    const on: On = view.pool.option === 'spot' ? place : 'non-interruptible';
    const runtimeS = this.#truth.runtimeS(attempt.job, attempt.stage, attempt.index);
    const leftS = Math.max(0, raw(sub(add(runtimeS, this.#truth.setupS), workDoneS(running, of.nowMs))));
    const best = known.best(secondOf(of.nowMs), leftS, on, null);
    // A change between spot pools waits for the interruption: until then the work goes on.
    if (best === 'nowhere' || best === on || (typeof best === 'number' && typeof on === 'number')) return null;
    const toSpot = typeof best === 'number';
    const reason = `its cheapest strategy goes on on ${toSpot ? 'spot' : 'on-demand'} now`;
    return { attempt: attempt.id, reason, running, view, ...(toSpot ? { to: 'spot' as const } : {}) };
  }

  #of(w: Wanted): Known {
    // The cost of a strategy depends only on the work left, so tasks of a stage share theirs.
    const deadlineS = Math.floor(secondOf(w.deadlineMs) / ALIKE_S) * ALIKE_S;
    const key = `${w.job}/${w.stage.name}/${deadlineS}`;
    const known = this.#known.get(key) ?? this.#made(w, deadlineS);
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const [oldest, { bytes }] of this.#known) {
      if (this.#bytes <= MOST_BYTES || oldest === key) break;
      this.#known.delete(oldest);
      this.#bytes -= bytes;
    }
    return known;
  }

  #made(w: Wanted, askedS: number): Known {
    const { startDelayMaxS, cyclePeriodS } = w.config;
    const changeoverS = setupOf(this.#truth) + startDelayMaxS;
    const window = {
      fromS: secondOf(w.nowMs),
      // A strategy is followed from cycle to cycle, a cycle may pass before a changeover begins, and spot offers that
      // leave no time for a start on on-demand are never taken (appraise.ts).
      deadlineS: askedS - 2 * cyclePeriodS - startDelayMaxS,
    };
    const workS = this.#truth.runtimesS(w.job, w.stage.name).reduce((longest, s) => Math.max(longest, s), 0);
    const { nonInterruptibleUsdPerS, spots } = this.#pricesFor(w.stage, window);
    const pools = spots.map((s) => s.pool);
    const strategy =
      w.stage.checkpoint === null
        ? new OneRunStrategy({
            ...window,
            nonInterruptibleUsdPerS,
            lengthS: workS + changeoverS,
            spareS: 2 * cyclePeriodS + startDelayMaxS,
            runUsd: spots.map(({ usdPerS }) => (fromS, untilS) => {
              const usd = usdPerS(fromS, untilS);
              return usd === null ? null : usd * (untilS - fromS);
            }),
          })
        : new OfflineStrategy({
            ...window,
            nonInterruptibleUsdPerS,
            workS,
            changeoverS,
            spots: spots.map((s) => s.usdPerS),
          });
    this.#bytes += strategy.bytes;
    const best: Known['best'] = (atS, leftS, on, begun) =>
      strategy instanceof OneRunStrategy ? strategy.best(atS, begun !== null) : strategy.best(atS, leftS, on, begun);
    return { pools, bytes: strategy.bytes, best };
  }

  #pricesFor(
    stage: StageSpec,
    window: { readonly fromS: number; readonly deadlineS: number },
  ): {
    readonly nonInterruptibleUsdPerS: number | null;
    readonly spots: readonly { readonly pool: PoolId; readonly usdPerS: SpotUsdPerS }[];
  } {
    const { trace } = this.#truth;
    const suited = trace.pools.filter(
      (pool) => fits(stage.resources, pool.type.capacity) && brokenConstraint(stage.constraints, pool) === null,
    );
    // An instance that other work does not fill is paid for as a whole: tasks of the stage share it.
    const perS = (pool: Pool, usd: number): number =>
      usd / Math.max(1, Math.min(stage.tasks, countFits(stage.resources, pool.type.capacity))) / 3600;
    const nonInterruptible = suited
      .filter((p) => p.option === 'on-demand')
      .reduce((least, p) => Math.min(least, perS(p, raw(p.onDemandUsdPerHour))), Infinity);
    const spots = suited
      .filter((p) => p.option === 'spot')
      .map((pool) => ({
        pool: pool.id,
        usdPerS: (fromS: number, untilS: number): number | null => {
          const usd = this.#meanUsdPerHour(pool, fromS * 1000, untilS * 1000);
          return usd === null || !this.#lasts(pool, fromS * 1000, untilS * 1000) ? null : perS(pool, usd);
        },
      }));
    return {
      nonInterruptibleUsdPerS: nonInterruptible === Infinity ? null : nonInterruptible,
      spots: bestPools(spots, window, nonInterruptible),
    };
  }

  /** Time-weighted mean price; null before the first one. */
  #meanUsdPerHour(pool: Pool, fromMs: number, untilMs: number): number | null {
    const prices = this.#truth.trace.prices(pool.id);
    const first = priceAt(prices, epochMs(fromMs));
    if (first === null || untilMs <= fromMs) return first;
    let [sum, atMs, usd] = [0, fromMs, first];
    for (let i = indexAt(prices.atMs, fromMs) + 1; (prices.atMs[i] ?? Infinity) < untilMs; i++) {
      const nextMs = prices.atMs[i] ?? untilMs;
      sum += usd * (nextMs - atMs);
      [atMs, usd] = [nextMs, prices.usdPerHour[i] ?? usd];
    }
    return (sum + usd * (untilMs - atMs)) / (untilMs - fromMs);
  }

  #lasts(pool: Pool, fromMs: number, untilMs: number): boolean {
    const steps = this.#truth.trace.availability(pool.id);
    if (steps === null) return true;
    if (!availableAt(steps, fromMs)) return false;
    for (let i = indexAt(steps.atMs, fromMs) + 1; i < steps.atMs.length && (steps.atMs[i] ?? 0) < untilMs; i++) {
      if (steps.available[i] === 0) return false;
    }
    return true;
  }
}

interface SpotPrices {
  readonly pool: PoolId;
  readonly usdPerS: SpotUsdPerS;
}

/** The few pools that together are cheapest over the window, chosen one after the other. */
function bestPools(
  spots: readonly SpotPrices[],
  { fromS, deadlineS }: { readonly fromS: number; readonly deadlineS: number },
  otherwiseUsdPerS: number,
): readonly SpotPrices[] {
  if (spots.length <= MOST_POOLS) return spots;
  const stepS = Math.max(1, (deadlineS - fromS) / SAMPLES);
  const otherwise = Number.isFinite(otherwiseUsdPerS) ? otherwiseUsdPerS : 1;
  const rows = spots.map(({ usdPerS }) =>
    Float64Array.from({ length: SAMPLES }, (_, i) => usdPerS(fromS + i * stepS, fromS + (i + 1) * stepS) ?? Infinity),
  );
  const chosen: number[] = [];
  const least = new Float64Array(SAMPLES).fill(otherwise);
  while (chosen.length < MOST_POOLS) {
    const gains = rows.map((row, pool) =>
      chosen.includes(pool) ? -1 : row.reduce((sum, usd, i) => sum + Math.max(0, (least[i] ?? 0) - usd), 0),
    );
    const best = gains.reduce((a, gain, pool) => (gain > (gains[a] ?? -1) ? pool : a), 0);
    chosen.push(best);
    rows[best]?.forEach((usd, i) => (least[i] = Math.min(least[i] ?? Infinity, usd)));
  }
  return chosen.flatMap((pool) => spots[pool] ?? []);
}
