import { wordsForDuration } from '../../kernel/duration-words.ts';
import { Doubles } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { StageSpec } from '../../domain/job.ts';
import { slot } from '../../policy/memory.ts';
import { blend, capped, hintDistribution, priorDistribution } from './prior.ts';

/** Weight of a hint, in runs: beside one run of the job itself it has two thirds of the weight, beside 18 a tenth. */
const HINT_RUNS = 2;
/** Features that any owner's jobs share. */
const OF_ANYONE: ReadonlySet<string> = new Set(['all', 'label+size']);
/** The prior weighs as much as this many runs of other jobs. */
const PRIOR_RUNS = 2;
/** Runs from which a specific history is used alone: the hint's weight would be below a tenth. */
const ENOUGH_RUNS = 18;

type Stage = Pick<StageSpec, 'expectedRuntimeS' | 'timeoutS' | 'checkpoint'>;

/**
 * One forecast from the history's answer (or null) and the user's hint (or none).
 * - A history of the job itself with ENOUGH_RUNS runs is used alone. A thinner one is blended with the hint, if there
 *   is one: n runs against HINT_RUNS.
 * - A broad history (same owner, all jobs) tells little of this job. With a hint it is ignored: a neighbour could give
 *   a stage of two minutes an hour's tail. Without one, a history of "all jobs" is a cold start: blended with the
 *   prior, and the reason names the remedy. The same holds for any broad history of a stage without checkpoints: an
 *   interruption loses all its work, so it takes no bet on a running time that is not its own.
 * - Without either: the prior.
 * `timeoutS` caps the result. A stage's last answer is cached while the stage exists, so that it is the same record
 * from cycle to cycle, and results derived from it can be cached as well.
 */
export class HintedForecasts {
  readonly #isHintWeighed: boolean;
  readonly #answers = new WeakMap<Stage, Answer>();
  /** Cold starts by the history of all jobs: the same for every unknown job. */
  readonly #coldStarts = new WeakMap<RuntimeForecast, RuntimeForecast>();
  readonly #doubles = new Doubles();

  /** `isHintWeighed`: what is known of a job with a hint has weighed it already. */
  constructor({ isHintWeighed = false }: { readonly isHintWeighed?: boolean } = {}) {
    this.#isHintWeighed = isHintWeighed;
  }

  /** Neither argument may be changed afterwards. */
  of(history: RuntimeForecast | null, stage: Stage): RuntimeForecast {
    const known = this.#answers.get(stage);
    if (known?.history === history) return known.forecast;
    const forecast = this.#combined(history, stage);
    this.#answers.set(stage, { history, forecast });
    return forecast;
  }

  #combined(history: RuntimeForecast | null, stage: Stage): RuntimeForecast {
    const forecast = history === null ? withoutHistory(stage) : this.#withHistory(history, stage);
    const runtime = capped(forecast.runtime, stage.timeoutS, this.#doubles);
    if (runtime === forecast.runtime || stage.timeoutS === null) return forecast;
    return {
      ...forecast,
      runtime,
      reason: `${forecast.reason}; at most the timeout of ${wordsForDuration(stage.timeoutS)}`,
    };
  }

  #withHistory(history: RuntimeForecast, stage: Stage): RuntimeForecast {
    const evidence = history.evidence;
    const hint = stage.expectedRuntimeS;
    if (evidence === undefined) return history;
    const runs = evidence.samples;
    if (hint !== null) {
      if (this.#isHintWeighed) return history;
      if (evidence.broad) return withoutHistory(stage);
      if (runs >= ENOUGH_RUNS) return history;
      const weight = runs / (runs + HINT_RUNS);
      return {
        ...history,
        runtime: blend(history.runtime, weight, hintDistribution(hint), this.#doubles),
        basis: weight >= 0.5 ? 'history' : 'hint',
        reason:
          `${history.reason}; weighs ${Math.round(weight * 100)} % against the job file's expectedRuntime ` +
          `of ${wordsForDuration(hint)}`,
      };
    }
    if (!evidence.broad || (!OF_ANYONE.has(evidence.feature) && stage.checkpoint !== null)) return history;
    let known = this.#coldStarts.get(history);
    if (known === undefined) this.#coldStarts.set(history, (known = this.#coldStart(history, evidence)));
    return known;
  }

  #coldStart(
    history: RuntimeForecast,
    { samples, feature }: NonNullable<RuntimeForecast['evidence']>,
  ): RuntimeForecast {
    const whose = OF_ANYONE.has(feature)
      ? 'no earlier run has this owner, name or program; assumed to be like any other job'
      : 'no earlier run has this name or program; assumed to be like others of its owner';
    const weight = samples / (samples + PRIOR_RUNS);
    return {
      ...history,
      runtime: blend(history.runtime, weight, priorDistribution(), this.#doubles),
      basis: 'prior',
      reason: `cold start: ${whose} (${history.reason}); ${ADVICE}`,
    };
  }
}

/** Cache for all estimate policies of an engine. */
export const HINTED = slot(() => new HintedForecasts());

/** The same where the history has weighed the hint. */
export const WEIGHED = slot(() => new HintedForecasts({ isHintWeighed: true }));

interface Answer {
  readonly history: RuntimeForecast | null;
  readonly forecast: RuntimeForecast;
}

const ADVICE = 'give `expectedRuntime` in the job file to plan better until runs of this job are known';

/** The user's guess, else the prior. */
function withoutHistory(stage: Stage): RuntimeForecast {
  const hint = stage.expectedRuntimeS;
  if (hint === null) {
    return {
      runtime: priorDistribution(),
      basis: 'prior',
      reason: `cold start: no earlier runs are known, so anything from seconds to an hour is possible; ${ADVICE}`,
    };
  }
  return {
    runtime: hintDistribution(hint),
    basis: 'hint',
    reason: `expectedRuntime of ${wordsForDuration(hint)} from the job file, taken as right within a factor of two`,
  };
}
