import { randomExponential, randomLogNormal } from 'd3-random';
import { randomStream, type Uniform } from '../kernel/random.ts';

/**
 * Draws for one purpose and one key (a job, a template), independent of everything else that is read or drawn. The
 * first draws of the generator are close to its seed and are discarded.
 */
export function drawsOf(seed: number, purpose: string, key: string): Uniform {
  const uniform = randomStream(seed, `workload/${purpose}/${key}`);
  for (let i = 0; i < 4; i++) uniform();
  return uniform;
}

/** Lognormal factors: median 1, `sigma` of their logarithm. */
export const factors = (uniform: Uniform, sigma: number): (() => number) => randomLogNormal.source(uniform)(0, sigma);

/** Gaps of a Poisson process with that mean; 0 for a mean of 0. */
export function gaps(uniform: Uniform, meanS: number): () => number {
  return meanS === 0 ? () => 0 : randomExponential.source(uniform)(1 / meanS);
}

/** Uniform choice. */
export function oneOf<T>(uniform: Uniform, choices: readonly [T, ...T[]]): T {
  return choices[Math.floor(uniform() * choices.length)] ?? choices[0];
}
