import { Doubles, type Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { binsOf, MAX_BINS, meanTime, type RunningTimes } from '../../domain/running-times.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { raw, type Seconds } from '../../kernel/units.ts';
import { blend, capped } from './prior.ts';
import { Smoother } from './smoothing.ts';

/**
 * Weight, in tasks of the job itself, of what was known before it: tasks of one stage vary less than jobs of one name
 * do (SLearn section 4.2), so one of them weighs as much as all earlier jobs.
 */
const EARLIER_RUNS = 1;

/**
 * Forecasts of stages of which tasks have ended, from both these tasks and what was known before. The last answer is
 * cached for as long as the record of ended tasks exists.
 */
export class OwnTasks {
  readonly #answers = new WeakMap<
    RunningTimes,
    { readonly before: RuntimeForecast; readonly answer: RuntimeForecast }
  >();
  readonly #doubles = new Doubles();
  readonly #smoother = new Smoother(this.#doubles);

  of(before: RuntimeForecast, times: RunningTimes | undefined, timeoutS: Seconds | null): RuntimeForecast {
    if (times === undefined) return before;
    const known = this.#answers.get(times);
    if (known?.before === before) return known.answer;
    const answer = this.#together(before, times, timeoutS);
    this.#answers.set(times, { before, answer });
    return answer;
  }

  #together(before: RuntimeForecast, times: RunningTimes, timeoutS: Seconds | null): RuntimeForecast {
    const { count } = times;
    const weight = EARLIER_RUNS / (count + EARLIER_RUNS);
    const runtime = blend(before.runtime, weight, this.#smoothed(times), this.#doubles);
    const pointS = meanTime(times);
    const ended =
      count === 1 ? '1 task of this job has ended, after' : `${count} tasks of this job have ended, after a mean of`;
    return {
      runtime: capped(runtime, timeoutS, this.#doubles),
      basis: 'history',
      reason: `${ended} ${wordsForDuration(pointS)}; they weigh ${Math.round(100 * (1 - weight))} % against: ${before.reason}`,
      evidence: {
        feature: 'owner+job',
        estimator: 'own tasks',
        broad: false,
        samples: count,
        worthRuns: count + EARLIER_RUNS,
        pointS,
      },
    };
  }

  #smoothed(times: RunningTimes): Distribution {
    const logS = new Float64Array(MAX_BINS);
    const weight = new Float64Array(MAX_BINS);
    let count = 0;
    for (const [atS, tasks] of binsOf(times)) {
      logS[count] = Math.log(raw(atS));
      weight[count++] = tasks;
    }
    return this.#smoother.of({ logS, weight, count, runs: times.count });
  }
}
