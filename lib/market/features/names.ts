/**
 * Features of the price-loss forecast, in their order: the names in a model's manifest and the columns of a data set.
 * Units are in the names: Usd per hour; `Ratio` is relative to the on-demand price; `Log` is the natural logarithm, of
 * 1 + x if x can be zero (counts, seconds, hours, ranges).
 * The paper is Tributary, section 2.2.1, which lists eight features and the ten prices before; numbers in the comments
 * are its.
 */

/** Features of the pool and the instant, whatever the bid. */
export const POOL_FEATURES = [
  'priceUsd', // (1)
  'mean24hUsd', // (2); the paper leaves the window open
  'changes1h', // (4)
  'range2mUsd', // (5): highest less lowest price
  'range10mUsd',
  'range30mUsd',
  'weekdaySin', // (6)
  'weekdayCos',
  'timeOfDaySin', // (7)
  'timeOfDayCos',
  'workingNewYork', // (8)
  'workingLosAngeles',
  'workingBerlin',
  // Ours from here on. Prices mean more beside the on-demand price of the same machine.
  'onDemandUsdLog',
  'priceRatioLog',
  'mean1hRatioLog',
  'mean24hRatioLog',
  'mean7dRatioLog',
  'range1hRatioLog',
  'range24hRatioLog',
  'range7dRatioLog',
  'sinceChangeSLog',
  'changes24hLog',
  'changes7dLog',
  'knownHLog',
  // Neighbours: the same type in other zones; other sizes of the family in the same zone.
  'zonesLog',
  'zonesPriceRatioLog',
  'zonesChanges1hLog',
  'zonesRange1hRatioLog',
  'familyLog',
  'familyPriceRatioLog',
  'familyChanges1hLog',
  'familyRange1hRatioLog',
] as const;

/**
 * Features of the bid as well. None falls when the bid rises: a model that gives them weights of one sign is monotone
 * in the bid. `calm` is the share of past full hours in which a bid that far above the price would have lived.
 */
export const BID_FEATURES = [
  'bidDeltaUsd', // (3)
  'bidDeltaUsdLog',
  'bidDeltaRatioLog',
  'bidRatioLog',
  'bidDeltaRange24hLog',
  'bidAboveMax1h',
  'bidAboveMax24h',
  'bidAboveMax7d',
  'bidSinceAboveHLog',
  'bidCalm24h',
  'bidCalm7d',
] as const;

/** Prices of the sequence: the paper's ten; the last one is in force. */
export const SEQUENCE_LENGTH = 10;

/** Oldest first: the price relative to the one in force, and how long ago it began. */
export const SEQUENCE_FEATURES = Array.from({ length: SEQUENCE_LENGTH }, (_, i) => {
  const back = SEQUENCE_LENGTH - 1 - i;
  return [`before${back}RatioLog`, `before${back}AgeSLog`];
}).flat();

export type PoolFeature = (typeof POOL_FEATURES)[number];
export type BidFeature = (typeof BID_FEATURES)[number];

/** Columns in order: of the pool, of the sequence, of the bid. */
export const FEATURES: readonly string[] = [...POOL_FEATURES, ...SEQUENCE_FEATURES, ...BID_FEATURES];
export const FEATURE_WIDTH = FEATURES.length;
/** Width of the part that all bids in a pool share: everything before the bid's features. */
export const SHARED_WIDTH = FEATURE_WIDTH - BID_FEATURES.length;
