import type { JobSpec } from '../../../lib/domain/job.ts';
import { raw } from '../../../lib/kernel/units.ts';

/**
 * A job as somebody would write it into a job file. What the schema makes of it must be the job again: then the job is
 * within every limit of a job file, whatever limits there are.
 */
export function asJobFile(spec: JobSpec): unknown {
  const { deadline } = spec;
  return {
    name: spec.name,
    owner: spec.owner,
    labels: spec.labels,
    class: spec.class,
    ...(deadline !== null && 'afterS' in deadline ? { deadline: raw(deadline.afterS) } : {}),
    stages: spec.stages.map((s) => ({
      name: s.name,
      dependsOn: s.dependsOn,
      tasks: s.tasks,
      gang: s.gang,
      command: s.command,
      workdir: s.workdir,
      resources: {
        cpu: `${raw(s.resources.cpu)}m`,
        memory: `${raw(s.resources.memory)}MiB`,
        gpu: s.resources.gpus,
        disk: `${raw(s.resources.disk)}MiB`,
      },
      retries: s.retries,
      ...(s.expectedRuntimeS === null ? {} : { expectedRuntime: raw(s.expectedRuntimeS) }),
      ...(s.checkpoint === null
        ? {}
        : {
            checkpoint: {
              signal: s.checkpoint.signal,
              grace: raw(s.checkpoint.graceS),
              ...(s.checkpoint.everyS === null ? {} : { every: raw(s.checkpoint.everyS) }),
            },
          }),
    })),
  };
}
