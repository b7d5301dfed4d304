/**
 * A service on a replayed market: load comes by the minute, the scaling and the footprint policy decide each minute and
 * when the market takes an instance (Tributary's decision points, section 2.2; a window's end is seen at the next
 * minute). Bills and interruptions are the market's truth; policies see prices up to now alone.
 */
import { instanceId, type PoolId } from '../../../kernel/ids.ts';
import { invariant } from '../../../kernel/errors.ts';
import { randomStream } from '../../../kernel/random.ts';
import { epochMs, plus, raw, seconds, type EpochMs } from '../../../kernel/units.ts';
import type { SchedulerConfig } from '../../../domain/config.ts';
import type { MarketForecast } from '../../../domain/forecasts.ts';
import type { Pool, PoolView } from '../../../domain/pool.ts';
import type { CapacityTruth } from '../../../market/capacity-truth.ts';
import { BACK_OFF_S } from '../../../cycle/observe/back-off.ts';
import type {
  FootprintContext,
  FootprintPolicy,
  HeldInstance,
  ScalingPolicy,
} from '../../../policy/services/contracts.ts';
import type { Market } from '../../../ports/market.ts';
import { vcpusOf } from '../../../domain/pool.ts';
import { RequestQueue, type RequestRules } from './request-queue.ts';

const MINUTE_S = 60;

export interface ServiceWorld {
  readonly market: Pick<Market, 'pools' | 'quote'>;
  readonly truth: Pick<CapacityTruth, 'launch' | 'interruption' | 'bill'>;
  /** Forecast of a decision. A trained model takes its time. */
  readonly forecast: (scene: ServiceScene) => MarketForecast | Promise<MarketForecast>;
  /** As in FootprintContext, at that time. */
  readonly hourlyUsd: (pool: Pool, now: EpochMs) => readonly number[];
}

/** What a decision knows of the market. */
export type ServiceScene = Pick<FootprintContext, 'nowMs' | 'pools' | 'held'>;

export interface ServicePlan {
  readonly scaling: ScalingPolicy;
  readonly footprint: FootprintPolicy;
  /** Share of requests that are to be in time. */
  readonly target: number;
}

export interface ServiceRunInput {
  readonly world: ServiceWorld;
  readonly plan: ServicePlan;
  readonly rules: RequestRules;
  readonly config: SchedulerConfig;
  /** From the launch until the first request, seconds (Tributary, section 2.4.1: 200). */
  readonly startS: number;
  readonly fromMs: EpochMs;
  /** Requests of each minute; NaN: none come, and none are measured. */
  readonly perMinute: Float64Array;
  readonly seed: number;
}

export interface ServiceMinute {
  readonly rps: number;
  readonly slow: number;
  /** vCPUs that serve at the end of the minute. */
  readonly vcpus: number;
}

export interface ServiceOutcome {
  readonly requests: number;
  readonly slow: number;
  readonly rejected: number;
  readonly billedUsd: number;
  readonly refundedUsd: number;
  readonly launched: number;
  readonly refused: number;
  readonly interrupted: number;
  readonly vcpuHours: number;
  readonly minutes: readonly ServiceMinute[];
}

interface Live extends HeldInstance {
  readonly launchedMs: EpochMs;
  readonly readyMs: number;
  /** When the market says that it takes it, and when it is gone; Infinity: never. */
  readonly warnMs: number;
  readonly goneMs: number;
}

/** O(minutes x (decision + requests' steps)). The first decision is for the load of the first minute. */
export async function runService(input: ServiceRunInput): Promise<ServiceOutcome> {
  const run = new ServiceRun(input);
  for (let minute = 0; minute < input.perMinute.length; minute++) await run.minute(minute);
  return run.end();
}

class ServiceRun {
  readonly #input: ServiceRunInput;
  readonly #pools: ReadonlyMap<PoolId, Pool>;
  readonly #queue: RequestQueue;
  readonly #measured: number[] = [];
  readonly #minutes: ServiceMinute[] = [];
  readonly #closedUntil = new Map<PoolId, number>();
  #live: Live[] = [];
  #count = 0;
  readonly #total = {
    requests: 0,
    slow: 0,
    rejected: 0,
    billedUsd: 0,
    refundedUsd: 0,
    launched: 0,
    refused: 0,
    interrupted: 0,
    vcpuHours: 0,
  };

  constructor(input: ServiceRunInput) {
    this.#input = input;
    this.#pools = new Map(input.world.market.pools().map((pool) => [pool.id, pool]));
    this.#queue = new RequestQueue(input.rules, randomStream(input.seed, 'requests'));
  }

  async minute(at: number): Promise<void> {
    const { fromMs, perMinute } = this.#input;
    const requests = perMinute[at] ?? NaN;
    if (at === 0) this.#measured.push(requests / MINUTE_S);
    const start = raw(fromMs) + at * MINUTE_S * 1000;
    const end = start + MINUTE_S * 1000;
    await this.#decide(epochMs(start));
    const rps = Number.isNaN(requests) ? 0 : requests / MINUTE_S;
    let slow = 0;
    for (let now = start; now < end;) {
      const next = Math.min(end, this.#nextChange(now));
      slow += this.#serve((next - now) / 1000, { rps, now });
      now = next;
      slow += this.#take(now);
      if (now < end && this.#live.some((i) => i.warnMs === now)) await this.#decide(epochMs(now));
    }
    this.#measured.push(requests / MINUTE_S);
    this.#minutes.push({ rps, slow, vcpus: this.#serving(end) });
  }

  /** Next time at which an instance serves, is warned or is gone. */
  #nextChange(now: number): number {
    let next = Infinity;
    for (const { readyMs, warnMs, goneMs } of this.#live) {
      for (const at of [readyMs, warnMs, goneMs]) if (at > now && at < next) next = at;
    }
    return next;
  }

  #serving(now: number): number {
    return this.#live.reduce((sum, { readyMs, pool }) => sum + (readyMs <= now ? vcpusOf(pool) : 0), 0);
  }

  #serve(forS: number, { rps, now }: { readonly rps: number; readonly now: number }): number {
    const vcpus = this.#serving(now);
    const { arrived, slow, rejected } = this.#queue.serve(forS, rps, vcpus);
    this.#total.requests += arrived;
    this.#total.slow += slow;
    this.#total.rejected += rejected;
    this.#total.vcpuHours += (vcpus * forS) / 3600;
    return slow;
  }

  /** Ends what is gone by now; what waited there is lost. Returns the requests lost. */
  #take(now: number): number {
    const gone = this.#live.filter(({ goneMs }) => goneMs <= now);
    if (gone.length === 0) return 0;
    const before = this.#serving(now);
    this.#live = this.#live.filter(({ goneMs }) => goneMs > now);
    const lost = before === 0 ? 0 : this.#queue.lose(1 - this.#serving(now) / before);
    for (const instance of gone) this.#bill(instance, now, true);
    this.#total.interrupted += gone.length;
    this.#total.slow += lost;
    return lost;
  }

  #bill({ pool, launchedMs, bid }: Live, untilMs: number, takenByMarket: boolean): void {
    const bill = this.#input.world.truth.bill(pool.id, { launchedMs, untilMs: epochMs(untilMs), bid, takenByMarket });
    this.#total.billedUsd += raw(bill.totalUsd);
    this.#total.refundedUsd += bill.refundedUsd ?? 0;
  }

  /** Where a pool refuses, the others are asked at once, as the next cycle does a few seconds later. */
  async #decide(now: EpochMs): Promise<void> {
    let tries = this.#pools.size;
    while ((await this.#decideOnce(now)) && tries-- > 0);
  }

  /** True if some pool refused. */
  async #decideOnce(now: EpochMs): Promise<boolean> {
    const { world, plan, rules, config, startS } = this.#input;
    const rps = plan.scaling({ periodS: MINUTE_S, rps: this.#measured });
    // Nothing was ever measured: what is held stays.
    if (rps === null) return false;
    const needed = rps * rules.serviceS;
    const scene: ServiceScene = {
      nowMs: now,
      pools: world.market.pools().map((pool): PoolView => ({
        pool,
        quote: world.market.quote(pool.id, now),
        open: (this.#closedUntil.get(pool.id) ?? 0) <= raw(now),
        closedReason: null,
      })),
      held: this.#live.filter(({ warnMs }) => warnMs > raw(now)),
    };
    const { buy, release } = plan.footprint({
      ...scene,
      config: { ...config, startDelayMeanS: startS },
      market: await world.forecast(scene),
      hourlyUsd: (pool) => world.hourlyUsd(pool, now),
      demand: { utility: (vcpus) => (needed <= 0 ? 1 : Math.min(1, vcpus / needed)), target: plan.target },
    });
    const ended = new Set(release.map(({ instance }) => instance));
    for (const instance of this.#live) if (ended.has(instance.id)) this.#bill(instance, raw(now), false);
    this.#live = this.#live.filter(({ id }) => !ended.has(id));
    const refused = this.#total.refused;
    for (const { pool, bid, count } of buy) for (let n = 0; n < count; n++) this.#launch(pool, bid, now);
    return this.#total.refused > refused;
  }

  #launch(id: PoolId, bid: HeldInstance['bid'], now: EpochMs): void {
    const { world, startS } = this.#input;
    const pool = invariant(this.#pools.get(id), `a policy bought in ${id}, which the market does not have`);
    if (world.truth.launch(id, now, bid) !== 'ok') {
      this.#total.refused++;
      this.#closedUntil.set(id, raw(plus(now, seconds(BACK_OFF_S))));
      return;
    }
    const taken = pool.option === 'spot' ? world.truth.interruption(id, now, bid) : null;
    this.#total.launched++;
    this.#live.push({
      id: instanceId(`i-${this.#count++}`),
      pool,
      bid,
      launchedMs: now,
      readyMs: raw(plus(now, seconds(startS))),
      warnMs: taken === null ? Infinity : raw(taken.warnMs),
      goneMs: taken === null ? Infinity : raw(taken.goneMs),
    });
  }

  end(): ServiceOutcome {
    const until = raw(this.#input.fromMs) + this.#input.perMinute.length * MINUTE_S * 1000;
    for (const instance of this.#live) this.#bill(instance, until, false);
    this.#live = [];
    return { ...this.#total, minutes: this.#minutes };
  }
}
