import fc from 'fast-check';
import { epochMs, mib, milliCpu } from '../../lib/kernel/units.ts';
import type { JobFeatures } from '../../lib/domain/forecasts.ts';

/** Features of a run; a test names only what it is about. */
export const features = (over: Partial<JobFeatures> = {}): JobFeatures => ({
  owner: 'ada',
  jobName: 'train-#',
  program: 'train.py',
  stage: 'main',
  resources: { cpu: milliCpu(2000), memory: mib(4096), gpus: 0, disk: mib(0) },
  submittedMs: epochMs(1_700_000_000_000),
  ...over,
});

/** Runs by few owners of few programs, so that histories meet. Runtimes are whole seconds from 1 to 30. */
export const runs = fc.array(
  fc.record({
    features: fc
      .record({
        owner: fc.constantFrom('ada', 'bob', 'eve'),
        jobName: fc.constantFrom('etl-#', 'train-#', 'x y/z', 'ünï'),
        program: fc.constantFrom('a.py', 'b.sh'),
        cpus: fc.constantFrom(0, 1, 4),
        hour: fc.integer({ min: 0, max: 200 }),
      })
      .map((f) =>
        features({
          owner: f.owner,
          jobName: f.jobName,
          program: f.program,
          resources: { cpu: milliCpu(f.cpus * 1000), memory: mib(0), gpus: 0, disk: mib(0) },
          submittedMs: epochMs(f.hour * 3_600_000),
        }),
      ),
    runtimeS: fc.integer({ min: 1, max: 30 }),
  }),
  { minLength: 1, maxLength: 120, size: 'max' },
);
