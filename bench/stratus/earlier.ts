import { jobId } from '../../lib/kernel/ids.ts';
import { seconds, type EpochMs } from '../../lib/kernel/units.ts';
import { newJob } from '../../lib/cycle/admit/new-job.ts';
import type { Job } from '../../lib/domain/job.ts';
import { withTime, type RunningTimes } from '../../lib/domain/running-times.ts';
import type { AttemptEnded, LearningEvent } from '../../lib/policy/learner.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';

/**
 * Successes of earlier tasks as learners were told of them, each job by itself. The last success of a stage finds all
 * of its tasks counted.
 */
export const earlierSuccesses = (jobs: readonly WorkloadJob[], atMs: EpochMs): readonly LearningEvent[] =>
  jobs.flatMap((given, n) => {
    const admitted = { id: jobId(`j-earlier-${n}`), at: atMs, after: [], admission: { feasible: true, notes: [] } };
    const begun = newJob(given.spec, admitted);
    const done = doneJob(begun, given);
    return begun.spec.stages.flatMap((stage) => {
      const times = given.truth.get(stage.name)?.runtimeS ?? new Float64Array();
      return Array.from(times, (s, index) => {
        const attempt = { job: begun.id, stage: stage.name, index, number: 1, resources: stage.resources };
        const job = index === times.length - 1 ? done : begun;
        const event = { kind: 'attempt-ended', atMs, outcome: 'succeeded', job, stage, attempt, neighbours: [] };
        // No instance and no pool: learners of running times ask for none.
        return { ...event, runtimeS: seconds(s), usage: null } as unknown as AttemptEnded;
      });
    });
  });

const doneJob = (job: Job, { truth }: WorkloadJob): Job => ({
  ...job,
  stages: job.stages.map((stage) => {
    const times = [...(truth.get(stage.name)?.runtimeS ?? [])].reduce<RunningTimes | undefined>(
      (sum, s) => withTime(sum, seconds(s)),
      undefined,
    );
    return { ...stage, nextFresh: stage.tasks, succeeded: stage.tasks, ...(times !== undefined && { times }) };
  }),
});
