import type {
  CancelAnswer,
  ReleaseAnswer,
  ExplanationView,
  HealthView,
  JobCostView,
  JobList,
  JobView,
  TaskView,
} from '../../api/schemas.ts';
import type { ServiceExplanationView } from '../../api/services/schemas.ts';
import { EbbError } from '../../kernel/errors.ts';
import { all, type Client } from '../client.ts';
import type { Action } from '../context.ts';
import { json } from '../output.ts';
import { routes } from '../routes.ts';
import { explanation } from '../views/explanation.ts';
import { failureSection, failuresOf } from '../views/failures.ts';
import { serviceExplanationText } from '../views/service-views.ts';
import { jobStatus, jobsTable, tasksTable } from '../views/job-views.ts';
import { text } from '../views/text-table.ts';
import type { JobsOptions, StatusOptions } from '../flags/job-flags.ts';

export const jobs: Action<JobsOptions> = async ({ output, json: asJson, client }, _args, options) => {
  const { state, owner, name, label, limit } = options;
  const engine = await client();
  const list = await engine.get<JobList>(routes.jobs, { state, owner, name, label, limit });
  if (asJson) {
    json(output, list);
    return;
  }
  output.line(jobsTable(output, list.items, list.asOf));
  if (list.next !== null) output.note(`the newest ${list.items.length}; more with --limit`);
};

export const status: Action<StatusOptions> = async ({ output, json: asJson, client }, [ref = ''], options) => {
  const engine = await client();
  const job = await engine.get<JobView>(routes.job(ref));
  const cost = await engine.get<JobCostView>(routes.jobCosts(job.id));
  const tasks =
    options.tasks === true ? (await all<TaskView>(engine, routes.tasks(job.id))).filter((t) => t.attempts > 0) : null;
  const failures = await failuresOf(engine, job);
  // Finished jobs need no room on the disk.
  const disk = job.finishedAt === null ? (await engine.get<HealthView>(routes.health)).disk : null;
  if (asJson) {
    json(output, {
      job,
      cost,
      ...(disk === null ? {} : { disk }),
      ...(tasks === null ? {} : { tasks }),
      ...(failures === null ? {} : { failures: failures.items }),
    });
    return;
  }
  output.line(jobStatus(output, job, cost, disk));
  if (failures !== null) output.line(`\n${failureSection(output, failures)}`);
  if (tasks !== null) output.line(`\n${tasksTable(output, tasks)}`);
};

/** Explanation of a service, where there is no job of a name; else the error stands. */
async function serviceIfAny(engine: Client, name: string, error: unknown): Promise<ServiceExplanationView> {
  if (!(error instanceof EbbError) || error.code !== 'not-found') throw error;
  return engine.get<ServiceExplanationView>(routes.explainService(name)).catch(() => {
    throw error;
  });
}

export const cancel: Action<object> = async ({ output, json: asJson, client }, [ref = '']) => {
  const engine = await client();
  const answer = await engine.post<CancelAnswer>(routes.cancel(ref));
  if (asJson) {
    json(output, answer);
    return;
  }
  const { job, outcome } = answer;
  output.line(
    outcome === 'requested'
      ? `${text(job.name)} (${job.id}) is being cancelled: its running tasks are stopped`
      : `${text(job.name)} (${job.id}) was cancelled before`,
  );
};

export const release: Action<object> = async ({ output, json: asJson, client }, [ref = '']) => {
  const engine = await client();
  const answer = await engine.post<ReleaseAnswer>(routes.release(ref));
  if (asJson) json(output, answer);
  else output.line(`${text(answer.job.name)} (${answer.job.id}) is released: the next cycle decides on it again`);
};

/** Of a job, or of a service of that name. */
export const explain: Action<object> = async ({ output, json: asJson, client }, [ref = '']) => {
  const engine = await client();
  const view = await engine.get<ExplanationView>(routes.explain(ref)).catch(async (error: unknown) => {
    const service = await serviceIfAny(engine, ref, error);
    if (asJson) json(output, service);
    else output.line(serviceExplanationText(output, service));
    return null;
  });
  if (view === null) return;
  const job = await engine.get<JobView>(routes.job(view.job));
  const failures = await failuresOf(engine, job);
  if (asJson) {
    json(output, { ...view, ...(failures === null ? {} : { failures: failures.items }) });
    return;
  }
  output.line(explanation(output, view));
  if (failures !== null) output.line(`\n${failureSection(output, failures)}`);
};
