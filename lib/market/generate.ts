import { randomExponential, randomGeometric, randomNormal } from 'd3-random';
import { EbbError } from '../kernel/errors.ts';
import { randomStream, type Uniform } from '../kernel/random.ts';
import { epochMs, raw, type EpochMs } from '../kernel/units.ts';
import type { CatalogueEntry } from './catalogue.ts';
import { FITTED } from './fitted.ts';
import { MAX_RATIO } from './fit.ts';
import { draw } from './quantiles.ts';
import type { CapacityModel, MarketModel, SmoothModel, SpikyModel, SpikyProfile } from './regimes.ts';
import { traceOf, type PriceArrays, type SpotMarket } from './price-steps.ts';
import type { AvailabilitySteps, MarketTrace } from './trace.ts';
import { onDemandUsdOf } from '../domain/pool.ts';

export type Regime = 'spiky' | 'smooth';

/** One spot market to generate. */
export interface MarketSpec {
  readonly entry: CatalogueEntry;
  readonly zone: string;
  readonly regime: Regime;
}

export interface GenerateSpec {
  readonly name: string;
  readonly seed: number;
  readonly startMs: EpochMs;
  readonly days: number;
  readonly markets: readonly MarketSpec[];
  /**
   * natural: profiles as often as in the real markets, where every second spiky pool never spikes.
   * turbulent: spiky pools are drawn from those with at least TURBULENT_BURSTS_PER_DAY bursts.
   */
  readonly temper: 'natural' | 'turbulent';
}

const DAY_MS = 86_400_000;
/** Bursts per day from which a pool counts as turbulent: the most active fifth of the fitted profiles with spikes. */
export const TURBULENT_BURSTS_PER_DAY = 0.5;

/**
 * A market with both regimes of spot pricing, wholly determined by its spec: the same seed gives the same market, and
 * each pool has a random stream of its own, so adding a pool changes no other. Pools move independently of one another.
 * The model and its fit: docs/market.md.
 */
export function generateMarket(spec: GenerateSpec, model: MarketModel = FITTED): MarketTrace {
  if (!(spec.days > 0 && spec.days <= 366)) {
    throw new EbbError('usage', {
      what: 'length of the market to generate',
      got: `${spec.days} days`,
      allowed: '0 < days <= 366',
    });
  }
  const startMs = raw(spec.startMs);
  const endMs = startMs + spec.days * DAY_MS;
  const markets = spec.markets.map((market): SpotMarket => {
    const stream = (what: string): Uniform =>
      randomStream(spec.seed, `market/${market.entry.type.name}/${market.zone}/${what}`);
    const span: Span = { startMs, endMs, onDemand: onDemandUsdOf(market.entry) };
    return {
      type: market.entry.type,
      zone: market.zone,
      onDemandUsdPerHour: span.onDemand,
      prices:
        market.regime === 'spiky'
          ? spikyPrices(span, model.spiky, spec.temper, stream('price'))
          : smoothPrices(span, model.smooth, stream('price')),
      availability: market.regime === 'smooth' ? capacity(span, model.capacity, stream('capacity')) : null,
    };
  });
  return traceOf({ name: spec.name, startMs: spec.startMs, endMs: epochMs(endMs), isUnbroken: true }, markets);
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
  readonly onDemand: number;
}

/** Collects price changes in dollars; changes that vanish in rounding to 1/100 cent are left out. */
class PriceRecorder {
  readonly #atMs: number[] = [];
  readonly #usd: number[] = [];
  readonly #span: Span;

  constructor(span: Span) {
    this.#span = span;
  }

  /** `atMs` ascends strictly from call to call, in whole milliseconds. */
  add(atMs: number, ratio: number): void {
    const price = Math.max(0.0001, Math.round(ratio * this.#span.onDemand * 1e4) / 1e4);
    if (price === this.#usd.at(-1) || atMs >= this.#span.endMs) return;
    this.#atMs.push(atMs);
    this.#usd.push(price);
  }

  steps(): PriceArrays {
    return { atMs: Float64Array.from(this.#atMs), usdPerHour: Float64Array.from(this.#usd) };
  }
}

const pick = <T>(items: readonly T[], random: Uniform): T => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new EbbError('internal', { what: 'no profile to draw from' });
  return item;
};

/** AR(1) in ln(price / on-demand), stepped at every change: mean reversion around the profile's level. */
function meanReverting(
  profile: { readonly level: number; readonly sd: number },
  phi: number,
  random: Uniform,
): () => number {
  const normal = randomNormal.source(random)(0, 1);
  let x = profile.sd * normal();
  return () => {
    x = phi * x + profile.sd * Math.sqrt(1 - phi * phi) * normal();
    return Math.exp(profile.level + x);
  };
}

/** Times between changes are at least this long, so that instants ascend. */
const MIN_STEP_MS = 1000;
const stepMs = (s: number): number => Math.max(MIN_STEP_MS, Math.round(s * 1000));
/** Ceiling of the mean-reverting price below on-demand; prices above are excursions. */
const CALM_CEILING = 0.99;

/** Mean-reverting below on-demand, interrupted by bursts of excursions above it. */
function spikyPrices(span: Span, model: SpikyModel, temper: GenerateSpec['temper'], random: Uniform): PriceArrays {
  const profiles =
    temper === 'natural' ? model.profiles : model.profiles.filter((p) => p.burstsPerDay >= TURBULENT_BURSTS_PER_DAY);
  const profile = pick(profiles, random);
  const calm = meanReverting(profile, model.phi, random);
  const next = excursions(profile, model, random);
  const recorder = new PriceRecorder(span);
  let t = span.startMs;
  let spike = next(t - DAY_MS);
  // The first day is warm-up, so that a market can begin amid a burst.
  while (spike.startMs < t) spike = next(spike.startMs + spike.lengthMs);
  while (t < span.endMs) {
    while (t < Math.min(spike.startMs, span.endMs)) {
      recorder.add(t, Math.min(CALM_CEILING, calm()));
      t += stepMs(draw(model.inter, random) * profile.interS);
    }
    if (spike.startMs >= span.endMs) break;
    t = spike.startMs;
    const endMs = t + spike.lengthMs;
    // The peak comes first: prices jump up and crumble.
    recorder.add(t, Math.exp(spike.logPeak));
    for (t += stepMs(draw(model.inter, random) * profile.interS); t < endMs;) {
      recorder.add(t, Math.max(1.0001, Math.exp(spike.logPeak * draw(model.within, random))));
      t += stepMs(draw(model.inter, random) * profile.interS);
    }
    t = endMs;
    spike = next(endMs);
  }
  return recorder.steps();
}

interface Spike {
  readonly startMs: number;
  readonly lengthMs: number;
  readonly logPeak: number;
}

/** The next excursion after an instant: bursts at the pool's rate, a geometric number of excursions in each. */
function excursions(profile: SpikyProfile, model: SpikyModel, random: Uniform): (afterMs: number) => Spike {
  if (profile.burstsPerDay === 0) return () => ({ startMs: Infinity, lengthMs: 0, logPeak: 0 });
  const more = randomGeometric.source(random)(1 / Math.max(1, profile.spikesPerBurst));
  const meanGapS = 86_400 / profile.burstsPerDay;
  let left = 0;
  let first = true;
  return (afterMs) => {
    let gapS: number;
    if (left > 0) gapS = draw(model.innerGapS, random);
    else {
      // Before the first burst the gap is exponential: the market begins at an arbitrary time of its life.
      gapS = first ? randomExponential.source(random)(1 / meanGapS)() : draw(model.burstGap, random) * meanGapS;
      left = more();
      first = false;
    }
    left--;
    return {
      startMs: afterMs + stepMs(gapS),
      lengthMs: stepMs(draw(model.spike, random) * profile.spikeS),
      logPeak: Math.min(Math.log(MAX_RATIO), Math.max(0.001, draw(model.peak, random) * profile.logPeak)),
    };
  };
}

/** Slow mean reversion below on-demand. */
function smoothPrices(span: Span, model: SmoothModel, random: Uniform): PriceArrays {
  const profile = pick(model.profiles, random);
  const price = meanReverting(profile, model.phi, random);
  const recorder = new PriceRecorder(span);
  recorder.add(span.startMs, Math.min(1, price()));
  if (profile.interS === 0) return recorder.steps();
  // A random phase, so that pools do not all change at the start.
  let t = span.startMs + stepMs(random() * profile.interS);
  while (t < span.endMs) {
    recorder.add(t, Math.min(1, price()));
    t += stepMs(draw(model.inter, random) * profile.interS);
  }
  return recorder.steps();
}

/** Alternating periods with and without capacity. */
function capacity(span: Span, model: CapacityModel, random: Uniform): AvailabilitySteps {
  const profile = pick(model.profiles, random);
  const atMs: number[] = [];
  const available: number[] = [];
  const length = (up: boolean): number =>
    stepMs(up ? draw(model.up, random) * profile.upS : draw(model.down, random) * profile.downS);
  let up = random() < 0.5;
  // A day of warm-up, so that the state at the start is as likely as it is at any time.
  for (let t = span.startMs - DAY_MS; t < span.endMs; up = !up) {
    const until = t + length(up);
    if (until > span.startMs) {
      atMs.push(Math.max(span.startMs, t));
      available.push(up ? 1 : 0);
    }
    t = until;
  }
  return { atMs: Float64Array.from(atMs), available: Uint8Array.from(available) };
}
