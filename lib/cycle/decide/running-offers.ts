import { groupId, type AttemptId, type GroupId } from '../../kernel/ids.ts';
import { plus, lt, seconds, type EpochMs, type Seconds } from '../../kernel/units.ts';
import type { Worth } from '../../domain/plan.ts';
import { runningByJob, type PendingGroup, type RunningTask } from '../../domain/snapshot.ts';
import {
  withOffers,
  type AppraiseContext,
  type GroupOffers,
  type Stages,
  type Worths,
} from '../../policy/contracts.ts';
import { begunBy } from '../../domain/work-to-do.ts';
import { pendingAgain } from '../../policy/pending-again.ts';
import type { DecideInput, RunningOffer, RunningOffers } from './deliberation.ts';

/**
 * Age of a running job's appraisal, in cycle periods, after which it is renewed, and the number of renewals per cycle,
 * the oldest first. Progress and market risk differ between running jobs, so each needs an appraisal of its own, for
 * explanations alone. A new first attempt also renews it.
 */
const FRESH_PERIODS = 5;
const MOST_PER_CYCLE = 16;

interface RunningGroup {
  readonly group: PendingGroup;
  readonly attempt: AttemptId;
  readonly worth: Worth;
}

/** Jobs whose tasks all run, as groups to appraise: only those whose appraisal is due. */
export function runningGroups<S>(input: DecideInput<S>, worths: Worths): readonly RunningGroup[] {
  const { snapshot, config, knownOffers } = input;
  const freshS = seconds(FRESH_PERIODS * config.cyclePeriodS);
  const pending = new Set(snapshot.groups.map((g) => g.job));
  const due: RunningGroup[] = [];
  for (const [job, [running]] of runningByJob(snapshot)) {
    if (running === undefined) continue;
    const { attempt, stage } = running;
    const worth = worths.ofRunning(running);
    if (
      worth === undefined ||
      pending.has(job) ||
      isFresh(knownOffers?.get(job), running, { nowMs: snapshot.nowMs, freshS })
    )
      continue;
    const group = pendingAgain(running, {
      id: groupId(`running/${job}`),
      constraints: stage.constraints,
      ...begunBy(running, snapshot.nowMs),
    });
    due.push({ group, attempt: attempt.id, worth });
  }
  const madeMs = (g: RunningGroup): EpochMs | undefined => knownOffers?.get(g.group.job)?.atMs;
  return due.sort((a, b) => oldestFirst(madeMs(a), madeMs(b))).slice(0, MOST_PER_CYCLE);
}

const isFresh = (
  known: RunningOffer | undefined,
  running: RunningTask,
  of: { readonly nowMs: EpochMs; readonly freshS: Seconds },
): boolean => known !== undefined && known.attempt === running.attempt.id && lt(of.nowMs, plus(known.atMs, of.freshS));

/** Missing appraisals come first. */
const oldestFirst = (a: EpochMs | undefined, b: EpochMs | undefined): number =>
  a === undefined || b === undefined
    ? Number(a !== undefined) - Number(b !== undefined)
    : lt(a, b)
      ? -1
      : lt(b, a)
        ? 1
        : 0;

/**
 * Offers for waiting work, and, for explanations alone, for running work. Two calls, because running work is no demand
 * for purchases.
 */
export function appraiseAll<S>(
  stages: Pick<Stages<S>, 'appraise'>,
  context: AppraiseContext,
  running: readonly RunningGroup[],
): ReadonlyMap<GroupId, GroupOffers> {
  const { snapshot, worths } = context;
  const waiting = stages.appraise(context);
  if (running.length === 0) return waiting;
  const groups = new Map(running.map((r) => [r.group.id, r.worth] as const));
  const known = { groups, ofRunning: worths.ofRunning };
  const going = stages.appraise({
    ...context,
    snapshot: { ...snapshot, groups: running.map((r) => r.group) },
    worths: known,
  });
  return new Map([...waiting, ...going]);
}

/** New appraisals, and the known ones of jobs whose tasks still all run. They are plain data, kept for explanations. */
export function runningOffersOf<S>(
  { snapshot, knownOffers }: DecideInput<S>,
  running: readonly RunningGroup[],
  appraised: ReadonlyMap<GroupId, GroupOffers>,
): RunningOffers {
  const runs = runningByJob(snapshot);
  const made = new Map([...(knownOffers ?? [])].filter(([job]) => runs.has(job)));
  for (const { group, attempt } of running) {
    const offers = appraised.get(group.id);
    if (offers === undefined) continue;
    made.set(group.job, { attempt, atMs: snapshot.nowMs, offers: withOffers(offers, offers.offers) });
  }
  return made;
}
