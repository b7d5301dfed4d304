import type { GroupId } from '../kernel/ids.ts';
import { between, epochMs, raw } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import { mean, remaining, type Distribution } from '../domain/distribution.ts';
import type { RuntimeForecast } from '../domain/forecast.ts';
import type { StageSpec } from '../domain/job.ts';
import type { Worth } from '../domain/plan.ts';
import type { PendingGroup, Snapshot } from '../domain/snapshot.ts';
import type { AppraisePolicy, GroupOffers } from '../domain/stages.ts';
import { outcomeOf, type Terms } from './outcome.ts';
import { PoolBook } from './pools.ts';
import { choose, type Candidate } from './ranking.ts';
import { ShapeBook, type Shape } from './shapes.ts';

/** EC2 gives two minutes of notice (EC2 User Guide, "Spot Instance interruption notices"). */
const WARNING_S = 120;
const HOUR_S = 3600;

/**
 * Appraises pools and bids for each pending group: expected cost with work done again and refunds, P(interrupted),
 * P(late), and what is lost (lib/acquire/outcome.ts has the model).
 *
 * Two levels of likeness keep this off the number of tasks and mostly off the number of groups:
 * - shape (need, constraints, preferences): filters all pools once and shortlists about 3 x offersPerGroup + 12 of them;
 * - class (shape + remaining running time + checkpoint + deadline): one appraisal of the shortlist.
 * O(shapes x pools log pools + classes x shortlist x bids x bins). The same answer whatever the order of groups and pools.
 */
export const appraise: AppraisePolicy = (snapshot, forecasts, worths, config) => {
  const book = new PoolBook(snapshot, forecasts.market, config);
  const shapes = new ShapeBook(book);
  const classes = new Map<string, GroupOffers>();
  const result = new Map<GroupId, GroupOffers>();
  for (const group of snapshot.groups) {
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    const worth = worths.groups.get(group.id);
    if (forecast === undefined || worth === undefined) continue;
    const shape = shapes.of(group.need, group.stage.constraints, group.stage.preferences);
    const task = taskOf(group, forecast, { worth, snapshot, config });
    const key = classKey(shape, task);
    let offers = classes.get(key);
    if (offers === undefined) {
      offers = choose({
        group: group.id,
        shape,
        candidates: candidatesOf(shape, task, book),
        task,
        config,
      });
      classes.set(key, offers);
    }
    result.set(group.id, forGroup(offers, group.id));
  }
  return result;
};

/** All that the appraisal of one task depends on besides its shape. */
interface AppraisedTask {
  /** What is left to run, the checkpoint read first. */
  readonly runtime: Distribution;
  readonly meanS: number;
  /**
   * Nothing is known of the running time, there is a deadline, and an interruption would lose work: no risk is taken. What is saved at
   * the warning loses a start-up, for which the last safe moment has room (lib/plan/guard.ts).
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
  const restores = raw(group.keptS) > 0;
  const left = restores ? remaining(forecast.runtime, group.keptS) : forecast.runtime;
  const runtime = restores ? { atS: left.atS.map((s) => s + config.restoreS), weight: left.weight } : left;
  const { taskDeadlineMs, latestSafeStartMs } = worth;
  return {
    runtime,
    meanS: raw(mean(runtime)),
    blind: forecast.basis === 'prior' && taskDeadlineMs !== null && lossOf(group.stage) > 0,
    terms: {
      lossS: lossOf(group.stage),
      restoreS: group.stage.checkpoint === null ? 0 : config.restoreS,
      startMeanS: config.startDelayMeanS,
      startMaxS: config.startDelayMaxS,
      deadlineInS: taskDeadlineMs === null ? null : raw(between(snapshot.nowMs, taskDeadlineMs)),
      safeInS: latestSafeStartMs === null ? null : raw(between(snapshot.nowMs, latestSafeStartMs)),
    },
  };
}

/**
 * Work that one interruption costs at most. With a checkpoint signal whose grace fits into the warning nothing is lost;
 * with one that does not, half of what the program saves by itself on average; without a checkpoint everything.
 */
export function lossOf({ checkpoint }: Pick<StageSpec, 'checkpoint'>): number {
  if (checkpoint === null) return Infinity;
  if (raw(checkpoint.graceS) <= WARNING_S) return 0;
  return checkpoint.everyS === null ? Infinity : raw(checkpoint.everyS) / 2;
}

const classKey = (shape: Shape, { runtime, blind, terms }: AppraisedTask): string =>
  `${shape.id} ${blind} ${terms.lossS} ${terms.restoreS} ${terms.deadlineInS} ${terms.safeInS} ${textOf(runtime)}`;

/** Of forecasts, which are asked again in each cycle until something is learned: forgotten with them. */
const texts = new WeakMap<Distribution, string>();

function textOf(runtime: Distribution): string {
  let text = texts.get(runtime);
  if (text === undefined) texts.set(runtime, (text = `${runtime.atS.join()} ${runtime.weight.join()}`));
  return text;
}

function candidatesOf(shape: Shape, task: AppraisedTask, book: PoolBook): Candidate[] {
  const { config, market } = book;
  const fallbackRate = shape.fallbackUsdPerHour === null ? null : shape.fallbackUsdPerHour / HOUR_S;
  const halfway = epochMs(raw(book.nowMs) + (config.startDelayMeanS + task.meanS / 2) * 1000);
  const candidates: Candidate[] = [];
  for (const { priced, share, preferred, opens } of shape.pools) {
    const { pool } = priced;
    const spot = pool.option === 'spot';
    const expected = spot ? market.expectedPrice(pool, halfway) : null;
    const price = expected === null ? priced.priceUsdPerHour : raw(expected);
    for (const { bid, table } of priced.bids) {
      // A capped bid never pays more than the bid; an uncapped one also pays the spikes, which the mean holds.
      const paid =
        bid === 'uncapped'
          ? spot
            ? Math.max(price, priced.meanPriceUsdPerHour ?? 0)
            : price
          : Math.min(price, raw(bid));
      const outcome = outcomeOf(task.runtime, table, {
        ...task.terms,
        rate: (paid * share) / HOUR_S,
        fallbackRate,
        freeBeforeS: spot && config.refundRule === 'first-hour' ? HOUR_S : 0,
      });
      candidates.push({
        pool,
        bid,
        priceUsdPerHour: priced.priceUsdPerHour,
        share,
        preferred,
        outcome,
        ...(opens === undefined ? {} : { opens }),
      });
    }
  }
  return candidates;
}

const forGroup = (offers: GroupOffers, group: GroupId): GroupOffers =>
  offers.offers[0]?.group === group ? offers : { ...offers, offers: offers.offers.map((o) => ({ ...o, group })) };
