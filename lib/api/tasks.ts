import type { z } from 'zod';
import type { Job } from '../domain/job.ts';
import type { Backend } from '../ports/backend.ts';
import { boundedPage } from './bounded.ts';
import { position, slice } from './cursor.ts';
import { findJob } from './find-job.ts';
import type { attemptsQuery, tasksQuery } from './requests.ts';
import type { AttemptList, TaskList, TaskView } from './schemas.ts';
import { attemptView, freshTaskView, taskView } from './views.ts';

/** Tasks in the order of stages and indices. Tasks without an attempt have no record but are included. */
export async function listTasks(of: Backend, ref: string, query: z.output<typeof tasksQuery>): Promise<TaskList> {
  const job = await findJob(of, ref);
  const tried = new Map((await of.store.tasks(job.id)).map((t) => [`${t.stage}/${t.index}`, t]));
  const items: TaskView[] = [];
  let passed = query.cursor === undefined ? 0 : position(query.cursor);
  let index = 0;
  let next: string | null = null;
  for (const place of places(job, query.stage)) {
    index++;
    if (passed > 0) {
      passed--;
      continue;
    }
    const task = tried.get(`${place.stage}/${place.index}`);
    const view = task === undefined ? freshTaskView(place.stage, place.index, place.neverWill) : taskView(task);
    if (query.state !== undefined && !query.state.includes(view.state)) continue;
    if (items.length === query.limit) {
      next = String(index - 1);
      break;
    }
    items.push(view);
  }
  return { job: job.id, items, next };
}

function* places(job: Job, stage: string | undefined): Generator<{ stage: string; index: number; neverWill: boolean }> {
  const neverWill = job.finishedMs !== null;
  for (const s of job.spec.stages) {
    if (stage !== undefined && s.name !== stage) continue;
    for (let index = 0; index < s.tasks; index++) yield { stage: s.name, index, neverWill };
  }
}

/** Attempts of a task, oldest first. */
export async function listAttempts(
  of: Backend,
  ref: string,
  query: z.output<typeof attemptsQuery>,
): Promise<AttemptList> {
  const job = await findJob(of, ref);
  const wanted = (await of.store.attempts(job.id)).filter(
    (a) =>
      (query.stage === undefined || a.stage === query.stage) && (query.task === undefined || a.index === query.task),
  );
  return boundedPage(query.limit, async (limit) => {
    const page = slice(wanted, limit, query.cursor);
    return { job: job.id, items: page.items.map((a) => attemptView(a, of.fleet.logUrl)), next: page.next };
  });
}
