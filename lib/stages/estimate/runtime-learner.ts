import type { Learner, LearnerTerms, LearningEvent } from '../../policy/learner.ts';
import type { RuntimeHistory } from '../../domain/forecasts.ts';
import { LoggedHistory } from './logged-history.ts';
import { FeaturesByStage } from '../../domain/job-features.ts';

/**
 * Running times of tasks that succeeded: JVuPredict's histories, kept with a log of the latest runs. O(features x bins)
 * per run.
 */
export const runtimeLearner = ({ isKept }: LearnerTerms): Learner<RuntimeHistory> => new RuntimeLearner(isKept);

class RuntimeLearner implements Learner<RuntimeHistory> {
  readonly name = 'runtimes';
  readonly about = 'how long tasks run, from earlier runs that share a feature';
  readonly source = 'JVuPredict, JamaisVu section 3; distributions as 3Sigma has them';
  readonly learnsFrom = ['attempt-ended'] as const;
  readonly #history = new LoggedHistory();
  readonly #belief: RuntimeHistory = Object.freeze<RuntimeHistory>({
    predict: (features) => this.#history.predict(features),
  });
  readonly #features = new FeaturesByStage();
  readonly #isKept: boolean;
  readonly prefix = this.#history.prefix;

  constructor(isKept: boolean) {
    this.#isKept = isKept;
  }

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.runtimeS === null) return;
    const { job, stage, runtimeS } = event;
    const features = this.#features.of(job.spec, stage, job.submittedMs);
    // A state that is never stored needs no log.
    if (this.#isKept) this.#history.learn(features, runtimeS);
    else this.#history.predictor.learn(features, runtimeS);
  }

  belief(): RuntimeHistory {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    return this.#history.takeDirty();
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#history.restore(rows);
  }
}
