/** Stops of attempts: of jobs that end, of broken gangs, of the plan's preemptions, and of moves that begin. */
import type { AttemptId, InstanceId, JobId } from '../../kernel/ids.ts';
import { stageKey, type Job, type MoveUsd } from '../../domain/job.ts';
import type { Allotment, Placement } from '../../domain/plan.ts';
import { liveBeside, runningNamed, type InstanceView, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { AppraisedMoves, DecisionContext, MovePolicy, PlannedMove } from '../../policy/contracts.ts';
import { moveGroup } from '../../policy/move-group.ts';

export interface Stop {
  readonly attempt: AttemptId;
  readonly why: 'preempted' | 'cancelled';
  readonly reason: string;
  /** Target of a move. */
  readonly to?: InstanceId;
  /** What its policy expects of the move. Absent: it does not say. */
  readonly usd?: MoveUsd;
}

interface Moving {
  readonly appraised: AppraisedMoves;
  readonly placed: readonly Placement[];
  readonly buys: boolean;
  readonly vacate: MovePolicy['vacate'];
}

export function stopsOf(context: DecisionContext, allotment: Allotment, moving: Moving): Stop[] {
  const { snapshot } = context;
  const stops = new Stops();
  endings(snapshot, stops);
  const { preemptions } = allotment;
  const preempted = runningNamed(
    snapshot,
    preemptions.map((p) => p.attempt),
  );
  for (const { attempt, reason } of preemptions) {
    const running = preempted.get(attempt);
    if (running !== undefined) stops.add(running, { why: 'preempted', reason });
  }
  moves(context, stops, moving);
  return stops.all();
}

/** The first reason of each attempt that does not stop already. */
class Stops {
  readonly #stops = new Map<AttemptId, Stop>();

  add({ attempt }: RunningTask, why: Omit<Stop, 'attempt'>): void {
    if (attempt.state === 'stopping' || this.#stops.has(attempt.id)) return;
    this.#stops.set(attempt.id, { attempt: attempt.id, ...why });
  }

  of(attempt: AttemptId): Stop | undefined {
    return this.#stops.get(attempt);
  }

  all(): Stop[] {
    return [...this.#stops.values()];
  }
}

function endings(snapshot: Snapshot, stops: Stops): void {
  const ending = new Map<JobId, string>();
  let hasGang = false;
  for (const job of snapshot.jobs.values()) {
    const why = whyEnding(job);
    if (why !== null) ending.set(job.id, why);
    hasGang ||= job.spec.stages.some((s) => s.gang);
  }
  for (const r of ending.size > 0 || hasGang ? snapshot.running : []) {
    const why = ending.size === 0 ? undefined : ending.get(r.attempt.job);
    if (why !== undefined) stops.add(r, { why: 'cancelled', reason: why });
    else if (r.stage.gang && brokenGang(snapshot, r))
      stops.add(r, { why: 'preempted', reason: 'its gang is no longer complete' });
  }
}

/** Moves whose target is up; of a gang, all of its moves must have one that is. */
function moves(context: DecisionContext, stops: Stops, { appraised, placed, buys, vacate }: Moving): void {
  const { snapshot } = context;
  const targets = new Map(placed.map((p) => [p.group, p.on]));
  const targetOf = (m: PlannedMove): InstanceView | undefined => {
    const on = targets.get(moveGroup(m));
    return on === undefined ? undefined : snapshot.instances.get(on);
  };
  const isUp = (m: PlannedMove): boolean => targetOf(m)?.instance.state === 'ready';
  const going = new Set(appraised.moves.map((m) => m.running.attempt.id));
  const ofGang = appraised.moves.filter((m) => m.running.stage.gang);
  const gangs = Map.groupBy(ofGang, (m) => stageKey(m.running.attempt));
  for (const m of appraised.moves) {
    const target = targetOf(m);
    const together = gangs.get(stageKey(m.running.attempt)) ?? [m];
    if (target !== undefined && together.every(isUp)) {
      const reason = `${m.reason}; ${target.instance.id} (${target.pool.id}) is ready to take it`;
      // Copies go with it: while one lives its task would not start on the target.
      const stop = { why: 'preempted', reason, to: target.instance.id } as const;
      stops.add(m.running, { ...stop, ...expectedOf(m) });
      for (const r of liveBeside(snapshot, m.running)) stops.add(r, stop);
      continue;
    }
    const moveOffers = appraised.offers.get(moveGroup(m))?.offers ?? [];
    // A named target is worth waiting for, or is not to be had.
    const mayVacate = target === undefined && m.to === undefined;
    const without = together.filter((other) => targetOf(other) === undefined);
    const why = mayVacate ? vacate({ ...context, move: m, together: without, moveOffers, going, buys }) : null;
    if (why !== null) stops.add(m.running, { why: 'preempted', reason: why });
  }
  if (gangs.size > 0) restOfGangs(snapshot, stops, gangs);
}

function expectedOf({ savedUsd, riskUsd }: PlannedMove): Pick<Stop, 'usd'> {
  if (savedUsd === undefined && riskUsd === undefined) return {};
  return { usd: { ...(savedUsd === undefined ? {} : { savedUsd }), ...(riskUsd === undefined ? {} : { riskUsd }) } };
}

/** The rest of a gang stops with its tasks that move, and goes on where it is. */
function restOfGangs(snapshot: Snapshot, stops: Stops, gangs: ReadonlyMap<string, readonly PlannedMove[]>): void {
  for (const r of snapshot.running) {
    const [first] = gangs.get(stageKey(r.attempt)) ?? [];
    if (first === undefined || stops.of(first.running.attempt.id)?.to === undefined) continue;
    stops.add(r, { why: 'preempted', reason: 'its gang goes on elsewhere as a whole', to: r.attempt.instance });
  }
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
