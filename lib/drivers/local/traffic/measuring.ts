import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { PeriodMeasures } from '../../../domain/service.ts';

type Measures = Omit<PeriodMeasures, 'replicas' | 'fromMs' | 'toMs'>;

/** Highest latency that is told apart, microseconds: an hour. */
const HIGHEST_US = 3600e6;

/** Requests since they were last taken: numbers, and a histogram of latencies (HDR, three digits). */
export class Measuring {
  readonly #latencies: RecordableHistogram = createHistogram({ lowest: 1, highest: HIGHEST_US, figures: 3 });
  #slow = 0;
  #failed = 0;

  answered(latencyMs: number, limitMs: number): void {
    this.#latencies.record(Math.min(HIGHEST_US, Math.max(1, Math.round(latencyMs * 1000))));
    if (latencyMs > limitMs) this.#slow += 1;
  }

  failed(): void {
    this.#failed += 1;
  }

  take(queued: number): Measures {
    const { count } = this.#latencies;
    const at = (percent: number): number | null => (count === 0 ? null : this.#latencies.percentile(percent) / 1e6);
    const taken = {
      requests: count,
      slow: this.#slow,
      failed: this.#failed,
      p50S: at(50),
      p95S: at(95),
      p99S: at(99),
      queued,
    };
    this.#latencies.reset();
    this.#slow = 0;
    this.#failed = 0;
    return taken;
  }
}
