import { randomNormal } from 'd3-random';
import type { Distribution } from '../../lib/domain/distribution.ts';
import type { JobFeatures } from '../../lib/domain/forecasts.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { seconds } from '../../lib/kernel/units.ts';
import { features } from './runs.ts';

/** A world of owners who run the same programs again and again, with log-normal running times. */
export interface RecurringWorld {
  readonly seed: number;
  readonly owners: number;
  readonly programs: number;
  readonly runs: number;
  /** Standard deviation of ln(running time) of one owner's runs of one program. */
  readonly sigma: number;
}

export interface RecurringRun {
  readonly features: JobFeatures;
  readonly runtimeS: number;
  /** Uniform in [0, 1), for guesses. */
  readonly draw: number;
}

export function recurringRuns({ seed, owners, programs, runs, sigma }: RecurringWorld): RecurringRun[] {
  const uniform = randomStream(seed, 'runs');
  const normal = randomNormal.source(uniform)();
  const medians = Array.from({ length: owners * programs }, () => 600 * Math.exp(1.2 * normal()));
  return Array.from({ length: runs }, () => {
    const owner = Math.floor(uniform() * owners);
    const program = Math.floor(uniform() * programs);
    const runtimeS = (medians[owner * programs + program] ?? 0) * Math.exp(sigma * normal());
    const of = { owner: `owner-${owner}`, program: `program-${program}`, jobName: `job-${program}` };
    return { features: features(of), runtimeS, draw: uniform() };
  });
}

export const guessing = (of: JobFeatures, guessS: number): JobFeatures => ({
  ...of,
  expectedRuntimeS: seconds(guessS),
});

/** Quantile of a distribution, found without the code under test. */
export function quantileOf({ atS, weight }: Distribution, p: number): number {
  let mass = 0;
  const at = weight.findIndex((w) => (mass += w) >= p - 1e-12);
  return atS[at] ?? atS.at(-1) ?? NaN;
}

/** Pinball loss of ln(seconds) at a level. */
export function pinball(d: Distribution, p: number, truthS: number): number {
  const miss = Math.log(truthS / quantileOf(d, p));
  return Math.max(p * miss, (p - 1) * miss);
}

/** P(< s) + P(= s) / 2. */
export const below = ({ atS, weight }: Distribution, s: number): number =>
  atS.reduce((sum, x, i) => sum + (x < s ? 1 : x === s ? 0.5 : 0) * (weight[i] ?? 0), 0);
