/** Reads of plans from users' policies. Each throws `Unusable` (read.ts). */
import type { AttemptId, GroupId, JobId } from '../../kernel/ids.ts';
import { WAIT_REASONS, type Allotment, type EarliestStart, type SolveReport } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { PlanInput } from '../contracts.ts';
import { poolsById, readOption, type Given } from './offers.ts';
import {
  amount,
  answerWith,
  fields,
  figure,
  instant,
  list,
  oneOf,
  orNull,
  refuse,
  shown,
  text,
  whole,
} from './read.ts';
import {
  byAttempt,
  expectWithin,
  isSameSide,
  groupNamed,
  groupsById,
  once,
  reasonOf,
  sideOf,
  tasksIn,
} from './records.ts';

type Groups = ReadonlyMap<GroupId, PendingGroup>;

export function plan(answer: unknown, { snapshot, offers, moves: proposed = [] }: PlanInput): Allotment {
  const of = answerWith(answer, ['starts', 'deferred', 'preemptions', 'moves', 'waits', 'solve']);
  const groups = groupsById(snapshot);
  const given: Given = { pools: poolsById(snapshot), offers };
  return {
    starts: startsOf(of['starts'], groups, given),
    ...(of['earliest'] !== undefined && { earliest: earliestOf(of['earliest'], snapshot) }),
    deferred: startsOf(of['deferred'], groups, given),
    preemptions: preemptionsOf(of['preemptions'], snapshot),
    moves: keptOf(of['moves'], proposed),
    waits: waitsOf(of['waits'], groups),
    solve: solveOf(of['solve']),
  };
}

function startsOf(answer: unknown, groups: Groups, given: Given): Allotment['starts'] {
  const starts = list(answer, { what: 'a list of starts', most: tasksIn(groups.values()) }).map((one) => {
    const of = fields(one, 'a start');
    const { option } = of;
    const group = groupNamed(fields(option, 'the option of a start')['group'], groups);
    const { count } = of;
    if (!Number.isSafeInteger(count) || (count as number) < 1)
      return refuse(`it starts ${shown(count)} tasks of ${group.id}`);
    const role = of['role'] === undefined ? undefined : oneOf(of['role'], ROLES, `role of the start of ${group.id}`);
    return {
      option: readOption(option, group, given),
      count: count as number,
      reason: reasonOf(of, `the start of ${group.id}`),
      ...(role !== undefined && { role }),
    };
  });
  expectWithin(
    starts.map((s) => [s.option.group, s.count]),
    groups,
    'it starts',
  );
  return starts;
}

/** A copy is asked for in the speculate stage. */
const ROLES = ['original', 'pilot'] as const;

function earliestOf(answer: unknown, { jobs }: PlanInput['snapshot']): readonly EarliestStart[] {
  const tasks = [...jobs.values()].flatMap((job) => job.spec.stages).reduce((sum, s) => sum + s.tasks + 1, 0);
  return list(answer, { what: 'earliest starts', most: tasks }).map((one): EarliestStart => {
    const { job, stage, index, notBeforeMs } = fields(one, 'an earliest start');
    const of = jobs.get(job as JobId)?.spec.stages.find((s) => s.name === stage);
    if (of === undefined) return refuse(`it says when ${shown(job)}/${shown(stage)} may start, which does not exist`);
    const isTask = Number.isSafeInteger(index) && (index as number) >= 0 && (index as number) < of.tasks;
    if (index !== undefined && !isTask)
      return refuse(`it says when task ${shown(index)} of ${shown(job)}/${of.name} may start, which does not exist`);
    return {
      job: job as JobId,
      stage: of.name,
      ...(index !== undefined && { index: index as number }),
      notBeforeMs: orNull(notBeforeMs, (at) => instant(at, 'an earliest start')),
    };
  });
}

function preemptionsOf(answer: unknown, { running }: PlanInput['snapshot']): Allotment['preemptions'] {
  const known = byAttempt(running);
  const stops = list(answer, { what: 'preemptions', most: known.size }).map((one) => {
    const of = fields(one, 'a pre-emption');
    const r = known.get(of['attempt'] as AttemptId);
    if (r === undefined) return refuse(`it stops ${shown(of['attempt'])}, which does not run`);
    return { attempt: r.attempt.id, reason: reasonOf(of, `the pre-emption of ${r.attempt.id}`) };
  });
  return once(stops, (s) => s.attempt, 'it stops');
}

function keptOf(answer: unknown, proposed: NonNullable<PlanInput['moves']>): Allotment['moves'] {
  const known = new Map<unknown, (typeof proposed)[number]>(proposed.map((m) => [m.running, m]));
  const kept = list(answer, { what: 'moves', most: proposed.length }).map((one) => {
    const of = fields(one, 'a move');
    const move = known.get(of['running']);
    if (move === undefined) return refuse('it moves what was not proposed (hand back the very record of what runs)');
    const { running, attempt } = move;
    const { to } = move;
    if (!isSameSide(sideOf(of).to, to)) return refuse(`it moves ${attempt} to another side than was proposed`);
    return { running, reason: reasonOf(of, `the move of ${attempt}`), ...(to !== undefined && { to }) };
  });
  return once(kept, (m) => m.running.attempt.id, 'it moves');
}

function waitsOf(answer: unknown, groups: Groups): Allotment['waits'] {
  const waits = list(answer, { what: 'waits', most: tasksIn(groups.values()) }).map((one) => {
    const of = fields(one, 'a wait');
    const group = groupNamed(of['group'], groups);
    const at = `the wait of ${group.id}`;
    const { quota } = of;
    return {
      group: group.id,
      count: whole(of['count'], `count of ${at}`, 1),
      why: oneOf(of['why'], WAIT_REASONS, `why of ${at}`),
      detail: text(of['detail'], `detail of ${at}`),
      ...(quota !== undefined && { quota: text(quota, `quota of ${at}`) }),
    };
  });
  expectWithin(
    waits.map((w) => [w.group, w.count]),
    groups,
    'it lets wait',
  );
  return waits;
}

function solveOf(answer: unknown): SolveReport {
  const of = fields(answer, 'the report of the search (solve)');
  const figureOf = (name: keyof SolveReport): number => figure(of[name], `solve.${name}`);
  const figureOrNull = (name: keyof SolveReport): number | null => orNull(of[name], () => figureOf(name));
  return {
    used: oneOf(of['used'], ['milp', 'greedy'] as const, 'solve.used'),
    status: oneOf(of['status'], STATUSES, 'solve.status'),
    objective: figureOf('objective'),
    greedyObjective: figureOf('greedyObjective'),
    bound: figureOrNull('bound'),
    boundKind: orNull(of['boundKind'], (kind) => oneOf(kind, ['lagrangian', 'mip'] as const, 'solve.boundKind')),
    gap: figureOrNull('gap'),
    gapOfCost: figureOrNull('gapOfCost'),
    variables: whole(of['variables'], 'solve.variables'),
    constraints: whole(of['constraints'], 'solve.constraints'),
    elapsedMs: amount(of['elapsedMs'], 'solve.elapsedMs'),
  };
}

const STATUSES = ['optimal', 'feasible', 'no-solution', 'infeasible', 'failed', 'not-needed'] as const;
