/**
 * Breaker of purchases. A deployment that buys instances and releases them unused, plan after plan, spends money for
 * nothing, whatever the cause. After UNUSED_PLANS such plans in a row all pools go into back-off, and an event says so.
 * Then one more plan may buy: used instances close the breaker again, unused ones double the next pause.
 * State: one row among the back-offs, in the store's memory. Instances of one plan count once, in whatever order they
 * end. Purchases for jobs that were cancelled or have failed count neither way: that is their owners' doing.
 */
import { plus, raw, seconds, type EpochMs } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { isEnding, type Job } from '../../domain/job.ts';
import { BREAKER_KEY, forget, put, type BackOffs } from './back-off.ts';
import type { WorkingState } from '../state/working-state.ts';
import { planOfAllocation } from '../../domain/launch-keys.ts';

/**
 * Plans in a row whose instances were all given back unused. Ours: a busy queue of short tasks gave back those of 5 in
 * a row at most.
 */
export const UNUSED_PLANS = 12;
/** First pause; doubles with each trip in a row, up to MAX_PAUSE_S. */
const PAUSE_S = 600;
const MAX_PAUSE_S = 6 * 3600;

/**
 * Counts an ended instance with a settled bill. `ran`: an attempt has begun on it. `jobs`: the jobs it was bought for,
 * by id.
 */
export function countSettled(
  state: WorkingState,
  {
    instance,
    ran,
    jobs,
  }: { readonly instance: Instance; readonly ran: boolean; readonly jobs: ReadonlyMap<string, Job> },
  { at, backOffs }: { readonly at: EpochMs; readonly backOffs: BackOffs },
): void {
  const before = backOffs.get(BREAKER_KEY);
  if (ran) {
    if (before !== undefined) forget(state, BREAKER_KEY, backOffs);
    return;
  }
  if (instance.endCause !== 'released' || instance.launchedMs === null) return;
  const { boughtFor = [] } = instance;
  if (boughtFor.length > 0 && boughtFor.every(({ job }) => isGivenUp(jobs.get(job)))) return;
  const plan = planOfAllocation(instance.allocation);
  const counted = before?.breaker?.plans ?? [];
  if (counted.includes(plan)) return;
  const plans = [...counted, plan].slice(1 - UNUSED_PLANS);
  const row = (before?.refusals ?? 0) + 1;
  const trips = before?.breaker?.trips ?? 0;
  if (row < UNUSED_PLANS) {
    put(state, BREAKER_KEY, { untilMs: before?.untilMs ?? 0, refusals: row, breaker: { plans, trips } }, backOffs);
    return;
  }
  const untilMs = raw(plus(at, seconds(Math.min(PAUSE_S * 2 ** trips, MAX_PAUSE_S))));
  const detail =
    `nothing is bought until ${new Date(untilMs).toISOString()}: the instances of ${row} plans in a row were given back unused; ` +
    '`ebb plans` and `ebb explain JOB` show what they were bought for';
  // One more plan may buy after the pause.
  put(
    state,
    BREAKER_KEY,
    { untilMs, refusals: UNUSED_PLANS - 1, detail, breaker: { plans, trips: trips + 1 } },
    backOffs,
  );
  state.event('purchases-paused', at, { text: detail, data: { untilMs, plans: row } });
}

const isGivenUp = (job: Job | undefined): boolean => job !== undefined && job.state !== 'succeeded' && isEnding(job);
