import type { EpochMs } from '../../lib/kernel/units.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { marketContract, type MarketDriver } from './market.ts';

async function make(trace: MarketTrace): Promise<MarketDriver> {
  let nowMs = trace.startMs;
  return {
    market: replayMarket(trace, () => nowMs),
    goTo: async (atMs: EpochMs) => void (nowMs = atMs),
  };
}

// The market of local mode, of the simulator and of the AWS double.
const replayed = { listsUnpriced: true, ends: true };
marketContract('a recorded market, replayed', { ...replayed, make, completeMs: () => null });
marketContract('a market without gaps, replayed', {
  ...replayed,
  make: (trace) => make({ ...trace, isUnbroken: true }),
  completeMs: (nowMs) => nowMs,
});
