import { scale } from '../../kernel/units.ts';
import type { Learner, LearnerTerms, LearningEvent } from '../../policy/learner.ts';
import type { LearnedRuntimes, RuntimeHistory } from '../../domain/forecasts.ts';
import type { StageSpec } from '../../domain/job.ts';
import { LoggedHistory } from './logged-history.ts';
import { FeaturesByStage } from '../../domain/job-features.ts';

/**
 * Running times of tasks that succeeded: JVuPredict's histories and recent runs, kept with a log of the latest runs.
 * O(features x bins) per run.
 */
export const runtimeLearner = ({ isKept }: LearnerTerms): Learner<LearnedRuntimes> => new RuntimeLearner(isKept);

/** Tasks of one stage that recent runs learn from, at most. */
const SAMPLES = 8;

/**
 * One task of a gang, and SAMPLES of a larger array, evenly over its tasks: one submission does not push out the runs
 * of all others. Chosen by index and not by time, because the first to end are the shortest.
 */
const isSampled = ({ gang, tasks }: Pick<StageSpec, 'gang' | 'tasks'>, index: number): boolean =>
  gang ? index === 0 : index % Math.ceil(tasks / SAMPLES) === 0;

class RuntimeLearner implements Learner<LearnedRuntimes> {
  readonly name = 'runtimes';
  readonly about = 'how long tasks run, from earlier runs that share a feature';
  readonly source = 'JVuPredict, JamaisVu section 3; distributions as 3Sigma has them';
  readonly learnsFrom = ['attempt-ended'] as const;
  readonly #history = new LoggedHistory();
  readonly #belief: LearnedRuntimes = Object.freeze<LearnedRuntimes>({
    predict: (features) => this.#history.predict(features),
    recurring: Object.freeze<RuntimeHistory>({ predict: (features) => this.#history.recurring.predict(features) }),
  });
  readonly #features = new FeaturesByStage();
  readonly #isKept: boolean;
  readonly prefix = this.#history.prefix;

  constructor(isKept: boolean) {
    this.#isKept = isKept;
  }

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.runtimeS === null) return;
    const { job, stage, attempt, slowed = 1 } = event;
    // Neighbours that were others than usual do not make a run another one.
    const runtimeS = scale(event.runtimeS, (attempt.beside ?? 1) / slowed);
    const features = this.#features.of(job.spec, stage, job.submittedMs);
    const taught = { isSample: isSampled(stage, attempt.index) };
    // A state that is never stored needs no log.
    if (this.#isKept) this.#history.learn(features, runtimeS, taught);
    else this.#history.learnUnlogged(features, runtimeS, taught);
  }

  belief(): LearnedRuntimes {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    return this.#history.takeDirty();
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#history.restore(rows);
  }
}
