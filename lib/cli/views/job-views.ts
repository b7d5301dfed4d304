import { callerText } from '../../domain/caller.ts';
import { useText } from '../../domain/disk-budget.ts';
import { sizeText } from '../../domain/job-file/amounts.ts';
import type {
  HealthView,
  CallerView,
  JobCostView,
  JobSummary,
  JobView,
  RemarkView,
  TaskCounts,
  TaskView,
} from '../../api/schemas.ts';
import { bar, dollars, duration, instant, plural, shorten } from '../format.ts';
import type { Output } from '../output.ts';
import { table, text } from './text-table.ts';

type Paint = Pick<Output, 'colors' | 'columns'>;

const STATE_COLOR = {
  pending: 'yellow',
  running: 'cyan',
  held: 'red',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'magenta',
} as const satisfies Record<JobSummary['state'], string>;

export const stateText = ({ colors }: Paint, state: JobSummary['state']): string => colors[STATE_COLOR[state]](state);

/** `12/40`, with running and failed tasks. */
export function counts(tasks: TaskCounts): string {
  const parts = [`${tasks.succeeded}/${tasks.total}`];
  if (tasks.running > 0) parts.push(`${tasks.running} running`);
  if (tasks.waiting > 0) parts.push(`${tasks.waiting} waiting again`);
  if (tasks.failed > 0) parts.push(`${tasks.failed} failed`);
  if (tasks.cancelled > 0) parts.push(`${tasks.cancelled} cancelled`);
  return parts.join(', ');
}

/** Deadline at `asOf`: met or missed, by how much, or the time left. */
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
      { title: 'NAME', cell: (j) => shorten(text(j.name), 32), wrap: 12 },
      { title: 'OWNER', cell: (j) => shorten(text(j.owner), 16), wrap: 8, optional: 1 },
      { title: 'STATE', cell: (j) => stateText(output, j.state) },
      { title: 'TASKS', cell: (j) => counts(j.tasks), wrap: 10 },
      { title: 'DEADLINE', cell: (j) => deadlineText(j, asOf), wrap: 10 },
      { title: 'SUBMITTED (UTC)', cell: (j) => instant(j.submittedAt), wrap: 10, optional: 2 },
    ],
    jobs,
    'no jobs',
  );

/** `disk`: null if nothing is known of one. */
export function jobStatus(output: Paint, job: JobView, cost: JobCostView, disk: HealthView['disk'] = null): string {
  const { colors } = output;
  const label = (name: string): string => colors.dim(name.padEnd(10));
  const lines = [
    `${colors.bold(text(job.name))}  ${job.id}  ${stateText(output, job.state)}`,
    ...(job.stateReason === null ? [] : [label('reason') + text(job.stateReason)]),
    ...(job.headline === null || job.finishedAt !== null || job.state === 'held'
      ? []
      : [label('now') + text(job.headline)]),
    label('owner') + text(job.owner),
    label('class') + job.class,
    label('deadline') + deadlineText(job, job.asOf),
    label('submitted') + instant(job.submittedAt) + byText(job.submittedBy),
    label('started') + instant(job.startedAt),
    label('finished') + instant(job.finishedAt),
    ...(job.cancelledBy === null ? [] : [`${label('cancelled')}asked${byText(job.cancelledBy)}`]),
    label('cost') + costText(cost),
    ...(disk === null ? [] : [label('disk') + diskUsed(disk)]),
    ...job.admission.notes.map((note) => label('note') + text(note)),
    ...(job.remarks ?? []).map((r) => label('remark') + remarkText(r)),
    '',
    table(
      output,
      [
        { title: 'STAGE', cell: (s) => text(s.name), wrap: 12 },
        { title: '', cell: (s) => stageBar(s.tasks, 20), optional: 1 },
        { title: 'TASKS', cell: (s) => counts(s.tasks), wrap: 10 },
        { title: 'NEEDS', cell: (s) => needs(s.resources), wrap: 12 },
        { title: 'AFTER', cell: (s) => (s.dependsOn.length === 0 ? '-' : s.dependsOn.map(text).join(', ')), wrap: 12 },
      ],
      job.stages,
      'no stages',
    ),
  ];
  return lines.join('\n');
}

/** `4.1 GB of 5 GB (82 %), 12 GB free`. */
const diskUsed = (disk: HealthView['disk'] & {}): string => `${useText(disk)}, ${sizeText(disk.freeBytes)} free`;

/** ` by ana (uid:1000), request 1f...`; empty for an unknown caller. */
export const byText = (caller: CallerView | null): string =>
  caller === null
    ? ''
    : ` by ${text(callerText({ id: caller.id, ...(caller.name === null ? {} : { name: caller.name }) }))}, request ${text(caller.requestId)}`;

/** `frames: no file matches *.png among its outputs (3 tasks)` */
export const remarkText = ({ stage, text: said, tasks }: RemarkView): string =>
  `${text(stage)}: ${text(said)} (${plural(tasks, 'task')})`;

export const stageBar = (tasks: TaskCounts, width: number): string =>
  bar({ done: tasks.succeeded, active: tasks.running, total: tasks.total }, width);

export function costText(cost: JobCostView): string {
  const { totalUsd, wastedUsd, speculativeUsd, movedUsd, onDemandUsd } = cost.total;
  const parts = [`${dollars(totalUsd)}${cost.settled ? '' : ' so far'}`];
  if (onDemandUsd > 0) parts.push(`${dollars(onDemandUsd)} on on-demand`);
  if (wastedUsd > 0) parts.push(`${dollars(wastedUsd)} of it for work that was lost`);
  if (speculativeUsd > 0) parts.push(`${dollars(speculativeUsd)} of it for attempts beside the first to succeed`);
  if (movedUsd > 0) parts.push(`${dollars(movedUsd)} of it for moves`);
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
      { title: 'TASK', cell: (t) => `${text(t.stage)}[${t.index}]`, wrap: 20 },
      { title: 'STATE', cell: (t) => t.state },
      { title: 'ATTEMPTS', cell: (t) => String(t.attempts), right: true },
      { title: 'FAILURES', cell: (t) => String(t.failures), right: true },
      { title: 'KEPT', cell: (t) => duration(t.keptS), right: true },
    ],
    tasks,
    'no task has been tried yet',
  );
