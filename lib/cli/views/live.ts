import type { CostReport, EventView, HealthView, InstanceView, JobView } from '../../api/schemas.ts';
import { useText } from '../../domain/disk-budget.ts';
import { sizeText } from '../../domain/job-file/amounts.ts';
import { dollars, duration, instant, plural, rate, shorten } from '../format.ts';
import type { Output } from '../output.ts';
import { lifeText } from './inventory-tables.ts';
import { eventLines, type JobNames } from './event-lines.ts';
import { counts, deadlineText, stageBar, stateText } from './job-views.ts';
import { text } from './text-table.ts';

/** Content of one frame. */
export interface Frame {
  readonly health: HealthView;
  readonly jobs: readonly JobView[];
  readonly instances: readonly InstanceView[];
  /** USD per hour now, by pool. */
  readonly prices: ReadonlyMap<string, number>;
  readonly spent: CostReport['total'];
  /** Sum of refunds, by which spending fell. */
  readonly refundedUsd?: number;
  readonly recent: readonly EventView[];
  /** Names, if events are of several jobs. */
  readonly names?: JobNames;
}

const BAR_WIDTH = 24;
const MAX_JOBS = 12;
const MAX_INSTANCES = 8;
const MAX_EVENTS = 5;
/** Most jobs with a bar per stage; with more, each job has one line. */
const DETAILED_JOBS = 2;

type Paint = Pick<Output, 'colors' | 'columns'>;

/** Live display: tasks and instances, costs, time to the deadline, last events. */
export function renderFrame(output: Paint, frame: Frame): string {
  const { colors } = output;
  const { market, now, preset, disk } = frame.health;
  const head = `${colors.bold('Ebbtide')} ${colors.dim(`${instant(now)} on market ${text(market.name)}, ${market.speed} times as fast, policy ${preset}`)}`;
  const jobs = frame.jobs.slice(0, MAX_JOBS).flatMap((job) => jobLines(output, job, frame));
  const hidden = frame.jobs.length - MAX_JOBS;
  const lines = [
    head,
    ...(disk?.level === 'low' || disk?.level === 'used-up'
      ? [colors.yellow(`disk: ${useText(disk)}, ${sizeText(disk.freeBytes)} free`)]
      : []),
    '',
    ...jobs,
    ...(hidden > 0 ? [colors.dim(`  and ${plural(hidden, 'more job', 'more jobs')}`)] : []),
    '',
    ...instanceLines(output, frame),
    '',
    ...eventLines(frame.recent, frame.names ?? new Map())
      .slice(-MAX_EVENTS)
      .map((line) => colors.dim(shorten(line, output.columns - 1))),
  ];
  return lines.join('\n');
}

function jobLines(output: Paint, job: JobView, frame: Frame): string[] {
  const { colors } = output;
  const title = `${colors.bold(shorten(text(job.name), 40))} ${stateText(output, job.state)}`;
  const deadline = job.deadlineAt === null ? '' : `  deadline ${deadlineText(job, frame.health.now)}`;
  if (frame.jobs.length > DETAILED_JOBS) return [`${stageBar(job.tasks, 12)} ${title} ${counts(job.tasks)}${deadline}`];
  const width = Math.max(...job.stages.map((s) => s.name.length));
  const stages = job.stages.map(
    (s) => `  ${text(s.name).padEnd(width)} ${stageBar(s.tasks, BAR_WIDTH)} ${counts(s.tasks)}`,
  );
  const { headline } = job;
  const waits = headline !== null && job.tasks.running === 0 && job.finishedAt === null;
  const why = waits ? [colors.dim(`  ${shorten(text(headline), output.columns - 3)}`)] : [];
  return [`${title}${deadline}`, ...stages, ...why];
}

/** `$0.0123, $0.0072 refunded` */
const spentText = ({ spent, refundedUsd = 0 }: Frame, shown = (text: string): string => text): string =>
  `${shown(dollars(spent.totalUsd))}${refundedUsd > 0 ? `, ${dollars(refundedUsd)} refunded` : ''}`;

function instanceLines(output: Paint, frame: Frame): string[] {
  const { instances, prices } = frame;
  const { colors } = output;
  const title = `${colors.bold(plural(instances.length, 'instance'))}, spent ${spentText(frame, colors.bold)}`;
  const rows = instances.slice(0, MAX_INSTANCES).map((i) => {
    const price = prices.get(i.pool);
    const runs = i.running.map((r) => `${text(r.stage)}[${r.index}]`).join(' ');
    const life = i.state === 'warned' ? colors.yellow('warned') : lifeText(i);
    return `  ${i.id} ${i.pool} ${price === undefined ? '' : `${rate(price)} `}${life} ${colors.dim(shorten(runs, 40))}`;
  });
  const hidden = instances.length - MAX_INSTANCES;
  return [title, ...rows, ...(hidden > 0 ? [colors.dim(`  and ${hidden} more`)] : [])];
}

/**
 * True for events that are printed. In large jobs events of single tasks are left out, those of jobs and instances
 * never.
 */
export function worthALine(event: EventView, tasksInAll: number): boolean {
  if (!event.type.startsWith('attempt-')) return true;
  return tasksInAll <= 60 || !['attempt-starting', 'attempt-started', 'attempt-succeeded'].includes(event.type);
}

/** `factor 3/6, 2 running; 2 instances; $0.0123`: display in one line, nearest deadlines first. */
export function progressLine(frame: Frame): string {
  const { jobs, instances, health } = frame;
  const due = (j: JobView): number => (j.deadlineAt === null ? Infinity : Date.parse(j.deadlineAt));
  const open = jobs
    .filter((j) => j.finishedAt === null)
    .sort((a, b) => (due(a) < due(b) ? -1 : due(a) > due(b) ? 1 : 0));
  const parts = open.slice(0, 3).map((j) => {
    const left =
      j.deadlineAt === null ? '' : `, deadline in ${duration((Date.parse(j.deadlineAt) - health.nowMs) / 1000)}`;
    return `${text(j.name)} ${counts(j.tasks)}${left}`;
  });
  if (open.length > 3) parts.push(`${open.length - 3} more jobs`);
  return [...parts, plural(instances.length, 'instance'), spentText(frame)].join('; ');
}
