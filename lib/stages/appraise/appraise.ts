import { compareText } from '../../kernel/compare.ts';
import type { GroupId } from '../../kernel/ids.ts';
import { isPositive, secondsBetween } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { meanS } from '../../domain/distribution.ts';
import type { Offer, RuntimeForecast } from '../../domain/forecast.ts';
import type { Worth } from '../../domain/plan.ts';
import type { PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import { slowed } from '../../domain/slowdown.ts';
import { workToDo } from '../../domain/work-to-do.ts';
import { countedNeighbours } from '../../policy/colocation/counted-neighbours.ts';
import { onNewInstances } from '../../policy/colocation/on-new-instances.ts';
import { lossOf } from '../../policy/work-left.ts';
import { withOffers, withFurther, type AppraisePolicy, type GroupOffers } from '../../policy/contracts.ts';
import { EquivalenceClassBook, type Appraised, type ClassWork, type Options } from './equivalence-classes.ts';
import { outcomeBefore, type Outcome, type Terms } from './outcome.ts';
import { PoolBook } from './pools.ts';
import { choose, type Candidate } from './ranking.ts';
import { RequestClassBook } from './request-classes.ts';

/**
 * Appraises pools and bids for each pending group: expected cost with redone work and refunds, P(interrupted), P(late),
 * and lost work (lib/stages/appraise/outcome.ts has the model).
 * Cost must not grow with the number of tasks, and hardly with the number of groups, so three levels of classes are
 * appraised once each:
 * - request class (need, constraints, preferences): filters all pools and shortlists about 3 x offersPerGroup + 12 of
 *   them;
 * - equivalence class (request class + remaining running time + checkpoint): outcome per pool without a deadline;
 * - deadline class (equivalence class + deadline): effect of the deadline, and the ranking.
 * Spot pools are appraised from the cheapest on, until none of the remaining shortlist can be kept whatever its risk; a
 * blind task appraises none. Explanations read all of it. A task's paid share of an instance depends on all waiting
 * work (demand.ts), so groups are appraised together. O(request classes x pools log pools + equivalence classes x
 * shortlist x bids x bins), and as much for deadline classes near their deadline. The answer does not depend on the
 * order of groups and pools.
 */
export const appraise: AppraisePolicy = (context) => {
  const { snapshot, forecasts, worths, config } = context;
  const belief = countedNeighbours(context);
  const book = new PoolBook(snapshot, forecasts.market, config);
  const requestClasses = new RequestClassBook(book);
  const equivalenceClasses = new EquivalenceClassBook(book);
  const result = new Map<GroupId, GroupOffers>();
  // Ids order the groups, so that sums of waiting work do not depend on the order of the input.
  const waiting = [...snapshot.groups].sort(byId).flatMap((group) => {
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    const worth = worths.groups.get(group.id);
    if (forecast === undefined || worth === undefined) return [];
    const template = snapshot.jobs.get(group.job)?.template;
    const neighbours =
      belief === null || template === undefined ? null : onNewInstances({ ...group, template }, belief);
    const requestClass = requestClasses.of(group, neighbours);
    const task = taskOf(group, forecast, { worth, snapshot, config });
    requestClasses.add(requestClass, group.count, task.meanS);
    return [{ group, requestClass, task }];
  });
  const found = waiting.map(({ group, requestClass, task }) => {
    const equivalenceClass = equivalenceClasses.of(requestClass, task);
    return { group, requestClass, task, equivalenceClass, key: deadlineKey(task) };
  });
  // Class by class, because the lists of few classes are kept.
  for (const [{ offersByDeadline }, of] of Map.groupBy(found, (w) => w.equivalenceClass)) {
    for (const { group, requestClass, task, equivalenceClass, key } of of) {
      if (offersByDeadline.has(key)) continue;
      const candidates = (options: Options): Candidate[] => candidatesOf(options, task);
      const choice = { group: group.id, excluded: requestClass.excluded, equivalenceClass, candidates, task, config };
      offersByDeadline.set(key, choose(choice));
    }
  }
  for (const { group, equivalenceClass, key } of found) {
    const offers = equivalenceClass.offersByDeadline.get(key);
    if (offers !== undefined) result.set(group.id, forGroup(offers, group.id));
  }
  return result;
};

const byId = (a: PendingGroup, b: PendingGroup): number => compareText(a.id, b.id);

/** Facts that the appraisal of one task depends on besides its request class. */
interface AppraisedTask extends ClassWork {
  /**
   * Running time unknown, with a deadline that must be met, and an interruption would lose work: takes no risk. A
   * program that saves at the warning loses only a start-up, and the last safe start has room for that
   * (lib/stages/move/deadline-guard.ts).
   */
  readonly blind: boolean;
  readonly terms: Omit<Terms, 'rate' | 'fallbackRate' | 'freeBeforeS'>;
}

interface TaskContext {
  readonly worth: Worth;
  readonly snapshot: Snapshot;
  readonly config: SchedulerConfig;
}

function taskOf(
  group: PendingGroup,
  forecast: RuntimeForecast,
  { worth, snapshot, config }: TaskContext,
): AppraisedTask {
  const restores = isPositive(group.keptS);
  const left = workToDo(forecast.runtime, group);
  const runtime = restores ? { atS: left.atS.map((s) => s + config.restoreS), weight: left.weight } : left;
  const { taskDeadlineMs, latestSafeStartMs } = worth;
  const mustMeet = config.lateBudget === 0 || snapshot.jobs.get(group.job)?.spec.mustMeet === true;
  return {
    runtime,
    meanS: meanS(runtime),
    blind: forecast.basis === 'prior' && taskDeadlineMs !== null && lossOf(group.stage) > 0 && mustMeet,
    terms: {
      lossS: lossOf(group.stage),
      restoreS: group.stage.checkpoint === null ? 0 : config.restoreS,
      startMeanS: config.startDelayMeanS,
      startMaxS: config.startDelayMaxS,
      deadlineInS: taskDeadlineMs === null ? null : secondsBetween(snapshot.nowMs, taskDeadlineMs),
      safeInS: latestSafeStartMs === null ? null : secondsBetween(snapshot.nowMs, latestSafeStartMs),
    },
  };
}

/** Key of the deadline class within an equivalence class. */
const deadlineKey = ({ blind, terms }: AppraisedTask): string => `${blind} ${terms.deadlineInS} ${terms.safeInS}`;

/** Candidates of a deadline class from the options of its equivalence class. */
function candidatesOf(options: Options, { runtime: work, terms }: AppraisedTask): Candidate[] {
  const { places, appraised, rates, slowdown, safeSlowdown } = options;
  const runtime = slowed(work, slowdown);
  const longest = safeSlowdown === slowdown ? runtime : slowed(work, safeSlowdown);
  const shares = terms.deadlineInS === null ? options.shares : options.hurriedShares;
  // Tasks that ask for nothing have no share.
  const dearer = options.shares.ofNew > 0 ? shares.ofNew / options.shares.ofNew : 1;
  let last: Appraised | null = null;
  let outcome: Outcome | null = null;
  return places.map((place, i): Candidate => {
    const of = appraised[i] as Appraised;
    if (outcome === null || last !== of) {
      const { table, rate } = of;
      const before = outcomeBefore(of, { runtime, longest, table, terms: { ...terms, ...rates, rate } });
      outcome = dearer === 1 ? before : { ...before, costUsd: before.costUsd * dearer };
      last = of;
    }
    return { place, shares, outcome };
  });
}

/** Offers of a deadline class as those of one of its groups. */
function forGroup(of: GroupOffers, group: GroupId): GroupOffers {
  const named = (offers: readonly Offer[]): readonly Offer[] => offers.map((o) => ({ ...o, group }));
  if (of.offers[0]?.group === group) return of;
  const { further } = of;
  const offers = withOffers(of, named(of.offers));
  if (further === undefined) return offers;
  return withFurther(offers, { together: () => named(further.together()), sizes: () => named(further.sizes()) });
}
