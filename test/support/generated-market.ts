import { epochMs, plus, seconds, type EpochMs } from '../../lib/kernel/units.ts';
import { builtInCatalogue } from '../../lib/market/catalogue.ts';
import { generateMarket, type MarketSpec } from '../../lib/market/generate.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';

const FROM_MS = epochMs(Date.UTC(2026, 0, 5));
/** History before the first job: what forecasts look at by default. */
const HISTORY_DAYS = 7;
const TYPES = ['c5.large', 'c5.xlarge', 'm5.xlarge', 'c5.2xlarge'];

/** A turbulent market of few pools, spiky and smooth, with two days of it behind the first instant. */
export function smallMarket(seed: number): { readonly trace: MarketTrace; readonly startMs: EpochMs } {
  const catalogue = builtInCatalogue();
  const markets = ['us-east-1a', 'us-east-1b'].flatMap((zone, z) =>
    TYPES.flatMap((type, t): MarketSpec[] => {
      const entry = catalogue.entry(type, FROM_MS);
      return entry === null ? [] : [{ entry, zone, regime: (z + t) % 2 === 0 ? 'spiky' : 'smooth' }];
    }),
  );
  return {
    trace: generateMarket({
      name: `small-${seed}`,
      seed,
      startMs: FROM_MS,
      days: HISTORY_DAYS + 2,
      markets,
      temper: 'turbulent',
    }),
    startMs: plus(FROM_MS, seconds(HISTORY_DAYS * 86_400)),
  };
}
