/** Stops of attempts: of jobs that end, of broken gangs, of the plan's preemptions, and of moves that begin. */
import type { AttemptId, InstanceId, JobId } from '../../kernel/ids.ts';
import type { Job } from '../../domain/job.ts';
import type { Allotment, Placement } from '../../domain/plan.ts';
import { liveBeside, runningNamed, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { AppraisedMoves, DecisionContext, MovePolicy } from '../../policy/contracts.ts';
import { moveGroup } from '../../policy/move-group.ts';

export interface Stop {
  readonly attempt: AttemptId;
  readonly why: 'preempted' | 'cancelled';
  readonly reason: string;
  /** Target of a move. */
  readonly to?: InstanceId;
}

export function stopsOf(
  context: DecisionContext,
  allotment: Allotment,
  moving: {
    readonly appraised: AppraisedMoves;
    readonly placed: readonly Placement[];
    readonly buys: boolean;
    readonly vacate: MovePolicy['vacate'];
  },
): Stop[] {
  const { snapshot } = context;
  const stops = new Map<AttemptId, Stop>();
  const stop = ({ attempt }: RunningTask, why: Omit<Stop, 'attempt'>): void => {
    if (attempt.state === 'stopping' || stops.has(attempt.id)) return;
    stops.set(attempt.id, { attempt: attempt.id, ...why });
  };
  const endings = new Map<JobId, string>();
  let hasGang = false;
  for (const job of snapshot.jobs.values()) {
    const why = whyEnding(job);
    if (why !== null) endings.set(job.id, why);
    hasGang ||= job.spec.stages.some((s) => s.gang);
  }
  const mayStop = endings.size > 0 || hasGang;
  for (const r of mayStop ? snapshot.running : []) {
    const ending = endings.size === 0 ? undefined : endings.get(r.attempt.job);
    if (ending !== undefined) stop(r, { why: 'cancelled', reason: ending });
    else if (r.stage.gang && brokenGang(snapshot, r))
      stop(r, { why: 'preempted', reason: 'its gang is no longer complete' });
  }
  const { preemptions } = allotment;
  const preempted = runningNamed(
    snapshot,
    preemptions.map((p) => p.attempt),
  );
  for (const { attempt, reason } of preemptions) {
    const running = preempted.get(attempt);
    if (running !== undefined) stop(running, { why: 'preempted', reason });
  }
  const placed = new Map(moving.placed.map((p) => [p.group, p]));
  const { moves, offers } = moving.appraised;
  const going = new Set(moves.map((m) => m.running.attempt.id));
  for (const m of moves) {
    const on = placed.get(moveGroup(m))?.on;
    const host = on === undefined ? undefined : snapshot.instances.get(on);
    if (host !== undefined && host.instance.state === 'ready') {
      const reason = `${m.reason}; ${host.instance.id} (${host.pool.id}) is ready to take it`;
      // A gang restarts as a whole, wherever there is room for all of it.
      const to = m.running.stage.gang ? {} : { to: host.instance.id };
      // Copies go with it: while one lives its task would not start on the target.
      for (const r of [m.running, ...liveBeside(snapshot, m.running)]) stop(r, { why: 'preempted', reason, ...to });
      continue;
    }
    const of = offers.get(moveGroup(m))?.offers ?? [];
    const { vacate, buys } = moving;
    // A named target is worth waiting for, or is not to be had.
    const mayVacate = host === undefined && m.to === undefined;
    const why = mayVacate ? vacate({ ...context, move: m, moveOffers: of, going, buys }) : null;
    if (why !== null) stop(m.running, { why: 'preempted', reason: why });
  }
  return [...stops.values()];
}

function whyEnding(job: Job): string | null {
  if (job.cancelRequested) return 'the job was cancelled';
  return job.stages.some((s) => s.failed > 0) ? 'a task of the job failed with no retries left' : job.stateReason;
}

/** A gang of running and waiting tasks makes no progress. */
function brokenGang(snapshot: Snapshot, r: RunningTask): boolean {
  const stage = snapshot.jobs.get(r.attempt.job)?.stages.find((s) => s.name === r.attempt.stage);
  return stage !== undefined && (stage.waiting > 0 || stage.nextFresh < stage.tasks);
}
