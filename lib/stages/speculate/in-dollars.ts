/**
 * Copies that are worth their dollars: for the deadline, for what waits behind the task, or because two attempts end so
 * much earlier that both together cost less than the slow one alone.
 */
import type { AttemptId, JobId } from '../../kernel/ids.ts';
import { plus, raw, seconds } from '../../kernel/units.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { quantileS } from '../../domain/distribution.ts';
import { slowdownOn, slowed } from '../../domain/slowdown.ts';
import type { UtilityCurve, Worth } from '../../domain/plan.ts';
import { onDemandUsdOf, usdPerHourOf, type Pool } from '../../domain/pool.ts';
import { dominantShare, milliCpuIn } from '../../domain/resources.ts';
import { liveBeside, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import { MINIMUM_MS } from '../../market/billing.ts';
import type { Copy, DecisionContext, NamedTarget, SpeculatePolicy } from '../../policy/contracts.ts';
import { latePrice, lateUsd, type LatePrice } from '../../policy/late-budget.ts';
import { whyNotCopied } from '../../policy/copies.ts';
import { usedSlots } from '../../policy/slots.ts';
import { CopyRoom } from '../../policy/speculation/copy-room.ts';
import { probablyTwiceAsLong } from '../../policy/speculation/copy-rules.ts';
import { copyValue, type CopyTerms, type CopyValue } from '../../policy/speculation/copy-value.ts';
import { copyWinsLearner } from '../../policy/speculation/copy-wins.ts';
import { ENOUGH_SIBLINGS, progressOf, type StageProgress } from '../../policy/speculation/stragglers.ts';

/**
 * Part of the vCPUs in use, at least one task, on which copies are tried as if they helped for certain; nothing is
 * bought for them. Further ones need evidence. Where slow tasks simply have more to do, as in most traces of jobs,
 * copies of all slow tasks cost 15 % more.
 */
const TRIALS = 0.01;
/** Least probability that a copy helps: less is no better known than the other parts of the gain. */
const LEAST_CHANCE = 0.1;
/** Least gain over the cost of a copy: what is known of its time is no better than that. */
const LEAST_GAIN = 0.1;

/**
 * Tasks that probably take more than twice as long as a copy, of which one gains more than it costs, the largest gain
 * first. Only tasks of the same stage tell what is slow: a job unlike the earlier ones is no straggler. The copy runs
 * on room that there is, else on a machine of a fixed cluster that is not up, else on the cheapest instance that its
 * constraints allow, if it is worth that.
 * O(running tasks + slow tasks x 144 + stages x (instances + pools)).
 */
export const copiesInDollars: SpeculatePolicy = (context) => {
  const { stages, tail } = progressOf(context);
  const places = new CopyPlaces(context);
  const wins = context.beliefs.of(copyWinsLearner);
  const valued = stages.flatMap((stage) =>
    slowTasks(stage, tail.beta, context).flatMap((slow) =>
      valuedCopy(slow, stage, { context, places, beta: tail.beta }),
    ),
  );
  const proven = byGain(valued, wins.provenChance());
  const sure = new Set(proven.map((c) => c.of));
  let spare = Math.max(1, TRIALS * usedSlots(context.snapshot).sum) - copiesNow(context.snapshot);
  // Whether bad luck made it slow is what a trial is to tell.
  const doubtful = wins.chance() < LEAST_CHANCE ? [] : valued.filter(({ isBought }) => !isBought);
  const tried = byGain(doubtful, 1).filter(({ of, milliCpu }) => {
    if (sure.has(of) || spare <= 0) return false;
    spare -= milliCpu;
    return true;
  });
  return [...proven, ...tried].map(({ milliCpu: _, ...copy }): Copy => copy);
};

/** mCPU of copies that live. */
const copiesNow = ({ running }: Snapshot): number =>
  running.reduce((sum, { attempt }) => sum + (attempt.role === 'copy' ? milliCpuIn(attempt.resources) : 0), 0);

/** A possible copy, and its value at a probability that it helps. */
interface Valued {
  readonly of: AttemptId;
  readonly ranS: number;
  readonly milliCpu: number;
  readonly to: NamedTarget | null;
  /** True: an instance is bought for it. */
  readonly isBought: boolean;
  readonly at: (chance: number) => CopyValue;
}

function valuedCopy(
  { running, ranS }: Slow,
  { anew }: StageProgress,
  { context, places, beta }: { readonly context: DecisionContext; readonly places: CopyPlaces; readonly beta: number },
): readonly Valued[] {
  const { snapshot, worths } = context;
  const { attempt } = running;
  const worth = worths.ofRunning(running);
  const place = places.of(running);
  const view = snapshot.instances.get(attempt.instance);
  if (worth === undefined || place === null || view === undefined) return [];
  const curve = places.pricedCurve(running, worth, view.pool);
  const terms = {
    nowMs: snapshot.nowMs,
    curve,
    // By the clock: what is left grows with it where the task runs, and a copy may be slower or faster elsewhere.
    ranS: ranS * (attempt.slowdown ?? 1),
    anew: slowed(anew, slowdownOn(running.stage.preferences, place.pool)),
    beta,
    usdPerS: places.shareUsdPerS(running, view.pool),
  };
  const at = (chance: number): CopyValue => copyValue({ ...terms, ...place.terms, chance });
  return [
    {
      of: attempt.id,
      ranS: terms.ranS,
      milliCpu: milliCpuIn(attempt.resources),
      to: place.to,
      isBought: place.isBought,
      at,
    },
  ];
}

/** Copies that pay at that probability, the largest gain first. */
const byGain = (valued: readonly Valued[], chance: number): readonly (Copy & { readonly milliCpu: number })[] =>
  (chance < LEAST_CHANCE ? [] : valued)
    .map((one) => ({ one, value: one.at(chance) }))
    .filter(({ value }) => value.gainUsd > LEAST_GAIN * value.costUsd)
    .sort((a, b) => b.value.gainUsd - a.value.gainUsd || (a.one.of < b.one.of ? -1 : 1))
    .map(({ one: { of, ranS, milliCpu, to }, value }) => ({
      of,
      reason: reasonOf(ranS, value),
      ...(to && { to }),
      milliCpu,
    }));

interface Slow {
  readonly running: RunningTask;
  readonly ranS: number;
}

/** Tasks that have no copy and can have one, and probably take much longer than it would (Mantri's rule). */
function slowTasks(
  { running, anew, times }: StageProgress,
  beta: number,
  { snapshot }: DecisionContext,
): readonly Slow[] {
  const median = quantileS(anew, 0.5);
  if (times === null || times.ended.count < ENOUGH_SIBLINGS || !(median > 0)) return [];
  return running.filter(
    ({ running: r, ranS }) =>
      ranS > median &&
      probablyTwiceAsLong(ranS, { anew, beta }) &&
      liveBeside(snapshot, r).length === 0 &&
      whyNotCopied(r, snapshot) === null,
  );
}

interface CopyPlace {
  /** Absent: room that is there. */
  readonly to: NamedTarget | null;
  readonly isBought: boolean;
  readonly pool: Pool;
  readonly terms: Pick<CopyTerms, 'copyUsdPerS' | 'startS' | 'leastS'>;
}

/** Places for copies, and what they cost. */
class CopyPlaces {
  readonly #context: DecisionContext;
  readonly #room: CopyRoom;
  /** US dollars per hour. While work waits, a machine of one's own counts at its list price: it may want the room. */
  readonly #quotes: ReadonlyMap<string, number>;

  readonly #prices = new Map<JobId, LatePrice>();

  constructor(context: DecisionContext) {
    this.#context = context;
    const { pools, groups } = context.snapshot;
    this.#room = new CopyRoom(context.snapshot);
    this.#quotes = new Map(
      pools.map(({ pool, quote, reservedLeft }) => [
        pool.id,
        reservedLeft === undefined || groups.length === 0 ? usdPerHourOf(pool, quote) : onDemandUsdOf(pool),
      ]),
    );
  }

  of(running: RunningTask): CopyPlace | null {
    const there = this.#room.there(running);
    if (there !== null) return { to: null, isBought: false, pool: there, terms: this.#onRoom(running, there) };
    const own = this.#room.own(running);
    if (own !== null) return { ...own, isBought: false, terms: this.#onRoom(running, own.pool) };
    const bought = this.#room.bought(running);
    if (bought === null) return null;
    const { startDelayMeanS } = this.#context.config;
    const terms = { copyUsdPerS: bought.usd / 3600, startS: startDelayMeanS, leastS: MINIMUM_MS / 1000 };
    return { to: bought.to, isBought: true, pool: bought.pool, terms };
  }

  /**
   * Worth by the time of the end. Where lateness has a price (late-budget.ts) it is that price until the deadline: by
   * its worth a deadline would justify almost any cost.
   */
  pricedCurve(running: RunningTask, { curve, taskDeadlineMs }: Worth, pool: Pool): UtilityCurve {
    if (taskDeadlineMs === null) return curve;
    const { job, resources } = running.attempt;
    let price = this.#prices.get(job);
    if (price === undefined)
      this.#prices.set(job, (price = latePrice(this.#context.snapshot.jobs.get(job), this.#context)));
    const usd = lateUsd(price, onDemandUsdOf(pool) * dominantShare(resources, pool.type.capacity));
    if (usd === Infinity) return curve;
    return {
      points: [
        { atMs: taskDeadlineMs, usd },
        { atMs: plus(taskDeadlineMs, seconds(1)), usd: 0 },
      ],
    };
  }

  /** US dollars per second of the share that a task takes of an instance. */
  shareUsdPerS({ attempt }: RunningTask, pool: Pool): number {
    const usd = this.#quotes.get(pool.id) ?? raw(pool.onDemandUsdPerHour);
    return (dominantShare(attempt.resources, pool.type.capacity) * usd) / 3600;
  }

  #onRoom(running: RunningTask, pool: Pool): CopyPlace['terms'] {
    return { copyUsdPerS: this.shareUsdPerS(running, pool), startS: 0, leastS: 0 };
  }
}

function reasonOf(ranS: number, { leftS, withS, gainUsd, costUsd }: CopyValue): string {
  const words = (s: number): string => wordsForDuration(seconds(s));
  return `it has run for ${words(ranS)}, longer than half of its stage: about ${words(leftS)} are left, with a copy about ${words(withS)}, which is worth ${usdText(gainUsd)} more than it costs (about ${usdText(costUsd)})`;
}

const usdText = (usd: number): string => `${Number(usd.toPrecision(2))} USD`;
