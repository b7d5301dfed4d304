import type { FailureList, FailureView, JobSummary } from '../../api/schemas.ts';
import type { Client } from '../client.ts';
import { plural } from '../format.ts';
import type { Output } from '../output.ts';
import { routes } from '../routes.ts';
import { text } from './text-table.ts';

type Paint = Pick<Output, 'colors'>;

/** Reasons of a job's failed tasks; null without any, which the job itself tells. */
export async function failuresOf(
  engine: Client,
  job: Pick<JobSummary, 'id' | 'tasks' | 'state'>,
): Promise<FailureList | null> {
  const { failed, waiting } = job.tasks;
  if (failed === 0 && waiting === 0 && job.state !== 'failed') return null;
  const list = await engine.get<FailureList>(routes.failures(job.id));
  return list.items.length === 0 ? null : list;
}

/** `main[3] failed at attempt 2: exit code 1`, and the last lines of its standard error. */
export function failureLines({ colors }: Paint, f: FailureView): string[] {
  const outcome = f.outcome === 'timed-out' ? 'timed out' : 'failed';
  const reason = f.reason === null ? '' : `: ${text(f.reason)}`;
  const again = f.final ? '' : ', is tried again';
  const others = f.alike === 0 ? '' : colors.dim(` (and ${plural(f.alike, 'more task')} likewise)`);
  const head = `${text(f.stage)}[${f.index}] ${outcome} at attempt ${f.attempt}${again}${reason}${others}`;
  if (f.stderr === null) return [head, colors.dim(`  it wrote nothing to standard error`)];
  const said = f.stderr.split('\n').map((line) => `  ${colors.dim('|')} ${text(line)}`);
  return [head, ...said];
}

/** Section of `status` and `explain`. */
export function failureSection(output: Paint, list: FailureList): string {
  const lines = list.items.flatMap((f) => failureLines(output, f)).map((line) => `  ${line}`);
  const shown = list.items.reduce((n, f) => n + 1 + f.alike, 0);
  const rest = list.total - shown;
  const more =
    rest > 0 ? [output.colors.dim(`  and ${plural(rest, 'more task')}: see \`ebb logs JOB --task N --stderr\``)] : [];
  return [output.colors.bold('Failed'), ...lines, ...more].join('\n');
}
