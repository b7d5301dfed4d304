/** A selection of the problem as the plan stage's answer, with reasons. */
import type { AttemptId } from '../../kernel/ids.ts';
import type { Allotment, SolveReport } from '../../domain/plan.ts';
import { tasksBy, type Selection } from './fill.ts';
import { slotsUntilFree } from './preempt.ts';
import { usdText, type Choice, type Problem } from './problem.ts';
import type { PlannedOption } from './options.ts';
import { waitsOf } from './waits.ts';

type Start = Allotment['starts'][number];

export function allotmentOf(problem: Problem, selection: Selection, solve: SolveReport): Allotment {
  const starts: Start[] = [];
  const deferred: Start[] = [];
  const moving = new Set(problem.moves.map((move) => move.attempt));
  // What waits for the place of stopped work is placed on it now, or nobody would stop that work.
  const stops = selection.kills.some((units) => units > 0);
  const soon = stops ? slotsUntilFree(problem.input.config) : 0;
  for (const { group, choices } of problem.groups) {
    // Later starts may be parts of tasks (milp.ts): what they round to together is no more than the tasks that wait.
    let [exact, given] = [0, 0];
    for (const [planned, members] of Map.groupBy(choices, (index) => problem.choices[index]?.planned)) {
      exact += members.reduce((sum, index) => sum + tasksBy(selection, index), 0);
      const count = Math.max(0, Math.min(group.count, Math.round(exact)) - given);
      given += count;
      const choice = problem.choices[members[0] ?? -1];
      if (planned === undefined || choice === undefined || count < 1) continue;
      const start = { option: planned.option, count, reason: reasonOf(problem, choice) };
      (planned.option.slot <= soon ? starts : deferred).push(start);
    }
  }
  return {
    starts,
    deferred,
    preemptions: preemptionsOf(problem, selection).filter((p) => !moving.has(p.attempt)),
    moves: problem.moves.map(({ running, reason, to }) => ({ running, reason, ...(to === undefined ? {} : { to }) })),
    waits: waitsOf(problem, selection),
    solve,
  };
}

function reasonOf(problem: Problem, choice: Choice): string {
  const { option, pool } = choice.planned;
  const { offer } = option;
  const risk =
    pool.option === 'spot' ? `, interrupted with probability ${percent(offer.pInterrupted)}` : ', not interruptible';
  const late = problem.groups[choice.group]?.group.class === 'deadline' ? `, late with ${percent(offer.pLate)}` : '';
  const costs = `a task is worth ${usdText(option.worthUsd)} and costs ${usdText(option.costUsd)} on ${offer.pool}`;
  return `${costs}${risk}${late}${weighedText(choice.planned)}`;
}

/** Dollars of the deadline's answer: what spot risks, and what on-demand would cost. */
function weighedText({ answer, option: { offer } }: PlannedOption): string {
  if (answer === undefined || answer.choice === null || answer.take !== 'spot') return '';
  const { spotUsd, onDemandUsd } = answer.choice;
  const riskUsd = answer.spot?.get(offer);
  return riskUsd === undefined
    ? `; to the end spot is expected to cost ${usdText(spotUsd)} and on-demand ${usdText(onDemandUsd)}, lateness included`
    : `; it risks ${usdText(riskUsd)} of lateness, and on-demand would cost ${usdText(onDemandUsd)}, its own risk included`;
}

/**
 * Attempts of preemptions. Whole units name theirs; of alike attempts the first ones are taken that no whole unit
 * stops.
 */
function preemptionsOf(problem: Problem, selection: Selection): Allotment['preemptions'] {
  const stopped = new Map<AttemptId, string>();
  const chosen = problem.kills.map((kill, i) => ({ kill, units: Math.round(selection.kills[i] ?? 0) }));
  for (const { kill, units } of chosen) {
    if (!kill.whole || units < 1) continue;
    for (const attempt of kill.attempts) stopped.set(attempt, reason(kill.costUsd / Math.max(1, kill.attempts.length)));
  }
  for (const { kill, units } of chosen) {
    if (kill.whole) continue;
    const free = kill.attempts.filter((attempt) => !stopped.has(attempt)).slice(0, units);
    for (const attempt of free) stopped.set(attempt, reason(kill.costUsd));
  }
  return [...stopped].sort(([a], [b]) => (a < b ? -1 : 1)).map(([attempt, why]) => ({ attempt, reason: why }));
}

const reason = (costUsd: number): string =>
  `stopping it costs about ${usdText(costUsd)} in worth and work done again, less than what starts in its place brings`;

const percent = (p: number): string => `${(100 * p).toFixed(1)} %`;
