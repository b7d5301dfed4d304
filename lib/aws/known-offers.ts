import { EbbError } from '../kernel/errors.ts';
import type { RunningOffers } from '../cycle/running-offers.ts';
import type { Carrier } from './blobs.ts';

/** One name for all cycles: the newest decision's answers are what the next one goes on from. */
const NAME = 'known-offers';

/** What the decision before answered about running jobs; for explanations alone, so nothing is lost where it is gone. */
export async function knownOffers(carrier: Carrier): Promise<RunningOffers> {
  try {
    return await carrier.get<RunningOffers>(`s3:cycle/${NAME}`);
  } catch (error) {
    if (error instanceof EbbError && error.code === 'not-found') return new Map();
    throw error;
  }
}

/**
 * Always into the bucket. Answers that are those `known` before are there already, and an empty one is not worth a put: what is kept
 * of ended attempts is never asked for.
 */
export async function keepOffers(carrier: Carrier, offers: RunningOffers, known: RunningOffers): Promise<void> {
  const isNew = [...offers].some(([job, offer]) => known.get(job)?.atMs !== offer.atMs);
  if (isNew) await carrier.put(offers, NAME, 0);
}
