import type { AttemptView, CostReport, FailureView, JobCostView, JobView } from '../../api/schemas.ts';
import type { ErrorCode } from '../../kernel/errors.ts';
import { dollars, duration, percent, plural } from '../format.ts';
import type { Output } from '../output.ts';
import { failureLines } from './failures.ts';
import { costText, counts, deadlineText, remarkText, stateText } from './job-views.ts';
import { text } from './text-table.ts';

export interface JobResult {
  readonly job: JobView;
  readonly cost: JobCostView;
  readonly attempts: readonly AttemptView[];
  /** Tasks whose last attempt failed, one per reason. */
  readonly failures: readonly FailureView[];
}
export interface RunResult {
  readonly jobs: readonly JobResult[];
  /** Costs of this run: bills of instances with start-up and idle time, never less than the jobs' own costs. */
  readonly spent: CostReport['total'];
  /** Instances of this run taken by the market. */
  readonly instancesLost: number;
  /** Refunded costs of instances taken within their first hour; not in `spent`. */
  readonly refundedUsd: number;
  /** Duration on the market's clock. */
  readonly elapsedS: number;
}

/** Figures of a run, also as `--json`. */
export interface RunFigures {
  /** Attempts ended by the market. */
  readonly interruptions: number;
  readonly instancesLost: number;
  /** Tasks that resumed or restarted elsewhere after an interruption. */
  readonly tasksMoved: number;
  readonly preemptions: number;
  /** Attempts ended by a plan to go on elsewhere. */
  readonly moves: number;
  readonly failures: number;
  /** Copies: further attempts of running tasks. */
  readonly copies: number;
  readonly costUsd: number;
  readonly onDemandUsd: number;
  /** Saved fraction of the on-demand cost; null if nothing ran. */
  readonly saved: number | null;
  readonly refundedUsd: number;
  /** The same fraction without refunds. */
  readonly savedWithoutRefunds: number | null;
  readonly wastedUsd: number;
  readonly speculativeUsd: number;
  readonly movedUsd: number;
  readonly idleUsd: number;
  /** Running time repeated because no checkpoint held it. */
  readonly redoneS: number;
}

export function figures({ jobs, spent, instancesLost, refundedUsd }: RunResult): RunFigures {
  const attempts = jobs.flatMap((j) => j.attempts);
  const ended = (...outcomes: readonly AttemptView['outcome'][]): AttemptView[] =>
    attempts.filter((a) => outcomes.includes(a.outcome));
  return {
    interruptions: ended('interrupted').length,
    instancesLost,
    tasksMoved: jobs.reduce((sum, j) => sum + tasksMoved(j.attempts), 0),
    preemptions: ended('preempted').length,
    moves: ended('moved').length,
    failures: ended('failed', 'timed-out').length,
    copies: attempts.filter((a) => a.role === 'copy').length,
    costUsd: spent.totalUsd,
    onDemandUsd: spent.onDemandUsd,
    saved: spent.onDemandUsd > 0 ? 1 - spent.totalUsd / spent.onDemandUsd : null,
    refundedUsd,
    savedWithoutRefunds: spent.onDemandUsd > 0 ? 1 - (spent.totalUsd + refundedUsd) / spent.onDemandUsd : null,
    wastedUsd: spent.wastedUsd,
    speculativeUsd: spent.speculativeUsd,
    movedUsd: spent.movedUsd,
    idleUsd: spent.idleUsd,
    redoneS: attempts.reduce((sum, a) => sum + lostS(a), 0),
  };
}

const tasksMoved = (attempts: readonly AttemptView[]): number =>
  new Set(attempts.filter((a) => a.outcome === 'interrupted').map((a) => `${a.stage}/${a.index}`)).size;

/** Work past the last checkpoint that must be repeated, without the time of a move. */
function lostS({ outcome, startedAt, endedAt, leavingAt, keptS }: AttemptView): number {
  const isDone = outcome === null || outcome === 'succeeded' || outcome === 'superseded';
  if (isDone || startedAt === null || endedAt === null) return 0;
  return Math.max((Date.parse(leavingAt ?? endedAt) - Date.parse(startedAt)) / 1000 - keptS, 0);
}

/** Exit code of a job by the table of errors; null for success on time or without a deadline. */
export function verdict({
  state,
  onTime,
  endedLate,
}: Pick<JobView, 'state' | 'onTime' | 'endedLate'>): ErrorCode | null {
  switch (state) {
    case 'failed':
      return endedLate ? 'job.late' : 'job.failed';
    case 'cancelled':
      return 'job.cancelled';
    case 'held':
      return 'job.held';
    case 'succeeded':
      return onTime === false ? 'job.late' : null;
    case 'pending':
    case 'running':
      return null;
  }
}

/** Closing words of `ebb run`. */
export function summary(output: Pick<Output, 'colors' | 'columns'>, result: RunResult): string {
  const { colors } = output;
  const f = figures(result);
  const label = (name: string): string => colors.dim(name.padEnd(15));
  const lines = result.jobs.flatMap((j) => jobSummaryLines(output, j, result.jobs.length === 1));
  const survived = [
    `${plural(f.instancesLost, 'instance')} lost to the market`,
    `${plural(f.tasksMoved, 'task')} went on elsewhere`,
  ];
  if (f.preemptions > 0) survived.push(plural(f.preemptions, 'preemption'));
  if (f.moves > 0) survived.push(`${plural(f.moves, 'move')} from a running instance to another`);
  if (f.failures > 0) survived.push(plural(f.failures, 'failed attempt'));
  if (f.copies > 0) survived.push(`${plural(f.copies, 'attempt')} as a copy`);
  lines.push(
    `${label('took')}${duration(result.elapsedS)} of market time`,
    `${label('cost')}${colors.bold(dollars(f.costUsd))} (${dollars(f.idleUsd)} of it starting up and idle)${refundText(f)}`,
    `${label('on on-demand')}${dollars(f.onDemandUsd)}${f.saved === null ? '' : savedText(f.saved)}${withoutRefunds(f)}`,
    `${label('survived')}${survived.join(', ')}`,
    `${label('wasted work')}${dollars(f.wastedUsd)}, ${duration(f.redoneS)} done again`,
  );
  if (f.speculativeUsd > 0)
    lines.push(`${label('speculative')}${dollars(f.speculativeUsd)} for attempts beside the first to succeed`);
  if (f.movedUsd > 0) lines.push(`${label('moved')}${dollars(f.movedUsd)} for moves, without progress`);
  return lines.join('\n');
}

const refundText = ({ refundedUsd }: RunFigures): string =>
  refundedUsd > 0 ? `, after refunds of ${dollars(refundedUsd)} for instances taken within their first hour` : '';

const withoutRefunds = ({ refundedUsd, savedWithoutRefunds: saved }: RunFigures): string =>
  refundedUsd > 0 && saved !== null ? ` (without refunds ${percent(saved)})` : '';

const savedText = (saved: number): string =>
  saved >= 0 ? `: ${percent(saved)} saved` : `: ${percent(-saved)} more was paid`;

function jobSummaryLines(
  output: Pick<Output, 'colors' | 'columns'>,
  { job, cost, failures }: JobResult,
  only: boolean,
): string[] {
  const { colors } = output;
  const deadline = job.deadlineAt === null ? '' : `, deadline ${deadlineText(job, job.asOf)}`;
  const mark = verdict(job) === null ? colors.green('✓') : colors.red('✗');
  const money = only ? '' : `, ${costText(cost)}`;
  const reason = job.stateReason === null ? [] : [`  ${text(job.stateReason)}`];
  return [
    `${mark} ${colors.bold(text(job.name))} ${stateText(output, job.state)}: ${counts(job.tasks).replace(/^\d+\/\d+/, '$& tasks')}${deadline}${money}`,
    ...reason,
    ...failures.flatMap((f) => failureLines(output, f)).map((line) => `  ${line}`),
    ...(job.remarks ?? []).map((r) => `  ${colors.yellow(remarkText(r))}`),
  ];
}
