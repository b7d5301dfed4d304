/**
 * A lower bound of what a workload costs on a market, for any way of doing all of it in time, with any knowledge of the
 * future. It depends on needs and market alone. In time: by the deadline; work without one within a day and its longest
 * chain of stages, for who may wait for ever waits for the lowest price there is.
 *
 * Proof. Take any schedule in which every task succeeds within its window. Its charges are the sum over instances of
 * price times time, and no price is below the least rates of `rates.ts`. `shares.ts` divides each instance's charge
 * among its tasks: the sum of their shares times price times running time is no larger. So the charges are at least the
 * sum over tasks of what each pays at its shares, and each pays no less than the least cost of `cheapest-run.ts`.
 *
 * Relaxations, each of which can only lower the figure:
 * - Tasks are apart: machines are divided without waste, and whatever shares well is assumed to be there.
 * - Start-up, idle time and changes between pools are free; a single task alone pays the shortest start-up of each
 *   stay.
 * - Prices are the least within the notice (and the billed hour); any launch succeeds while a pool has capacity.
 * - Work that saves its state keeps all of it; failed tries, vCPU limits, gangs, `after` and spending limits are left
 *   out.
 * - Charges are those before refunds of interrupted first hours. Whoever knew all prices could bid to be interrupted,
 *   and run for nothing: compare with bills before refunds.
 *
 * A task whose deadline cannot be met has all the time there is. `usd` is 0 for a task that no pool of the market
 * takes.
 */
import type { BillingRules } from '../../../market/billing.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { InstanceType, Pool } from '../../../domain/pool.ts';
import { cheapestRuns, cheapestStays, CheapestTime, type SharedRates, type Work } from './cheapest-run.ts';
import { kindKey, mayUse, windowOf, type Needs, type StageNeed } from './needs.ts';
import { envelope, HOUR_MS, leastRates, type Rates, type Span } from './rates.ts';
import { sharesOf, type ShareOf } from './shares.ts';

/** Tasks times pools beyond which only the cheapest moments are looked for. */
const MOST_RUNS = 2_000_000;
const MOST_STAYS = 20_000;
/** Tasks beyond which no bound is computed. */
export const MOST_TASKS = 300_000;

export interface BoundInput {
  readonly needs: Needs;
  readonly trace: MarketTrace;
  readonly rules: BillingRules;
  /** End of the simulation: nothing is done later. */
  readonly toMs: number;
}

/** USD before refunds; null: too many tasks. */
export function lowerBoundUsd(input: BoundInput): number | null {
  const { needs } = input;
  if (needs.tasks > MOST_TASKS) return null;
  if (needs.tasks === 0) return 0;
  return new LowerBound(input).usd();
}

class LowerBound {
  readonly #needs: Needs;
  readonly #billing: BillingRules['billing'];
  readonly #pools: readonly Pool[];
  readonly #span: Span;
  readonly #rates: ReadonlyMap<Pool, Rates>;
  readonly #share: ShareOf;
  readonly #kinds = new Map<string, { readonly pools: readonly SharedRates[]; readonly least: Rates }>();

  constructor({ needs, trace, rules, toMs }: BoundInput) {
    const fromMs = needs.stages.reduce((first, s) => Math.min(first, s.releaseMs), Infinity);
    this.#needs = needs;
    this.#billing = rules.billing;
    this.#span = { fromMs, toMs: Math.max(fromMs + 1, toMs) };
    this.#pools = trace.pools.filter((pool) => needs.stages.some((s) => mayUse(s, pool)));
    this.#rates = new Map(this.#pools.map((p) => [p, leastRates(trace, p, { rules, span: this.#span })]));
    const usual = usualRates(this.#rates);
    const usualRate = (type: InstanceType): number => usual.get(type.name) ?? Infinity;
    this.#share = sharesOf(needs, this.#pools, { billing: rules.billing, usualRate });
  }

  usd(): number {
    return this.#needs.stages.reduce((sum, stage) => sum + this.#stageUsd(stage), 0);
  }

  #stageUsd(stage: StageNeed): number {
    const { pools, least } = this.#kindOf(stage);
    const { setupMs, changeoverMs } = this.#needs;
    const { fromMs, toMs } = windowOf(stage, setupMs);
    const window = { fromMs, toMs: Math.min(toMs, this.#span.toMs) };
    const time = new CheapestTime(least, window);
    const inPoolsUsd = this.#inPools(stage, pools, { window, changeoverMs });
    return stage.runtimeMs.reduce((sum, workMs) => {
      const lengthMs = workMs + changeoverMs;
      const usd = Math.max(time.leastUsd(lengthMs), inPoolsUsd(workMs)) + this.#restMs(lengthMs) * time.leastRate;
      return sum + (Number.isFinite(usd) ? usd : 0);
    }, 0);
  }

  /**
   * Time that is paid beside a task that is alone, by the hour: it uses an hour of each charged one at most. Less than
   * an hour of work has its share of it (shares.ts).
   */
  #restMs(lengthMs: number): number {
    const isCounted = this.#billing === 'per-hour' && this.#needs.tasks === 1 && lengthMs > HOUR_MS;
    return isCounted ? Math.ceil(lengthMs / HOUR_MS) * HOUR_MS - lengthMs : 0;
  }

  /** With changeovers, or in one piece; 0 where there are too many tasks for that. */
  #inPools({ saves }: StageNeed, pools: readonly SharedRates[], of: Omit<Work, 'workMs'>): (workMs: number) => number {
    const questions = this.#needs.tasks * pools.length;
    if (!saves) {
      const leastUsd = questions > MOST_RUNS ? () => 0 : cheapestRuns(pools, of.window);
      return (workMs) => leastUsd(workMs + of.changeoverMs);
    }
    if (of.changeoverMs === 0 || questions > MOST_STAYS) return () => 0;
    return (workMs) => cheapestStays(pools, { ...of, workMs });
  }

  #kindOf(stage: StageNeed): { readonly pools: readonly SharedRates[]; readonly least: Rates } {
    const key = kindKey(stage);
    let known = this.#kinds.get(key);
    if (known === undefined) {
      const usable = this.#pools.filter((pool) => mayUse(stage, pool));
      const shared = usable.map((pool) => ({
        rates: this.#rates.get(pool) ?? NO_RATES,
        share: this.#share(stage, pool.type),
      }));
      const pools = withoutDearer(shared);
      this.#kinds.set(key, (known = { pools, least: envelope(pools) }));
    }
    return known;
  }
}

const NO_RATES: Rates = { atMs: new Float64Array(0), rate: new Float64Array(0) };

/** Pools less those that are never cheaper than one that is always there. */
function withoutDearer(pools: readonly SharedRates[]): readonly SharedRates[] {
  const dearest = ({ rates, share }: SharedRates): number =>
    rates.rate.length === 0 ? Infinity : share * rates.rate.reduce((a, b) => Math.max(a, b), 0);
  const cheapest = ({ rates, share }: SharedRates): number =>
    share * rates.rate.reduce((a, b) => Math.min(a, b), Infinity);
  const limit = pools.reduce((least, p) => Math.min(least, dearest(p)), Infinity);
  const kept = pools.filter((p) => cheapest(p) < limit);
  const always = pools.find((p) => dearest(p) === limit);
  return always === undefined || kept.includes(always) ? kept : [...kept, always];
}

/** Mean over the time that a pool is to be had, of the cheapest pool of each type. */
function usualRates(rates: ReadonlyMap<Pool, Rates>): ReadonlyMap<string, number> {
  const usual = new Map<string, number>();
  for (const [{ type }, { rate }] of rates) {
    const finite = rate.filter((r) => r !== Infinity);
    if (finite.length === 0) continue;
    const mean = finite.reduce((sum, r) => sum + r, 0) / finite.length;
    usual.set(type.name, Math.min(usual.get(type.name) ?? Infinity, mean));
  }
  return usual;
}
