import { drawsOf, gaps } from './draws.ts';
import type { Submission } from './reader.ts';

/** Jobs of a source without times, in their order, as a Poisson process. */
export function arriving(jobs: readonly Submission[], meanGapS: number, seed: number): Submission[] {
  const gap = gaps(drawsOf(seed, 'arrivals', ''), meanGapS);
  let atS = 0;
  return jobs.map((job, i) => {
    if (i > 0) atS += gap();
    return { ...job, atS };
  });
}

/** Jobs in a random order drawn by key: files are sorted by kind or size, arrivals are not. */
export function shuffled(jobs: readonly Submission[], seed: number): Submission[] {
  const place = new Map(jobs.map((job) => [job, drawsOf(seed, 'order', job.key)()]));
  return jobs.toSorted((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
}
