import { EbbError } from '../kernel/errors.ts';
import { isOver, type Job } from '../domain/job.ts';
import { timeOfText } from '../kernel/ids.ts';
import { DAY_MS, raw } from '../kernel/units.ts';
import type { Backend } from '../ports/backend.ts';
import { nearestName } from '../domain/nearest-name.ts';
import { quoted } from './validate.ts';

type Known = Pick<Backend, 'store' | 'clock' | 'history'>;

/** Most jobs of one name that are compared, and most names suggested for a misspelt one. */
const LOOK = 50;

/**
 * Job with an id or a name. Recurring jobs share a name, which means the unfinished one, or else the newest. With
 * several unfinished ones the name is ambiguous: the wrong job might be cancelled.
 */
export async function findJob(of: Known, ref: string): Promise<Job> {
  const { store } = of;
  const found = (await store.findJobs([ref])).get(ref);
  if (found === undefined) throw await unknownJob(of, ref);
  if (found.id === ref) return found;
  const open = (await store.jobs({ name: ref, states: ['pending', 'running', 'held'] }, LOOK, null)).items;
  if (open.length <= 1) return open[0] ?? found;
  throw new EbbError('conflict', {
    what: `${open.length}${open.length === LOOK ? ' or more' : ''} jobs named ${quoted(ref)} are not over`,
    got: `the name ${quoted(ref)}`,
    allowed: open
      .slice(0, 5)
      .map((j) => j.id)
      .join(', '),
    next: 'Name the job by its id.',
  });
}

async function unknownJob(of: Known, ref: string): Promise<EbbError> {
  const gone = agedOut(of, ref);
  if (gone !== null) return gone;
  const { store } = of;
  const newest = (await store.jobs({}, LOOK, null)).items;
  const near = nearestName(ref, [
    ...newest.map((j) => j.spec.name),
    ...newest.filter((j) => !isOver(j.state)).map((j) => j.id),
  ]);
  return new EbbError('not-found', {
    what: 'no such job',
    got: quoted(ref),
    next: near === null ? 'List the jobs: GET /api/jobs, `ebb jobs`.' : `Did you mean ${quoted(near)}?`,
  });
}

/** Error for an expired id, which contains its time of creation; null for younger ids. */
function agedOut({ clock, history }: Known, ref: string): EbbError | null {
  const madeMs = ref.startsWith('j-') ? timeOfText(ref.slice(2)) : null;
  if (history === undefined || madeMs === null || raw(clock.now()) - madeMs <= history.days * DAY_MS) return null;
  return new EbbError('gone', {
    what: 'this job has aged out, if there ever was one of this id',
    got: `${quoted(ref)}, made on ${new Date(madeMs).toISOString().slice(0, 10)}`,
    allowed: `jobs that ended within the last ${history.days} days, or have not ended (setting historyDays)`,
    next:
      history.archive === null
        ? 'What it cost is still in the sums: `ebb cost`.'
        : `What it was is in the archive, ${history.archive}jobs/ (docs/archive.md); what it cost is still in the sums: \`ebb cost\`.`,
  });
}
