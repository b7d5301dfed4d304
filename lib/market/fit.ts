import { quantilesOf, quantileOf } from './quantiles.ts';
import type { CapacityModel, SmoothModel, SmoothProfile, SpikyModel, SpikyProfile } from './regimes.ts';
import type { PriceProfile } from './statistics.ts';

/** Excursions that follow one another within this time belong to one burst. */
export const BURST_GAP_S = 7200;
/** EC2 capped bids at ten times the on-demand price, and prices with them. */
export const MAX_RATIO = 10;
/** Fewest samples of a quantity from which a pool gives its distribution. */
const MIN_SAMPLES = 5;
const DAY_MS = 86_400_000;

const mean = (xs: readonly number[]): number => xs.reduce((sum, x) => sum + x, 0) / xs.length;
const geometricMean = (xs: readonly number[]): number => Math.exp(mean(xs.map((x) => Math.log(x))));

/** Quantiles of samples relative to their own group's scale; every group weighs the same. */
function shape(groups: readonly (readonly number[])[], scaleOf: (xs: readonly number[]) => number): readonly number[] {
  const used = groups.filter((g) => g.length >= MIN_SAMPLES);
  const values = used.flatMap((g) => {
    const scale = scaleOf(g);
    return g.map((x) => x / scale);
  });
  return quantilesOf(
    values,
    undefined,
    used.flatMap((g) => g.map(() => 1 / g.length)),
  );
}

/** Time-weighted mean and deviation of ln(ratio) where `use` holds. */
function logMoments(p: PriceProfile, use: (ratio: number) => boolean): { level: number; sd: number } | null {
  let weight = 0;
  let sum = 0;
  let squares = 0;
  p.ratio.forEach((r, i) => {
    if (!use(r)) return;
    const w = p.heldMs[i] ?? 0;
    weight += w;
    sum += w * Math.log(r);
    squares += w * Math.log(r) ** 2;
  });
  if (weight === 0) return null;
  const level = sum / weight;
  return { level, sd: Math.sqrt(Math.max(0, squares / weight - level ** 2)) };
}

/** Correlation of ln(ratio) between consecutive steps where both satisfy `use`, around the profile's own mean. */
function lagOne(p: PriceProfile, use: (ratio: number) => boolean): number | null {
  const x = p.ratio.filter((r, i) => use(r) && r !== p.ratio[i - 1]).map((r) => Math.log(r));
  if (x.length < 20) return null;
  const m = mean(x);
  let cov = 0;
  let variance = 0;
  x.forEach((v, i) => {
    variance += (v - m) ** 2;
    if (i > 0) cov += (v - m) * ((x[i - 1] ?? m) - m);
  });
  return variance === 0 ? null : cov / variance;
}

const below = (ratio: number): boolean => ratio <= 1;

interface Bursts {
  readonly count: number;
  readonly gapsS: readonly number[];
  readonly innerGapsS: readonly number[];
}

function burstsOf(p: PriceProfile): Bursts {
  const gapsS: number[] = [];
  const innerGapsS: number[] = [];
  p.excursions.forEach((e, i) => {
    const before = p.excursions[i - 1];
    if (before === undefined) return;
    const gapS = (e.startMs - before.endMs) / 1000;
    (gapS < BURST_GAP_S ? innerGapsS : gapsS).push(gapS);
  });
  return { count: p.excursions.length === 0 ? 0 : gapsS.length + 1, gapsS, innerGapsS };
}

const lengthsS = (p: PriceProfile): readonly number[] => p.excursions.map((e) => (e.endMs - e.startMs) / 1000);
const logPeaks = (p: PriceProfile): readonly number[] => p.excursions.map((e) => Math.log(Math.min(e.peak, MAX_RATIO)));

/** ln of the highest price / on-demand, at most MAX_RATIO. */
const highest = (p: PriceProfile): number =>
  Math.log(
    Math.min(
      MAX_RATIO,
      p.ratio.reduce((a, b) => Math.max(a, b), 0),
    ),
  );

/** Profile of one market; null for one that was never below on-demand (nothing to revert to). */
function spikyProfile(p: PriceProfile): SpikyProfile | null {
  const calm = logMoments(p, below);
  if (calm === null || p.interS.length === 0) return null;
  const bursts = burstsOf(p);
  const spikes = p.excursions.length;
  // Time above on-demand without a whole excursion is one that the window cuts.
  const begun = p.aboveMs === 0 ? 0 : Math.max(1, p.crossings);
  const count = begun === 0 ? 0 : Math.max(1, bursts.count);
  return {
    ...calm,
    interS: quantileOf(p.interS, 0.5),
    burstsPerDay: count / ((p.spanMs - p.aboveMs) / DAY_MS),
    spikesPerBurst: count === 0 ? 0 : begun / count,
    spikeS: begun === 0 ? 0 : p.aboveMs / 1000 / begun,
    logPeak: begun === 0 ? 0 : mean(spikes === 0 ? [highest(p)] : logPeaks(p)),
  };
}

/** Prices of excursions relative to their peak, the peak itself left out. */
function withinExcursions(p: PriceProfile): readonly number[] {
  const found: number[] = [];
  let run: number[] = [];
  for (const r of [...p.ratio, 0]) {
    if (r > 1) run.push(Math.log(Math.min(r, MAX_RATIO)));
    else if (run.length > 0) {
      const peak = Math.max(...run);
      found.push(...run.slice(1).map((x) => x / peak));
      run = [];
    }
  }
  return found;
}

/** The spiky regime's parameters from price profiles of real markets. */
export function fitSpiky(profiles: readonly PriceProfile[]): SpikyModel {
  const bursts = profiles.map(burstsOf);
  return {
    profiles: profiles.flatMap((p) => spikyProfile(p) ?? []),
    phi: quantileOf(
      profiles.flatMap((p) => lagOne(p, below) ?? []),
      0.5,
    ),
    inter: shape(
      profiles.map((p) => p.interS),
      (xs) => quantileOf(xs, 0.5),
    ),
    burstGap: shape(
      bursts.map((b) => b.gapsS),
      mean,
    ),
    innerGapS: quantilesOf(
      bursts.flatMap((b) => b.innerGapsS),
      undefined,
      bursts.flatMap((b) => b.innerGapsS.map(() => 1 / b.innerGapsS.length)),
    ),
    spike: shape(profiles.map(lengthsS), mean),
    peak: shape(profiles.map(logPeaks), mean),
    within: shape(profiles.map(withinExcursions), () => 1),
  };
}

/** Parameters of the smooth regime. Of many markets `keep` profiles are kept, evenly over their levels. */
export function fitSmooth(profiles: readonly PriceProfile[], keep: number): SmoothModel {
  const all = profiles
    .flatMap((p): SmoothProfile[] => {
      const moments = logMoments(p, () => true);
      return moments === null
        ? []
        : [{ ...moments, interS: p.interS.length < MIN_SAMPLES ? 0 : quantileOf(p.interS, 0.5) }];
    })
    .sort((a, b) => a.level - b.level);
  const every = Array.from({ length: Math.min(keep, all.length) }, (_, i) =>
    Math.floor(((i + 0.5) * all.length) / keep),
  );
  return {
    profiles: every.flatMap((i) => all[i] ?? []),
    phi: quantileOf(
      profiles.flatMap((p) => lagOne(p, () => true) ?? []),
      0.5,
    ),
    inter: shape(
      profiles.map((p) => p.interS),
      (xs) => quantileOf(xs, 0.5),
    ),
  };
}

/** The capacity model from whole periods of real series. */
export function fitCapacity(
  series: readonly { readonly upS: readonly number[]; readonly downS: readonly number[] }[],
): CapacityModel {
  const used = series.filter((s) => s.upS.length >= MIN_SAMPLES && s.downS.length >= MIN_SAMPLES);
  return {
    profiles: used.map((s) => ({ upS: geometricMean(s.upS), downS: geometricMean(s.downS) })),
    up: shape(
      used.map((s) => s.upS),
      geometricMean,
    ),
    down: shape(
      used.map((s) => s.downS),
      geometricMean,
    ),
  };
}
