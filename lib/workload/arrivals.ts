import { drawsOf, gaps } from './draws.ts';
import type { Submission } from './reader.ts';

/** For a source that has no times: those jobs in that order, with the gaps of a Poisson process. */
export function arriving(jobs: readonly Submission[], meanGapS: number, seed: number): Submission[] {
  const gap = gaps(drawsOf(seed, 'arrivals', ''), meanGapS);
  let atS = 0;
  return jobs.map((job, i) => {
    if (i > 0) atS += gap();
    return { ...job, atS };
  });
}

/** In an order that is drawn for each key: the files are sorted by kind or size, which arrivals are not. */
export function shuffled(jobs: readonly Submission[], seed: number): Submission[] {
  const place = new Map(jobs.map((job) => [job, drawsOf(seed, 'order', job.key)()]));
  return jobs.toSorted((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
}
