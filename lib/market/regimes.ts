import type { QuantileTable } from './quantiles.ts';

/**
 * Price behaviour of one market, in units of its on-demand price (regime 'spiky', EC2 before November 2017). Every
 * generated pool draws one profile; profiles are those of real markets, so that level, activity, length and height of
 * spikes keep their relation.
 */
export interface SpikyProfile {
  /** Mean and standard deviation of ln(price / on-demand) while below on-demand. */
  readonly level: number;
  readonly sd: number;
  /** Median time between changes, seconds. */
  readonly interS: number;
  /** Groups of excursions above on-demand per day below it (0: none), and excursions per group. */
  readonly burstsPerDay: number;
  readonly spikesPerBurst: number;
  /** Mean length, seconds, and mean of ln(peak / on-demand) of an excursion. */
  readonly spikeS: number;
  readonly logPeak: number;
}

/** Distributions shared by all spiky pools, each relative to the pool's own figure unless said otherwise. */
export interface SpikyModel {
  readonly profiles: readonly SpikyProfile[];
  /** Correlation of ln price between consecutive changes below on-demand. */
  readonly phi: number;
  /** Time between changes / the pool's median. */
  readonly inter: QuantileTable;
  /** Time between bursts / the pool's mean. */
  readonly burstGap: QuantileTable;
  /** Time between excursions of a burst, seconds. */
  readonly innerGapS: QuantileTable;
  /** Length of an excursion / the pool's mean. */
  readonly spike: QuantileTable;
  /** ln(peak) / the pool's mean. */
  readonly peak: QuantileTable;
  /** Within an excursion: ln(price) / ln(peak), prices in units of on-demand. */
  readonly within: QuantileTable;
}

/** Regime 'smooth' (since November 2017): the price moves slowly below on-demand. */
export interface SmoothProfile {
  readonly level: number;
  readonly sd: number;
  /** Median time between changes, seconds; 0 for a price that does not move. */
  readonly interS: number;
}

export interface SmoothModel {
  readonly profiles: readonly SmoothProfile[];
  readonly phi: number;
  readonly inter: QuantileTable;
}

/** Capacity: alternating periods with and without. */
export interface CapacityProfile {
  /** Geometric mean lengths, seconds. */
  readonly upS: number;
  readonly downS: number;
}

export interface CapacityModel {
  readonly profiles: readonly CapacityProfile[];
  /** Length of a period / the pool's geometric mean. */
  readonly up: QuantileTable;
  readonly down: QuantileTable;
}

export interface MarketModel {
  readonly spiky: SpikyModel;
  readonly smooth: SmoothModel;
  readonly capacity: CapacityModel;
}
