import { JvuPredict } from '../../stages/estimate/predictor.ts';
import type { LearningHistory } from '../../cycle/observe/observer.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { JobFeatures } from '../../domain/stages.ts';
import type { Seconds } from '../../kernel/units.ts';

const NOTHING: ReadonlyMap<string, string> = new Map();

/**
 * JVuPredict for the life of one simulation: what it learns is never written down, because nobody could read it again. A fault
 * ends the simulation, and the next one learns from its own runs. Predicts what a stored history predicts.
 */
export class PassingHistory implements LearningHistory {
  readonly #predictor = new JvuPredict();
  readonly prefix = this.#predictor.prefix;

  predict(features: JobFeatures): RuntimeForecast | null {
    return this.#predictor.predict(features);
  }

  learn(features: JobFeatures, runtimeS: Seconds): void {
    this.#predictor.learn(features, runtimeS);
  }

  /** Always empty. */
  takeDirty(): ReadonlyMap<string, string> {
    return NOTHING;
  }

  restore(rows: ReadonlyMap<string, string>): void {
    this.#predictor.restore(rows);
  }
}
