import type { JobCostView, JobSummary, JobView, TaskCounts, TaskView } from '../../api/schemas.ts';
import { bar, dollars, duration, instant, plural, shorten } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text } from './table.ts';

type Paint = Pick<Output, 'colors'>;

const STATE_COLOR = {
  pending: 'yellow',
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'magenta',
} as const satisfies Record<JobSummary['state'], string>;

export const stateText = ({ colors }: Paint, state: JobSummary['state']): string => colors[STATE_COLOR[state]](state);

/** `12/40`, and what is under way or went wrong. */
export function counts(tasks: TaskCounts): string {
  const parts = [`${tasks.succeeded}/${tasks.total}`];
  if (tasks.running > 0) parts.push(`${tasks.running} running`);
  if (tasks.waiting > 0) parts.push(`${tasks.waiting} waiting again`);
  if (tasks.failed > 0) parts.push(`${tasks.failed} failed`);
  if (tasks.cancelled > 0) parts.push(`${tasks.cancelled} cancelled`);
  return parts.join(', ');
}

/** How the deadline stands at `asOf`: met or missed by how much, or what is left. */
export function deadlineText(job: JobSummary, asOf: string): string {
  if (job.deadlineAt === null) return '-';
  const deadline = Date.parse(job.deadlineAt);
  if (job.finishedAt !== null) {
    const marginS = (deadline - Date.parse(job.finishedAt)) / 1000;
    if (job.state !== 'succeeded') return `${instant(job.deadlineAt)} (not finished)`;
    return marginS >= 0 ? `met, ${duration(marginS)} early` : `missed by ${duration(-marginS)}`;
  }
  const leftS = (deadline - Date.parse(asOf)) / 1000;
  return leftS >= 0 ? `in ${duration(leftS)}` : `passed ${duration(-leftS)} ago`;
}

export const jobsTable = (output: Paint, jobs: readonly JobSummary[], asOf: string): string =>
  table(
    output,
    [
      { title: 'JOB', cell: (j) => j.id },
      { title: 'NAME', cell: (j) => shorten(text(j.name), 32) },
      { title: 'OWNER', cell: (j) => shorten(text(j.owner), 16) },
      { title: 'STATE', cell: (j) => stateText(output, j.state) },
      { title: 'TASKS', cell: (j) => counts(j.tasks) },
      { title: 'DEADLINE', cell: (j) => deadlineText(j, asOf) },
      { title: 'SUBMITTED (UTC)', cell: (j) => instant(j.submittedAt) },
    ],
    jobs,
    'no jobs',
  );

export function jobStatus(output: Paint, job: JobView, cost: JobCostView): string {
  const { colors } = output;
  const label = (name: string): string => colors.dim(name.padEnd(10));
  const lines = [
    `${colors.bold(text(job.name))}  ${job.id}  ${stateText(output, job.state)}`,
    ...(job.stateReason === null ? [] : [label('reason') + text(job.stateReason)]),
    label('owner') + text(job.owner),
    label('class') + job.class,
    label('deadline') + deadlineText(job, job.asOf),
    label('submitted') + instant(job.submittedAt),
    label('started') + instant(job.startedAt),
    label('finished') + instant(job.finishedAt),
    label('cost') + costText(cost),
    ...(job.headline === null || job.finishedAt !== null ? [] : [label('now') + text(job.headline)]),
    ...job.admission.notes.map((note) => label('note') + text(note)),
    '',
    table(
      output,
      [
        { title: 'STAGE', cell: (s) => text(s.name) },
        { title: '', cell: (s) => stageBar(s.tasks, 20) },
        { title: 'TASKS', cell: (s) => counts(s.tasks) },
        { title: 'NEEDS', cell: (s) => needs(s.resources) },
        { title: 'AFTER', cell: (s) => (s.dependsOn.length === 0 ? '-' : s.dependsOn.map(text).join(', ')) },
      ],
      job.stages,
      'no stages',
    ),
  ];
  return lines.join('\n');
}

export const stageBar = (tasks: TaskCounts, width: number): string =>
  bar({ done: tasks.succeeded, active: tasks.running, total: tasks.total }, width);

export function costText(cost: JobCostView): string {
  const { totalUsd, wastedUsd, onDemandUsd } = cost.total;
  const parts = [`${dollars(totalUsd)}${cost.settled ? '' : ' so far'}`];
  if (onDemandUsd > 0) parts.push(`${dollars(onDemandUsd)} on on-demand`);
  if (wastedUsd > 0) parts.push(`${dollars(wastedUsd)} of it for work that was lost`);
  if (cost.maxCostUsd !== null) parts.push(`at most ${dollars(cost.maxCostUsd)}`);
  return parts.join(', ');
}

const needs = (r: JobView['stages'][number]['resources']): string =>
  [
    `${r.cpus} vCPU`,
    `${Math.round(r.memoryMiB)} MiB`,
    ...(r.gpus > 0 ? [plural(r.gpus, 'GPU')] : []),
    ...(r.diskMiB > 0 ? [`${Math.round(r.diskMiB)} MiB disk`] : []),
  ].join(', ');

export const tasksTable = (output: Paint, tasks: readonly TaskView[]): string =>
  table(
    output,
    [
      { title: 'TASK', cell: (t) => `${text(t.stage)}[${t.index}]` },
      { title: 'STATE', cell: (t) => t.state },
      { title: 'ATTEMPTS', cell: (t) => String(t.attempts), right: true },
      { title: 'FAILURES', cell: (t) => String(t.failures), right: true },
      { title: 'KEPT', cell: (t) => duration(t.keptS), right: true },
    ],
    tasks,
    'no task has been tried yet',
  );
