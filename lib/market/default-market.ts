import { invariant } from '../kernel/errors.ts';
import { epochMs, msBetween, type EpochMs } from '../kernel/units.ts';
import { vcpusOf, type Pool } from '../domain/pool.ts';
import { builtInCatalogue } from './catalogue.ts';
import { generateMarket, type MarketSpec } from './generate.ts';
import { interruptionAfter, launchOutcome } from './replay.ts';
import { priceAt } from './price-steps.ts';
import { spanOf, type MarketTrace } from './trace.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Monday, 5 January 2026, 00:00 UTC. */
export const DEFAULT_MARKET_START = epochMs(Date.UTC(2026, 0, 5));
export const DEFAULT_MARKET_DAYS = 14;
/** The most turbulent start of the first fifty seeds: its four cheapest pools are all taken. */
export const DEFAULT_SEED = 39;

export const DEFAULT_MARKET_ZONES: readonly string[] = ['us-east-1a', 'us-east-1b', 'us-east-1c'];
/** 2 to 16 vCPUs: compute, general and memory families, two generations, one arm64 family. */
export const DEFAULT_MARKET_TYPES: readonly string[] = [
  'c5.large',
  'm5.large',
  'r5.large',
  'c5.xlarge',
  'm5.xlarge',
  'c6g.xlarge',
  'm5.2xlarge',
  'c5.2xlarge',
  'c5.4xlarge',
];

/**
 * Default market of local mode: 9 types in 3 zones for two weeks, half of the pools spiky (all of them of the active
 * kind), half smooth with capacity interruptions. It is more turbulent than EC2 is today, on purpose: a rehearsal
 * without interruptions shows nothing. docs/market.md has its figures.
 */
export function defaultMarket(seed: number = DEFAULT_SEED): MarketTrace {
  const catalogue = builtInCatalogue();
  const markets = DEFAULT_MARKET_ZONES.flatMap((zone, z) =>
    DEFAULT_MARKET_TYPES.map((type, t): MarketSpec => ({
      entry: invariant(catalogue.entry(type, DEFAULT_MARKET_START), `${type} is in the built-in catalogue`),
      zone,
      regime: (z + t) % 2 === 0 ? 'spiky' : 'smooth',
    })),
  );
  return generateMarket({
    name: `generated-${seed}`,
    seed,
    startMs: DEFAULT_MARKET_START,
    days: DEFAULT_MARKET_DAYS,
    markets,
    temper: 'turbulent',
  });
}

/** Number of the cheapest pools, the first choice of a cost-minded buyer. */
const CHEAPEST = 6;
/** Time after a launch in which an interruption counts: not at once, and not after a short run is over. */
const TURBULENCE_MS = { from: 10 * MINUTE_MS, to: 100 * MINUTE_MS } as const;
const SCAN_STEP_MS = 10 * MINUTE_MS;

/**
 * Start of a replay with early interruptions. With a week of history before it and two days of market behind it: the
 * instant (in steps of ten minutes) at which most of the six cheapest spot pools per vCPU, bought at a bid of their
 * on-demand price, are taken within 10 to 100 minutes. The cheapest pool counts six times, the sixth once; the earliest
 * of equals.
 */
export function turbulentStart(trace: MarketTrace): EpochMs {
  const { startMs, endMs } = spanOf(trace);
  const from = startMs + 7 * DAY_MS;
  const to = endMs - 2 * DAY_MS;
  let best = { at: Math.min(from, endMs), score: -1 };
  for (let at = from; at < to; at += SCAN_STEP_MS) {
    const score = takenSoon(trace, at).reduce((sum, taken, rank) => sum + (taken ? CHEAPEST - rank : 0), 0);
    if (score > best.score) best = { at, score };
  }
  return epochMs(best.at);
}

/** For the cheapest pools at `at`, cheapest first: true if interrupted soon after. */
export function takenSoon(trace: MarketTrace, at: number): readonly boolean[] {
  return cheapest(trace, at).map((pool) => {
    const interruption = interruptionAfter(trace, pool.id, epochMs(at), pool.onDemandUsdPerHour);
    const after = interruption === null ? Infinity : msBetween(epochMs(at), interruption.warnMs);
    return after >= TURBULENCE_MS.from && after <= TURBULENCE_MS.to;
  });
}

function cheapest(trace: MarketTrace, at: number): readonly Pool[] {
  const perVcpu = (pool: Pool): number => (priceAt(trace.prices(pool.id), epochMs(at)) ?? Infinity) / vcpusOf(pool);
  return trace.pools
    .filter((pool) => pool.option === 'spot')
    .filter((pool) => launchOutcome(trace, pool.id, epochMs(at), pool.onDemandUsdPerHour) === 'ok')
    .sort((a, b) => perVcpu(a) - perVcpu(b) || (a.id < b.id ? -1 : 1))
    .slice(0, CHEAPEST);
}

/**
 * Start of the default market's replay: `turbulentStart` of `defaultMarket(DEFAULT_SEED)`, a constant so that starting
 * needs no search.
 */
export const defaultMarketStartMs: EpochMs = epochMs(Date.UTC(2026, 0, 14, 10, 40));
