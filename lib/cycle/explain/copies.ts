import type { JobId } from '../../kernel/ids.ts';
import type { Explanation } from '../../domain/plan.ts';
import { liveBeside, type RunningTask } from '../../domain/snapshot.ts';
import type { Deliberation } from '../decide/deliberation.ts';

type CopySeen = NonNullable<Explanation['copies']>[number];

/** Copies kept in one job's record. */
const MOST_SEEN = 12;

/** Whether an attempt stands for its task: the first of several that live, and none that is superseded. */
export function standsForTask({ snapshot }: Pick<Deliberation, 'snapshot'>, running: RunningTask): boolean {
  const { supersededBy, number } = running.attempt;
  return supersededBy === undefined && liveBeside(snapshot, running).every((o) => o.attempt.number > number);
}

/** What becomes of the copies that this decision was asked for, by job. */
export function copiesAskedFor({ copies, snapshot }: Deliberation): ReadonlyMap<JobId, readonly CopySeen[]> {
  const { placed, bought, dropped } = copies;
  const seen = new Map<JobId, CopySeen[]>();
  const see = ({ attempt }: RunningTask, state: CopySeen['state'], why: string): void => {
    const { job, stage, index } = attempt;
    const mine = seen.get(job);
    if (mine === undefined) seen.set(job, [{ stage, index, state, why }]);
    else mine.push({ stage, index, state, why });
  };
  for (const { running, on, copy } of placed) {
    const isUp = snapshot.instances.get(on)?.instance.state === 'ready';
    if (isUp) see(running, 'starts', `a copy starts now on ${on}: ${copy.reason}`);
    else see(running, 'waits', `a copy waits for instance ${on}, which is starting: ${copy.reason}`);
  }
  for (const { running, copy } of bought)
    see(running, 'waits', `an instance in ${copy.to?.pool} is bought for a copy: ${copy.reason}`);
  for (const { running, copy, why } of dropped) see(running, 'dropped', `no copy: ${why} (${copy.reason})`);
  return seen;
}

/** Copies of a job, those that run first. */
export function copiesOf(
  d: Deliberation,
  running: readonly RunningTask[],
  asked: readonly CopySeen[] = [],
): Pick<Explanation, 'copies'> {
  const run = running.flatMap((r): CopySeen[] => {
    const { stage, index, instance, reason, supersededBy } = r.attempt;
    if (supersededBy !== undefined || standsForTask(d, r)) return [];
    return [{ stage, index, state: 'runs', why: `a copy runs on ${instance}${reason === null ? '' : `: ${reason}`}` }];
  });
  const copies = [...run, ...asked].slice(0, MOST_SEEN);
  return copies.length === 0 ? {} : { copies };
}
