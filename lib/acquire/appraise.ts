import type { GroupId } from '../kernel/ids.ts';
import { between, epochMs, raw } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import { mean, type Distribution } from '../domain/distribution.ts';
import type { RuntimeForecast } from '../domain/forecast.ts';
import type { StageSpec } from '../domain/job.ts';
import type { Worth } from '../domain/plan.ts';
import type { PendingGroup, Snapshot } from '../domain/snapshot.ts';
import { workToDo } from '../domain/work-to-do.ts';
import { withOffers, type AppraisePolicy, type GroupOffers } from '../domain/stages.ts';
import { outcomeBefore, unhurriedOutcome, type Outcome, type Terms, type Unhurried } from './outcome.ts';
import type { CurveTable } from './curve-table.ts';
import { PoolBook } from './pools.ts';
import { choose, type Candidate, type Place } from './ranking.ts';
import { ShapeBook, type Shape } from './shapes.ts';

/** EC2 gives two minutes of notice (EC2 User Guide, "Spot Instance interruption notices"). */
const WARNING_S = 120;
const HOUR_S = 3600;

/**
 * Appraises pools and bids for each pending group: expected cost with work done again and refunds, P(interrupted),
 * P(late), and what is lost (lib/acquire/outcome.ts has the model).
 *
 * Three levels of likeness keep this off the number of tasks and mostly off the number of groups:
 * - shape (need, constraints, preferences): filters all pools once and shortlists about 3 x offersPerGroup + 12 of them;
 * - kind (shape + remaining running time + checkpoint): one appraisal of the shortlist as if there were no deadline;
 * - class (kind + deadline): what the deadline changes of it, and the ranking.
 * O(shapes x pools log pools + kinds x shortlist x bids x bins), and as much for classes whose deadline is near. The same answer
 * whatever the order of groups and pools.
 */
export const appraise: AppraisePolicy = (snapshot, forecasts, worths, config) => {
  const book = new PoolBook(snapshot, forecasts.market, config);
  const shapes = new ShapeBook(book);
  const kinds = new KindBook(book);
  const result = new Map<GroupId, GroupOffers>();
  for (const group of snapshot.groups) {
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    const worth = worths.groups.get(group.id);
    if (forecast === undefined || worth === undefined) continue;
    const shape = shapes.of(group.need, group.stage.constraints, group.stage.preferences);
    const task = taskOf(group, forecast, { worth, snapshot, config });
    const { classes, options } = kinds.of(shape, task);
    const key = classKey(task);
    let offers = classes.get(key);
    if (offers === undefined) {
      offers = choose({ group: group.id, shape, candidates: candidatesOf(options, task), task, config });
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
  const left = workToDo(forecast.runtime, group);
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

/** What tasks of one kind differ in. */
const classKey = ({ blind, terms }: AppraisedTask): string => `${blind} ${terms.deadlineInS} ${terms.safeInS}`;

/** Of forecasts, which are asked again in each cycle until something is learned: forgotten with them. */
const texts = new WeakMap<Distribution, string>();

function textOf(runtime: Distribution): string {
  let text = texts.get(runtime);
  if (text === undefined) texts.set(runtime, (text = `${runtime.atS.join()} ${runtime.weight.join()}`));
  return text;
}

/** A place with its outcome where no deadline presses, and what that was worked out from. */
interface Option {
  readonly place: Place;
  /** The same record for bids of a pool that pay the same and are interrupted alike: they have one outcome. */
  readonly appraised: Appraised;
}
interface Appraised {
  readonly unhurried: Unhurried;
  readonly table: CurveTable;
  readonly rates: Rates;
}
type Rates = Pick<Terms, 'rate' | 'fallbackRate' | 'freeBeforeS'>;

interface Kind {
  readonly options: readonly Option[];
  readonly classes: Map<string, GroupOffers>;
}

/** Kinds by content, made on first use. Running times are told apart by number: their texts are long, and hashed once. */
class KindBook {
  readonly #book: PoolBook;
  readonly #runtimes = new Map<string, number>();
  readonly #kinds = new Map<string, Kind>();

  constructor(book: PoolBook) {
    this.#book = book;
  }

  of(shape: Shape, task: AppraisedTask): Kind {
    const text = textOf(task.runtime);
    let runtime = this.#runtimes.get(text);
    if (runtime === undefined) this.#runtimes.set(text, (runtime = this.#runtimes.size));
    const key = `${shape.id} ${runtime} ${task.terms.lossS} ${task.terms.restoreS}`;
    let kind = this.#kinds.get(key);
    if (kind === undefined) {
      kind = { options: optionsOf(shape, task, this.#book), classes: new Map() };
      this.#kinds.set(key, kind);
    }
    return kind;
  }
}

function optionsOf(shape: Shape, task: AppraisedTask, book: PoolBook): Option[] {
  const { config, market } = book;
  const fallbackRate = shape.fallbackUsdPerHour === null ? null : shape.fallbackUsdPerHour / HOUR_S;
  const halfway = epochMs(raw(book.nowMs) + (config.startDelayMeanS + task.meanS / 2) * 1000);
  const options: Option[] = [];
  for (const { priced, share, preferred, opens } of shape.pools) {
    const { pool, priceUsdPerHour } = priced;
    const spot = pool.option === 'spot';
    const expected = spot ? market.expectedPrice(pool, halfway) : null;
    const price = expected === null ? priceUsdPerHour : raw(expected);
    const freeBeforeS = spot && config.refundRule === 'first-hour' ? HOUR_S : 0;
    let last: Appraised | null = null;
    for (const { bid, table } of priced.bids) {
      // A capped bid never pays more than the bid; an uncapped one also pays the spikes, which the mean holds.
      const paid =
        bid === 'uncapped'
          ? spot
            ? Math.max(price, priced.meanPriceUsdPerHour ?? 0)
            : price
          : Math.min(price, raw(bid));
      const rate = (paid * share) / HOUR_S;
      if (last === null || last.table !== table || last.rates.rate !== rate) {
        const rates: Rates = { rate, fallbackRate, freeBeforeS };
        last = { unhurried: unhurriedOutcome(task.runtime, table, { ...task.terms, ...rates }), table, rates };
      }
      options.push({ place: { pool, bid, priceUsdPerHour, share, preferred, opens }, appraised: last });
    }
  }
  return options;
}

/** What the deadline of one class makes of its kind's options. */
function candidatesOf(options: readonly Option[], { runtime, terms }: AppraisedTask): Candidate[] {
  let last: Appraised | null = null;
  let outcome: Outcome | null = null;
  return options.map(({ place, appraised }): Candidate => {
    if (outcome === null || last !== appraised) {
      const { unhurried, table, rates } = appraised;
      outcome = outcomeBefore(unhurried, { runtime, table, terms: { ...terms, ...rates } });
      last = appraised;
    }
    return { place, outcome };
  });
}

const forGroup = (offers: GroupOffers, group: GroupId): GroupOffers =>
  offers.offers[0]?.group === group
    ? offers
    : withOffers(
        offers,
        offers.offers.map((o) => ({ ...o, group })),
      );
