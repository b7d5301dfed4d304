import { alibabaDags } from './alibaba-dags.ts';
import { alibabaGpu } from './alibaba-gpu.ts';
import { facebook } from './facebook.ts';
import { googleAttempts } from './google-attempts.ts';
import { googleJobs } from './google-jobs.ts';
import { jobFiles } from './job-files.ts';
import type { Reader } from './reader.ts';
import { standardWorkload } from './standard-workload.ts';
import { tpch } from './tpch.ts';
import { wfFormat } from './wf-format.ts';
import { workflowInstances } from './workflow-instances.ts';

/** Formats of files, in the order of detection. Job files come last: any YAML may be one. */
export const READERS: readonly Reader[] = [
  googleAttempts,
  googleJobs,
  facebook,
  alibabaGpu,
  alibabaDags,
  tpch,
  workflowInstances,
  wfFormat,
  standardWorkload,
  jobFiles,
];
