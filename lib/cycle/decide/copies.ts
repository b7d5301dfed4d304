/**
 * What becomes of the copies that the speculate stage asks for (policy/contracts.ts). They come after all starts: on
 * the room that those leave, within the limits on money and the constraints of their jobs. A copy that has no room is
 * dropped for now, with a reason: it is asked for again, or not.
 */
import { EbbError, invariant } from '../../kernel/errors.ts';
import { groupId, type AttemptId, type GroupId, type InstanceId } from '../../kernel/ids.ts';
import { raw, ZERO_S, type Seconds } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { forecastFor, type Forecasts } from '../../domain/forecasts.ts';
import type { Allotment, Placement } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { liveBeside, runningNamed, type PendingGroup, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import { begunBy, quantileToDo } from '../../domain/work-to-do.ts';
import type {
  AppraisedMoves,
  Copy,
  DecisionContext,
  Host,
  PlacePolicy,
  Stages,
  Started,
  TaskToPlace,
} from '../../policy/contracts.ts';
import { poolOf } from './moves.ts';
import { attemptsWanted, wrongCopy } from '../../policy/copies.ts';
import { afterPlacing } from '../../policy/hosts.ts';
import { pendingAgain } from '../../policy/pending-again.ts';
import type { Purse } from '../money/purse.ts';
import type { Neighbours } from '../neighbours/neighbours.ts';
import { hasPlace } from '../neighbours/targets.ts';

/** A copy, as work that waits. */
export interface WantedCopy {
  readonly copy: Copy;
  readonly running: RunningTask;
  readonly group: PendingGroup;
  /** Running time from the beginning: the median. */
  readonly runtimeS: Seconds;
}
export interface PlacedCopy extends WantedCopy {
  readonly on: InstanceId;
}
export interface DroppedCopy extends Pick<WantedCopy, 'copy' | 'running'> {
  readonly why: string;
}

/** Copies of one decision. */
export interface Copies {
  /** On instances that are up or starting. */
  readonly placed: readonly PlacedCopy[];
  /** An instance is bought for them. */
  readonly bought: readonly WantedCopy[];
  readonly dropped: readonly DroppedCopy[];
}

export interface Copying {
  readonly context: DecisionContext;
  readonly allotment: Pick<Allotment, 'preemptions'>;
  readonly appraised: Pick<AppraisedMoves, 'moves'>;
  /** What starts leave; asked for where there are copies. */
  readonly hosts: () => readonly Host[];
  readonly purse: Purse;
  readonly neighbours: Neighbours | null;
}

/** Copies before purchases. `open`: those for which an instance may be bought. */
export interface CopiesSoFar extends Omit<Copies, 'bought'> {
  readonly open: readonly WantedCopy[];
}
const NONE: CopiesSoFar = { placed: [], open: [], dropped: [] };

/** The copies that are asked for, on the room that there is. Throws `internal` for one that the contract forbids. */
export function placeCopies<S>(stages: Pick<Stages<S>, 'speculate' | 'place'>, of: Copying): CopiesSoFar {
  const asked = stages.speculate(of.context);
  if (asked.length === 0) return NONE;
  const wrong = wrongCopy(asked, of.context.snapshot);
  if (wrong !== null)
    throw new EbbError('internal', { what: 'the speculate stage asks for a copy that cannot be', got: wrong });
  const { wanted, dropped } = wantedCopies(asked, of);
  const placed: PlacedCopy[] = [];
  const open: WantedCopy[] = [];
  let hosts = of.hosts();
  for (const mine of [wanted.filter(isDue), wanted.filter((w) => !isDue(w))]) {
    const found = placedOn(hosts, mine, { ...of, place: stages.place });
    hosts = found.hosts;
    placed.push(...found.placed);
    dropped.push(...found.unpaid);
    for (const w of found.unplaced) {
      const { to } = w.copy;
      if (to?.pool !== undefined) open.push(w);
      else
        dropped.push({
          ...w,
          why: to === undefined ? 'no instance that it may use has room' : `${to.instance} has no room for it`,
        });
    }
  }
  return { placed, open, dropped };
}

const isDue = ({ running }: WantedCopy): boolean => running.deadlineMs !== null;

/** Copies of which there are not as many as asked for. */
function wantedCopies(asked: readonly Copy[], { context, allotment, appraised, neighbours }: Copying) {
  const { snapshot, forecasts } = context;
  const stopping = new Set<AttemptId>(allotment.preemptions.map((p) => p.attempt));
  for (const { running } of appraised.moves) stopping.add(running.attempt.id);
  const named = runningNamed(
    snapshot,
    asked.map((c) => c.of),
  );
  const wanted: WantedCopy[] = [];
  const dropped: DroppedCopy[] = [];
  for (const copy of asked) {
    const running = invariant(named.get(copy.of), 'what is copied runs');
    if (1 + liveBeside(snapshot, running).length >= attemptsWanted(copy)) continue;
    const why = stopping.has(copy.of)
      ? 'the attempt that it is a copy of is to stop or to move'
      : (whyInVain(running, snapshot) ?? whyNowhere(copy, running, { context, neighbours }));
    if (why !== null) {
      dropped.push({ copy, running, why });
      continue;
    }
    const group = pendingAgain(running, {
      id: groupId(`copy/${copy.of}`),
      constraints: running.stage.constraints,
      keptS: ZERO_S,
      ranS: ZERO_S,
    });
    wanted.push({ copy, running, group, runtimeS: medianAnew(running, { snapshot, forecasts }) });
  }
  return { wanted, dropped };
}

/** Why a copy could not succeed; null: it could. */
function whyInVain({ attempt, claimed }: RunningTask, { jobs }: Snapshot): string | null {
  const { noCopies } = jobs.get(attempt.job)?.stages.find((s) => s.name === attempt.stage) ?? {};
  if (noCopies !== undefined) return noCopies;
  if (claimed === undefined) return null;
  return `${claimed.by ?? 'another attempt'} has claimed the outputs, so that a copy could not publish its own`;
}

/** As if the task had never run: where it runs may be what makes it slow. */
function medianAnew(running: RunningTask, of: { readonly snapshot: Snapshot; readonly forecasts: Forecasts }): Seconds {
  const forecast = forecastFor(of.forecasts.runtime, running);
  return forecast === undefined
    ? begunBy(running, of.snapshot.nowMs).ranS
    : quantileToDo(forecast.runtime, { keptS: ZERO_S }, 0.5);
}

/** A copy is one more task to its neighbours, beside the attempt that runs. */
function whyNowhere(
  { to }: Copy,
  { attempt }: RunningTask,
  of: Pick<Copying, 'context' | 'neighbours'>,
): string | null {
  const { neighbours } = of;
  const ruled = neighbours?.of(attempt) ?? null;
  if (neighbours === null || ruled === null) return null;
  const mayBe =
    to === undefined
      ? ruled.zones().some(({ zone }) => neighbours.mostIn(ruled, zone) >= 1)
      : hasPlace(ruled, { to, zone: poolOf(to, of.context.snapshot)?.zone ?? '' }, neighbours);
  return mayBe ? null : 'its `placement` rules do not allow one more of its tasks there';
}

function placedOn(
  hosts: readonly Host[],
  wanted: readonly WantedCopy[],
  { place, context, purse }: Pick<Copying, 'context' | 'purse'> & { readonly place: PlacePolicy },
) {
  const tasks = wanted.map((w) => taskOf(w, context.snapshot));
  const byGroup = new Map(wanted.map((w) => [w.group.id, w]));
  const placed: PlacedCopy[] = [];
  const unpaid: DroppedCopy[] = [];
  const paid: Placement[] = [];
  for (const p of tasks.length === 0 ? [] : place(tasks, hosts, context)) {
    const of = invariant(byGroup.get(p.group), 'what is placed was to be placed');
    byGroup.delete(p.group);
    const why = purse.heldByCopy(of.group, p.on, raw(of.runtimeS));
    if (why === null) {
      placed.push({ ...of, on: p.on });
      paid.push(p);
    } else unpaid.push({ ...of, why });
  }
  return { placed, unpaid, unplaced: [...byGroup.values()], hosts: afterPlacing(hosts, tasks, paid) };
}

function taskOf({ copy: { to }, running, group, runtimeS }: WantedCopy, snapshot: Snapshot): TaskToPlace {
  const { attempt, stage } = running;
  const taken = new Set([running, ...liveBeside(snapshot, running)].map((r) => r.attempt.instance));
  const inPool = (pool: Pool): boolean =>
    brokenConstraint(stage.constraints, pool) === null && (to?.pool === undefined || to.pool === pool.id);
  const allowed = ({ on, pool }: Host): boolean =>
    !taken.has(on) && inPool(pool) && (to?.instance === undefined || to.instance === on);
  return { task: attempt, group: group.id, need: group.need, runtimeS, gang: null, allowed, inPool };
}

/** Hosts as starts leave them, without those on which room is being made. `arriving` is taken from them already. */
export function hostsAfterStarts(
  hosts: readonly Host[],
  { placements, reserved }: Pick<Started, 'placements' | 'reserved'>,
  {
    groups,
    arriving,
  }: { readonly groups: ReadonlyMap<GroupId, PendingGroup>; readonly arriving: readonly Placement[] },
): readonly Host[] {
  const kept = new Set(reserved.map((p) => p.on));
  const known = new Set(arriving);
  const started = placements.filter((p) => !known.has(p));
  const open = hosts.filter((h) => !kept.has(h.on));
  return afterPlacing(
    open,
    [...groups.values()].map(({ id, need }) => ({ group: id, need })),
    started,
  );
}
