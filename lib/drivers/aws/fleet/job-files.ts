/**
 * Places of a job's files in S3, below a working directory as in local mode. A job without one has its own folder in
 * the deployment's bucket, through which its stages pass files.
 */
import { EbbError, type Issue } from '../../../kernel/errors.ts';
import { OWN_FOLDER, type JobSpec, type StageSpec } from '../../../domain/job.ts';
import type { Placed } from '../../../ports/backend.ts';
import { isS3Uri, jobFolder } from '../../../domain/s3-uri.ts';
import { MAX_OVERRIDES } from './ecs.ts';
import { partedEnvironment } from './environment-file.ts';
import { unusablePattern } from './staging.ts';

/** Longest argument or variable that Linux passes to a program, bytes (execve(2), MAX_ARG_STRLEN). */
const MAX_TEXT_BYTES = 131_071;
/** Generous upper bound of what the fleet adds to a command and its environment (ecs.ts), characters. */
const OWN_OVERRIDES = 1500;

/**
 * Job with the places that its tasks see. Throws `job-file.invalid` with all findings: files that no task of a
 * deployment can reach, and texts that no program can receive.
 */
export function placedInS3(spec: JobSpec, bucket: string, job: string): Placed {
  const issues = spec.stages.flatMap((stage) => stageIssues(stage, spec));
  const [first] = issues;
  if (first !== undefined) {
    throw new EbbError('job-file.invalid', {
      what: issues.length === 1 ? first.message : `the job file has ${issues.length} faults`,
      ...(issues.length === 1 ? { at: first.at } : {}),
      issues,
      next: 'put the files into S3 and set `workdir: s3://BUCKET/FOLDER`; docs/running-on-aws.md shows how',
    });
  }
  const own = jobFolder(bucket, job);
  const stages = spec.stages.map((s) => (isS3Uri(s.workdir) ? s : { ...s, workdir: own }));
  return { spec: { ...spec, stages }, notes: [...outputNotes(spec, own), ...imageNotes(spec)] };
}

function stageIssues(stage: StageSpec, spec: JobSpec): Issue[] {
  const at = (key: string): string => `stages.${stage.name}.${key}`;
  const issues: Issue[] = [];
  for (const key of ['inputs', 'outputs'] as const) {
    for (const pattern of stage[key]) {
      const why = unusablePattern(pattern);
      if (why !== null) issues.push({ at: at(key), message: `${JSON.stringify(pattern)} ${why}` });
    }
  }
  const local = isS3Uri(stage.workdir) ? [] : stage.inputs.filter((pattern) => !isS3Uri(pattern));
  if (local.length > 0 && !hasEarlierOutputs(stage, spec)) {
    issues.push({
      at: at('inputs'),
      message: `${local.slice(0, 3).join(', ')} would be read from ${stage.workdir === OWN_FOLDER ? "the job's own folder, which is empty" : `${stage.workdir}, a folder of the machine that submits: tasks of a deployment read from S3`}`,
    });
  }
  const texts = [...stage.command, ...Object.entries(stage.env).map(([name, value]) => `${name}=${value}`)];
  const tooLong = texts.find((text) => Buffer.byteLength(text) > MAX_TEXT_BYTES);
  if (tooLong !== undefined) {
    issues.push({
      at: at(stage.command.includes(tooLong) ? 'command' : 'env'),
      message: `a text has ${Buffer.byteLength(tooLong)} bytes, and Linux gives programs at most ${MAX_TEXT_BYTES} in one: put it into a file among the inputs`,
    });
  }
  return issues;
}

/** True if earlier stages put outputs into the job's own folder. */
function hasEarlierOutputs(stage: StageSpec, spec: JobSpec): boolean {
  const before = new Set<string>();
  const queue = [...stage.dependsOn];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (before.has(name)) continue;
    before.add(name);
    queue.push(...(spec.stages.find((s) => s.name === name)?.dependsOn ?? []));
  }
  return spec.stages.some((s) => before.has(s.name) && !isS3Uri(s.workdir) && s.outputs.some((o) => !isS3Uri(o)));
}

function outputNotes({ stages }: JobSpec, own: string): string[] {
  const named = stages.filter((s) => !isS3Uri(s.workdir) && s.outputs.some((o) => !isS3Uri(o))).map((s) => s.name);
  return named.length === 0 ? [] : [`outputs of ${named.join(', ')} go to ${own}/`];
}

function imageNotes({ stages }: JobSpec): string[] {
  const staged = stages.filter((s) => s.inputs.length + s.outputs.length > 0).map((s) => s.name);
  const long = stages.filter((s) => overridesSize(s) > MAX_OVERRIDES).map((s) => s.name);
  const notes: string[] = [];
  if (staged.length > 0) notes.push(`the image of ${staged.join(', ')} must have the AWS CLI: its files are in S3`);
  if (long.length > 0) {
    notes.push(
      `the image of ${long.join(', ')} must have the AWS CLI: command and environment are longer than the ${MAX_OVERRIDES} characters that ECS takes`,
    );
  }
  return notes;
}

/**
 * Size of the overrides. Values in an environment file do not count. An environment that is too long for a file becomes
 * an order.
 */
const overridesSize = ({ command, env, inputs, outputs }: StageSpec): number => {
  const parted = partedEnvironment(env);
  if (parted === null) return Infinity;
  const environment = Object.entries(parted.rest).map(([name, value]) => ({ name, value }));
  return JSON.stringify([command, environment, inputs, outputs]).length + OWN_OVERRIDES;
};
