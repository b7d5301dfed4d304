/** A policy for each stage that draws its answers, within the contracts: what the cycle must bear. */
import type { AttemptId, InstanceId } from '../../lib/kernel/ids.ts';
import type { Uniform } from '../../lib/kernel/random.ts';
import { plus, seconds, ZERO_S } from '../../lib/kernel/units.ts';
import { brokenConstraint, nonInterruptibleOnly } from '../../lib/domain/constraints.ts';
import type { TaskRef } from '../../lib/domain/job.ts';
import { unsolved, type MoveTarget, type NamedTarget, type Placement, type Purchase } from '../../lib/domain/plan.ts';
import { vcpusOf, type Pool } from '../../lib/domain/pool.ts';
import { fits, minusResources } from '../../lib/domain/resources.ts';
import {
  instanceParts,
  liveBeside,
  memberOf,
  runningParts,
  type RunningTask,
  type Snapshot,
} from '../../lib/domain/snapshot.ts';
import {
  withOffers,
  type Leftover,
  type MovePolicy,
  type PlannedMove,
  type Stages,
  type TaskToPlace,
} from '../../lib/policy/contracts.ts';
import { whyNotCopied } from '../../lib/policy/copies.ts';
import { moveGroup } from '../../lib/policy/move-group.ts';
import { pendingAgain } from '../../lib/policy/pending-again.ts';
import type { Contract } from '../../lib/policy/policy.ts';
import type { Solver } from '../../lib/policy/solver.ts';
import { wrongTarget } from '../../lib/policy/targets.ts';

/** Probabilities of the answers at each choice. */
export interface Drawn {
  readonly starts: number;
  readonly preempts: number;
  readonly moves: number;
  readonly copies: number;
  readonly places: number;
  readonly waits: number;
  readonly buys: number;
  readonly releases: number;
}

/** Targets of moves, as they were proposed first; a move keeps its target. */
export type Targets = Map<AttemptId, MoveTarget | null>;

const pick = <T>(draw: Uniform, of: readonly T[]): T | undefined => of[Math.floor(draw() * of.length)];
const shuffled = <T>(draw: Uniform, of: readonly T[]): readonly T[] =>
  of
    .map((item) => ({ item, at: draw() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

export function randomStages(
  of: Stages<Solver>,
  { draw, drawn, targets }: { readonly draw: Uniform; readonly drawn: Drawn; readonly targets: Targets },
): Stages<Solver> {
  return {
    ...of,
    value: randomValue(of.value, draw),
    appraise: randomAppraise(of.appraise, draw),
    move: randomMove(draw, drawn, targets),
    plan: randomPlan(draw, drawn),
    order: randomOrder(draw),
    place: randomPlace(draw, drawn),
    queue: randomQueue(draw, drawn),
    speculate: randomCopies(draw, drawn),
    scale: randomScale(draw, drawn),
  };
}

/** Forgets last safe starts, of any group. */
const randomValue =
  (value: Contract<'value'>, draw: Uniform): Contract<'value'> =>
  (context) => {
    const worths = value(context);
    const groups = new Map(
      [...worths.groups].map(([id, worth]) => [id, draw() < 0.5 ? worth : { ...worth, latestSafeStartMs: null }]),
    );
    return { groups, ofRunning: worths.ofRunning };
  };

/** Any part of the offers, in any order. */
const randomAppraise =
  (appraise: Contract<'appraise'>, draw: Uniform): Contract<'appraise'> =>
  (context) =>
    new Map(
      [...appraise(context)].map(([id, of]) => [
        id,
        withOffers(
          of,
          shuffled(draw, of.offers).filter(() => draw() < 0.8),
        ),
      ]),
    );

/** An instance or a pool that a running task may go to. */
function randomTarget(draw: Uniform, running: RunningTask, { instances, pools }: Snapshot, all: Snapshot) {
  const named: readonly NamedTarget[] = [
    ...[...instances.values()].map(({ instance: { id } }) => ({ instance: id })),
    ...pools.filter((v) => v.open && v.quote !== null).map((v) => ({ pool: v.pool.id, bid: 'uncapped' as const })),
  ];
  return pick(
    draw,
    named.filter((to) => wrongTarget(to, running, all) === null),
  );
}

/** Moves any running task off spot, to spot, or to a target by name. */
function randomMove(draw: Uniform, { moves }: Drawn, targets: Targets): MovePolicy {
  const targetOf = (running: RunningTask, pool: Pool, snapshot: Snapshot): MoveTarget | null => {
    const { constraints, gang } = running.stage;
    const side = pool.option === 'spot' ? (nonInterruptibleOnly(constraints) === null ? null : undefined) : 'spot';
    if (gang || draw() < 0.3) return side === undefined ? null : side;
    return randomTarget(draw, running, snapshot, snapshot) ?? null;
  };
  return {
    propose: ({ snapshot, worths }) =>
      [...snapshot.instances.values()].flatMap((view) =>
        view.attempts.flatMap((running) => {
          const { attempt } = running;
          if (attempt.state !== 'running' || worths.ofRunning(running) === undefined) return [];
          if (!targets.has(attempt.id) && draw() >= moves) return [];
          if (!targets.has(attempt.id)) targets.set(attempt.id, targetOf(running, view.pool, snapshot));
          const to = targets.get(attempt.id) ?? null;
          const isGone = to !== null && to !== 'spot' && wrongTarget(to, running, snapshot) !== null;
          if (isGone || (to === null && view.pool.option !== 'spot')) return [];
          const move = { attempt: attempt.id, reason: 'drawn', running, view, restarts: true };
          return [{ ...move, ...(to === null ? {} : { to }) }];
        }),
      ),
    begin: ({ moves: planned, value: _, appraise, ...context }) => {
      const groups = new Map(planned.map((m) => [moveGroup(m), groupToMove(m)]));
      const worths = new Map(planned.map((m) => [moveGroup(m), m.worth]));
      const snapshot = { ...context.snapshot, groups: [...groups.values()] };
      const offers = appraise({ ...context, snapshot, worths: { groups: worths, ofRunning: () => undefined } });
      return { moves: planned, groups, worths, offers };
    },
    returning: ({ snapshot }) => runningParts(snapshot).stopping,
    vacate: () => (draw() < 0.1 ? 'drawn' : null),
  };
}

const groupToMove = (m: PlannedMove) =>
  pendingAgain(m.running, { id: moveGroup(m), constraints: m.constraints, keptS: ZERO_S, ranS: ZERO_S });

/**
 * Starts any part of any group on any of its offers, or lets its stage wait for a time; stops any best-effort task that
 * runs.
 */
function randomPlan(draw: Uniform, { starts, preempts }: Drawn): Contract<'plan'> {
  return ({ snapshot, offers, moves = [] }) => {
    const chosen = snapshot.groups.flatMap((group) => {
      const open = (offers.get(group.id)?.offers ?? []).filter((o) => o.opens === undefined);
      const offer = pick(draw, open);
      if (offer === undefined || draw() >= starts) return [];
      const count = group.stage.gang ? group.count : 1 + Math.floor(draw() * group.count);
      const option = { group: group.id, offer, slot: 0, startMs: snapshot.nowMs, worthUsd: 1, costUsd: 0.1 };
      return [{ option, count, reason: 'drawn' }];
    });
    const startsOf = new Map(chosen.map((s) => [s.option.group, s.count]));
    const moved = new Set(moves.map((m) => m.attempt));
    const stopped = snapshot.running.filter(
      ({ class: of, attempt: { id, state } }) =>
        of === 'best-effort' && state === 'running' && !moved.has(id) && draw() < preempts,
    );
    return Promise.resolve({
      starts: chosen,
      deferred: [],
      preemptions: stopped.map((r) => ({ attempt: r.attempt.id, reason: 'drawn' })),
      moves: moves.map(({ running, reason, to }) => ({ running, reason, ...(to === undefined ? {} : { to }) })),
      waits: snapshot.groups.flatMap((g) => {
        const count = g.count - (startsOf.get(g.id) ?? 0);
        return count === 0 ? [] : [{ group: g.id, count, why: 'capacity' as const, detail: 'drawn' }];
      }),
      earliest: snapshot.groups.flatMap(({ id, job, stage: { name: stage } }) => {
        if (startsOf.has(id) || draw() >= 0.1) return [];
        return [{ job, stage, notBeforeMs: plus(snapshot.nowMs, seconds(60 + 600 * draw())) }];
      }),
      solve: unsolved(0),
    });
  };
}

/** Starts in any order, on any instance that the user's constraints allow. Every stop of the plan is needed. */
const randomOrder =
  (draw: Uniform): Contract<'order'> =>
  ({ allotment, groups, hosts, stages, ...context }) => {
    const wanted = shuffled(draw, allotment.starts).flatMap(({ option, count }) => {
      const group = groups.get(option.group);
      return group === undefined ? [] : [{ group, option, count, runtimeS: seconds(600) }];
    });
    const taken = new Map<string, number>();
    const tasks = wanted.flatMap(({ group, count, runtimeS }) =>
      Array.from({ length: count }, (): TaskToPlace => {
        const nth = taken.get(group.id) ?? 0;
        taken.set(group.id, nth + 1);
        const inPool = (pool: Pool): boolean => brokenConstraint(group.stage.constraints, pool) === null;
        const task: TaskRef = { job: group.job, stage: group.stage.name, index: memberOf(group, nth) ?? 0 };
        const gang = group.stage.gang ? group.id : null;
        return { task, group: group.id, need: group.need, runtimeS, gang, inPool, allowed: (h) => inPool(h.pool) };
      }),
    );
    const placements = stages.place(tasks, hosts, { ...context });
    const placed = Map.groupBy(placements, (p) => p.group);
    const leftovers = wanted.flatMap((w) => {
      const count = w.count - (placed.get(w.group.id)?.length ?? 0);
      const inPool = (pool: Pool): boolean => brokenConstraint(w.group.stage.constraints, pool) === null;
      return count <= 0 ? [] : [{ ...w, count, inPool }];
    });
    const preempted = new Set(allotment.preemptions.map((p) => p.attempt));
    const asked = { ...context, placements, preempted, behind: new Map(), leftovers, unknownAs: () => null };
    return { ...stages.queue(asked), placements, reserved: [], needed: preempted };
  };

/** Any host that is allowed and has room, gangs whole or not at all. */
const randomPlace =
  (draw: Uniform, { places }: Drawn): Contract<'place'> =>
  (tasks, hosts) => {
    const free = new Map(hosts.map((h) => [h, h.free]));
    const placed: Placement[] = [];
    const units = Map.groupBy(tasks, (t) => t.gang ?? t);
    for (const unit of units.values()) {
      if (draw() >= places) continue;
      const before = new Map(free);
      const own: Placement[] = [];
      for (const t of unit) {
        const fitting = hosts.filter((h) => t.allowed(h) && fits(t.need, free.get(h) ?? h.free));
        const host = pick(draw, fitting);
        if (host === undefined) break;
        free.set(host, minusResources(free.get(host) ?? host.free, t.need));
        own.push({ task: t.task, group: t.group, on: host.on, reason: 'drawn' });
      }
      if (own.length === unit.length) placed.push(...own);
      else for (const [h, f] of before) free.set(h, f);
    }
    return placed;
  };

/** Any part of what has no room waits for a place or for first runs, and gangs never do. */
const randomQueue =
  (draw: Uniform, { waits }: Drawn): Contract<'queue'> =>
  ({ leftovers }) => {
    const bought: Leftover[] = [];
    const forSlotReuse = new Map<Leftover['group']['id'], number>();
    const untold = new Map<Leftover['group']['id'], number>();
    for (const of of leftovers) {
      const waiting = of.group.stage.gang || draw() >= waits ? 0 : 1 + Math.floor(draw() * of.count);
      if (waiting < of.count) bought.push({ ...of, count: of.count - waiting });
      const to = draw() < 0.5 ? forSlotReuse : untold;
      if (waiting > 0) to.set(of.group.id, waiting + (to.get(of.group.id) ?? 0));
    }
    return { leftovers: bought, forSlotReuse, untold };
  };

/** Copies of any task that may have one, with any target. */
const randomCopies =
  (draw: Uniform, { copies }: Drawn): Contract<'speculate'> =>
  ({ snapshot }) => {
    const copied = new Set<string>();
    return snapshot.running.flatMap((running) => {
      const { id, job, stage, index } = running.attempt;
      const task = `${job}/${stage}/${index}`;
      if (copied.has(task) || draw() >= copies || whyNotCopied(running, snapshot) !== null) return [];
      copied.add(task);
      const attempts = draw() < 0.8 ? 2 : 2 + liveBeside(snapshot, running).length;
      const to = draw() < 0.5 ? undefined : randomTarget(draw, running, snapshot, snapshot);
      return [{ of: id, reason: 'drawn', attempts, ...(to === undefined ? {} : { to }) }];
    });
  };

/**
 * Buys for any part of the leftovers, gangs whole, within the vCPU limit, and ahead for what waits for later; gives any
 * idle instance back.
 */
const randomScale =
  (draw: Uniform, { buys, releases }: Drawn): Contract<'scale'> =>
  ({ snapshot, leftovers, later, offers, used }) => {
    const pools = new Map(snapshot.pools.filter((v) => v.open && v.quote !== null).map((v) => [v.pool.id, v.pool]));
    let vcpus = snapshot.limits.vcpus;
    for (const { pool } of snapshot.instances.values()) vcpus -= vcpusOf(pool);
    const bought = new Map<string, Purchase>();
    for (const { group, option, count: wanted } of leftovers) {
      if (draw() >= buys) continue;
      const offer = pick(draw, [option.offer, ...(offers.get(group.id)?.offers ?? [])]);
      const pool = offer === undefined ? undefined : pools.get(offer.pool);
      if (offer === undefined || pool === undefined || brokenConstraint(group.stage.constraints, pool) !== null)
        continue;
      const count = group.stage.gang ? wanted : 1;
      if (count * vcpusOf(pool) > vcpus || !fits(group.need, pool.type.capacity)) continue;
      vcpus -= count * vcpusOf(pool);
      const key = `${offer.pool} ${JSON.stringify(offer.bid)}`;
      const { pool: id, bid } = offer;
      bought.set(key, { pool: id, bid, count: count + (bought.get(key)?.count ?? 0), reason: 'drawn' });
    }
    const ahead = later().flatMap(({ group, option: { offer } }): Purchase[] => {
      const pool = pools.get(offer.pool);
      if (group.stage.gang || pool === undefined || vcpusOf(pool) > vcpus || draw() >= buys) return [];
      vcpus -= vcpusOf(pool);
      return [{ pool: pool.id, bid: offer.bid, count: 1, reason: 'drawn ahead', serves: [group.id] }];
    });
    const idle = instanceParts(snapshot).idle.filter(
      ({ instance: { id, state } }) =>
        (state === 'ready' || state === 'starting') && !used.has(id) && draw() < releases,
    );
    return {
      purchases: [...bought.values(), ...ahead],
      releases: idle.map(({ instance }) => ({ instance: instance.id, reason: 'drawn' })),
    };
  };

/** Instances that moves named. */
export const namedInstances = (targets: Targets): ReadonlyMap<AttemptId, InstanceId> =>
  new Map(
    [...targets].flatMap(([id, to]) =>
      to !== null && to !== 'spot' && to.instance !== undefined ? [[id, to.instance] as const] : [],
    ),
  );
