/** References of one run: the on-demand reference and the lower bound of the jobs that it admitted. */
import type { SchedulerConfig } from '../../../domain/config.ts';
import { raw, type EpochMs, type Seconds } from '../../../kernel/units.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { References } from '../../../report/outcome.ts';
import type { WorkloadJob } from '../../../workload/workload.ts';
import { lowerBoundUsd, MOST_TASKS } from './lower-bound.ts';
import { needsOf } from './needs.ts';
import { onDemandReference } from './on-demand.ts';

export interface ReferenceScene {
  readonly trace: MarketTrace;
  readonly config: Pick<SchedulerConfig, 'billing' | 'refundRule' | 'startDelayMeanS'>;
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  readonly setupS: Seconds;
}

/** Jobs that a run admits, as many as a bound is computed for. Null: there were more tasks. */
export class Admitted {
  readonly #jobs: WorkloadJob[] = [];
  #tasks = 0;

  readonly add = (job: WorkloadJob): void => {
    this.#tasks += job.spec.stages.reduce((n, s) => n + s.tasks, 0);
    if (this.#tasks <= MOST_TASKS) this.#jobs.push(job);
    else this.#jobs.length = 0;
  };

  get jobs(): readonly WorkloadJob[] | null {
    return this.#tasks <= MOST_TASKS ? this.#jobs : null;
  }
}

export function referencesOf(jobs: readonly WorkloadJob[] | null, scene: ReferenceScene): References {
  if (jobs === null) return { onDemandUsd: null, lowerBoundUsd: null };
  const { trace, config, fromMs, toMs, setupS } = scene;
  const needs = needsOf(jobs, { fromMs, setupS: raw(setupS) });
  const { pools } = trace;
  const startMs = config.startDelayMeanS * 1000;
  const onDemand = onDemandReference({ needs, pools, billing: config.billing, startMs });
  return {
    onDemandUsd: onDemand?.usd ?? null,
    lowerBoundUsd: lowerBoundUsd({ needs, trace, rules: config, toMs: raw(toMs) }),
  };
}
