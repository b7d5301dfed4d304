import type { RuntimeHistory } from '../../domain/forecasts.ts';
import { FeaturesByStage } from '../../domain/job-features.ts';
import { meanTime } from '../../domain/running-times.ts';
import type { Learner, LearningEvent } from '../../policy/learner.ts';
import { JvuPredict } from './predictor.ts';

/** Beginning of its rows. */
const PREFIX = 'task-averages/';

/**
 * Average task running times of stages, one for each stage whose tasks have all succeeded, whatever their number. A
 * stage of which a task failed for good teaches nothing. O(features x bins) per stage.
 */
export const taskAverageLearner = (): Learner<RuntimeHistory> => new TaskAverageLearner();

class TaskAverageLearner implements Learner<RuntimeHistory> {
  readonly name = 'task-averages';
  readonly about = 'how long tasks run on average, from earlier jobs that share a feature';
  readonly source = 'Stratus, section 3.2.4 (JVuPredict on average task running times)';
  readonly prefix = PREFIX;
  readonly learnsFrom = ['attempt-ended'] as const;
  readonly #history = new JvuPredict({ prefix: PREFIX });
  readonly #features = new FeaturesByStage();
  readonly #belief = Object.freeze<RuntimeHistory>({ predict: (features) => this.#history.predict(features) });

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.runtimeS === null) return;
    const { job, stage, runtimeS } = event;
    // The event of the last success finds it counted.
    const progress = job.stages.find((s) => s.name === stage.name);
    if (progress === undefined || progress.succeeded < progress.tasks) return;
    const averageS = progress.times === undefined ? runtimeS : meanTime(progress.times);
    this.#history.learn(this.#features.of(job.spec, stage, job.submittedMs), averageS);
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
