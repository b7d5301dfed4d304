/**
 * Outcome of an ECS task from its stop code, exit code and reason: whether it is a failure, and advice for people.
 * Pure.
 *
 * Stop codes: API_Task (https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Task.html). Errors of the agent:
 * "Amazon ECS stopped tasks error codes", "OutOfMemoryError", "CannotStartContainerError" and "CannotPullContainer task
 * errors" (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/stopped-task-error-codes.html,
 * out-of-memory.html, cannot-start-container.html, task_cannot_pull_image.html). docs/running-on-aws.md has the same
 * table for users.
 */

export interface EndWords {
  readonly stopCode?: string | undefined;
  readonly stoppedReason?: string | undefined;
  /** Reason of the container. */
  readonly reason?: string | undefined;
  readonly exitCode?: number | undefined;
}

export interface EndMeaning {
  /** ECS' own words and advice, if they say more than an exit code; else null. */
  readonly detail: string | null;
  /** True: the host was taken, shut down or unhealthy. */
  readonly isHostGone: boolean;
  /** True: ECS was asked to stop it. */
  readonly isAsked: boolean;
}

/** Stop codes of ends with the host: EC2 Spot and Fargate Spot notices, a host that was stopped or is unhealthy. */
const HOST_CODES = new Set(['TerminationNotice', 'SpotInterruption', 'InfrastructureHealth']);
/**
 * Reasons of ends with the host: it was terminated or stopped, or its container instance was removed from the cluster
 * by force.
 */
const HOST_REASONS = /^Host EC2 \(instance [^)]*\) (?:terminated|stopped)|^Container instance .*deregistration/;

export const FOREIGN_IMAGE =
  "the image is not for this deployment's processors (exec format error): build it for them, as with `docker buildx build --platform linux/amd64,linux/arm64`";

/** Advice by pattern; the first match wins. Errors of the agent begin with their name and a colon. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/OutOfMemoryError/i, 'ask for more in resources.memory'],
  [/exec format error|no matching manifest|descriptor matching platform/i, FOREIGN_IMAGE],
  [/CannotPull\w*Error.*(?:not found|manifest unknown|does not exist)/is, 'check the name and the tag in `image`'],
  [
    /CannotPull\w*Error.*(?:denied|unauthorized|no basic auth|403)/is,
    'the registry requires a right: the execution role reads public images and the ECR of its own account',
  ],
  [/CannotPull\w*Error.*(?:toomanyrequests|rate limit)/is, 'the registry throttles requests: keep a copy in ECR'],
  [/CannotPull\w*Error.*no space left/is, 'the image is larger than the disk of the instance'],
  [
    /CannotPull\w*Error.*(?:timeout|deadline exceeded|connection|dial tcp)/is,
    'instances must reach the registry: see `vpc` in docs/deploy.md',
  ],
  [
    /CannotStartContainerError.*(?:executable file not found|no such file or directory)/is,
    'the image must have a shell, `sh`',
  ],
  [
    /env(?:ironment)? ?files?\b/i,
    "the values of `env` could not be read: the instance must reach S3, and the execution role read `env/` of the deployment's bucket",
  ],
  [
    /(?:ResourceInitializationError|unable to (?:pull|fetch|retrieve) secret).*(?:secret|ssm|parameter)/is,
    'a secret that the job names is missing, or not under the name that docs/secrets.md says, or encrypted with a key that the execution role may not use',
  ],
  [
    /ResourceInitializationError|CannotStartContainerError.*logging driver/is,
    'the instance must reach CloudWatch Logs',
  ],
];

export function endMeaning({ stopCode = '', stoppedReason = '', reason = '' }: EndWords): EndMeaning {
  const said = [stopCode === 'EssentialContainerExited' ? '' : stoppedReason, reason].filter((w) => w !== '');
  const text = [...new Set(said)].join(': ');
  const remedy = REMEDIES.find(([pattern]) => pattern.test(text))?.[1];
  return {
    detail: text === '' ? null : remedy === undefined ? text : `${text}; ${remedy}`,
    isHostGone: HOST_CODES.has(stopCode) || HOST_REASONS.test(stoppedReason),
    isAsked: stopCode === 'UserInitiated',
  };
}

/** Meaning of exit codes for a command that cannot run (Shell Command Language, 2.8.2), for people. */
export function meaningOf(exitCode: number | null): string | null {
  if (exitCode === 126) return 'exit code 126: the command cannot be executed';
  return exitCode === 127 ? 'exit code 127: is the command in the image, or missing from inputs?' : null;
}
