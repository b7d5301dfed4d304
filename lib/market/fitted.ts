import type { MarketModel } from './regimes.ts';
export const FITTED: MarketModel = {
  spiky: { profiles: [], phi: 0, inter: [], burstGap: [], innerGapS: [], spike: [], peak: [], within: [] },
  smooth: { profiles: [], phi: 0, inter: [] },
  capacity: { profiles: [], up: [], down: [] },
};
