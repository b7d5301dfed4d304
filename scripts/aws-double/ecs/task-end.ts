import { signalCode, type Task, type TaskEnd } from './task.ts';

/** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/stopped-task-error-codes.html */
export function endOf(
  task: Task,
  seen: { readonly exitCode: number | null; readonly exitSignal: string | null; readonly detail: string | null },
): TaskEnd {
  const exitCode = seen.exitCode ?? (seen.exitSignal === null ? null : signalCode(seen.exitSignal));
  if (task.stopAsked !== null)
    return { stopCode: 'UserInitiated', stoppedReason: task.stopAsked, exitCode, reason: null };
  if (exitCode === null) {
    const reason = `CannotStartContainerError: ${seen.detail ?? 'the process did not start'}`;
    return { stopCode: 'TaskFailedToStart', stoppedReason: reason, exitCode, reason };
  }
  const reason = task.killedForMemory ? 'OutOfMemoryError: Container killed due to memory usage' : null;
  return {
    stopCode: 'EssentialContainerExited',
    stoppedReason: 'Essential container in task exited',
    exitCode,
    reason,
  };
}

/** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html */
/** Missing files that the agent needs before the container (amazon-ecs-agent, agent/taskresource/envFiles). */
export const cannotFetch = (reason: string): TaskEnd => ({
  stopCode: 'TaskFailedToStart',
  stoppedReason: `ResourceInitializationError: failed to download env files: ${reason}`,
  exitCode: null,
  reason: null,
});

export function cannotPull(image: string): TaskEnd {
  const reason = `CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref ${image}: not found`;
  return { stopCode: 'TaskFailedToStart', stoppedReason: reason, exitCode: null, reason };
}
