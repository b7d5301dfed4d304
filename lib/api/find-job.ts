import { EbbError } from '../kernel/errors.ts';
import { isOver, type Job } from '../domain/job.ts';
import type { Store } from '../ports/store.ts';
import { nearestName, quoted } from './validate.ts';

/** Jobs of one name that are looked at to tell whether the name is unique, and names offered for a misspelled one. */
const LOOK = 50;

/**
 * The job that an id or a name means. Recurring jobs share a name: the one that is not over is meant; when all are
 * over, the newest; when several are not over the name says too little, and a wrong one might be cancelled.
 */
export async function findJob(store: Store, ref: string): Promise<Job> {
  const found = (await store.findJobs([ref])).get(ref);
  if (found === undefined) throw await unknownJob(store, ref);
  if (found.id === ref) return found;
  const open = (await store.jobs({ name: ref, states: ['pending', 'running'] }, LOOK, null)).items;
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

async function unknownJob(store: Store, ref: string): Promise<EbbError> {
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
