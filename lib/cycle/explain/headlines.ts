/** Headlines of explanations, and remedies for waits. */
import { unreachable } from '../../kernel/errors.ts';
import type { Job } from '../../domain/job.ts';
import type { Explanation, WaitReason } from '../../domain/plan.ts';
import type { Limits } from '../../domain/snapshot.ts';
import type { Deliberation } from '../decide/deliberation.ts';
import { raisesLimit } from '../money/limit-text.ts';

type Waiting = Explanation['waiting'][number];
type Placed = Explanation['placed'][number];

/** Remedy for a wait; a quota of the account is not raised by a limit of the deployment. */
export const whatEndsWait = ({ why, quota }: Deliberation['allotment']['waits'][number], limits: Limits): string =>
  quota === undefined
    ? whatWouldChange(why, limits)
    : `a higher vCPU quota ${quota} of the account (Service Quotas), instances under it that end, or ${why === 'gang' ? 'a smaller gang' : 'fewer hard constraints'}`;

export function whatWouldChange(why: WaitReason, limits: Limits): string {
  switch (why) {
    case 'capacity':
      return `a task that ends, a higher vCPU limit (${raisesLimit(limits)}), or fewer hard constraints`;
    case 'price':
      return 'a lower price, a higher value, or a nearer deadline';
    case 'cheaper-later':
      return 'a price drop, or a deadline that leaves less time to wait';
    case 'dependency':
      return 'the end of what it depends on';
    case 'constraint':
      return 'fewer hard constraints or smaller resources: no open pool satisfies them now';
    case 'placement':
      return 'tasks beside it that end, or begin where it needs them; more zones in its constraints; or fewer `placement` rules';
    case 'budget':
      return 'a lower price, for which it waits a day at most, or a higher maxCost when it is submitted again';
    case 'backoff':
      return 'nothing: it is tried again after the pause';
    case 'not-before':
      return 'nothing: it starts from then on';
    case 'gang':
      return `room for all tasks of the gang at once: other work that ends, or a higher vCPU limit (${raisesLimit(limits)})`;
    case 'starting-instance':
      return 'nothing: it starts when the instance is up';
    case 'cancelling':
      return 'nothing: it ends when its last task has stopped';
    case 'held':
      return 'a release once the cause is mended (`ebb release`), or a cancellation (`ebb cancel`) and a corrected job';
    case 'disk':
      return 'room on the disk: what is deleted below the folder of the engine, or a larger --disk when it is started again';
    default:
      return unreachable(why, 'wait reason');
  }
}

/** Counts of the tasks, and the main reason if none runs. */
export function headline(job: Job, waiting: readonly Waiting[], placed: readonly Placed[]): string {
  const running = placed.reduce((n, p) => n + p.tasks, 0);
  const waitingTasks = waiting.reduce((n, w) => n + w.tasks, 0);
  const main = waiting[0];
  const counts = countsText(job, running, waitingTasks);
  return main === undefined || running > 0 ? counts : `${counts}: ${main.detail}`;
}

/** Headline with its cause even if tasks run: a full disk keeps all others from starting. */
export function diskHeadline(job: Job, waiting: readonly Waiting[], placed: readonly Placed[]): string {
  const count = (of: readonly { readonly tasks: number }[]): number => of.reduce((n, one) => n + one.tasks, 0);
  const counts = countsText(job, count(placed), count(waiting));
  const [main] = waiting;
  return main === undefined ? counts : `${counts}: ${main.detail}`;
}

function countsText(job: Job, running: number, waiting: number): string {
  const done = job.stages.reduce((n, s) => n + s.succeeded, 0);
  const total = job.stages.reduce((n, s) => n + s.tasks, 0);
  return `${done} of ${total} tasks done, ${running} running or starting, ${waiting} waiting`;
}
