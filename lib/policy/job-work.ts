/** Work of whole jobs: what they have had, and what is left. */
import { raw } from '../kernel/units.ts';
import type { JobId } from '../kernel/ids.ts';
import { meanS } from '../domain/distribution.ts';
import type { Job } from '../domain/job.ts';
import type { JobWork } from '../domain/plan.ts';
import { workDoneS } from '../domain/snapshot.ts';
import { meanToDo } from '../domain/work-to-do.ts';
import type { PlanInput } from './contracts.ts';
import { meanLeftS } from './work-left.ts';

/** Work of every job that has a task waiting or running. */
export function workOfJobs({
  snapshot,
  forecasts,
}: Pick<PlanInput, 'snapshot' | 'forecasts'>): ReadonlyMap<JobId, JobWork> {
  const begun = new Set(snapshot.groups.map((g) => `${g.job}/${g.stage.name}`));
  const found = new Map<JobId, { submittedMs: JobWork['submittedMs']; leftS: number; attainedS: number }>();
  const workOf = (id: JobId) => {
    let work = found.get(id);
    const job = snapshot.jobs.get(id);
    if (work === undefined && job !== undefined) {
      work = { submittedMs: job.submittedMs, leftS: laterS(job, forecasts, begun), attainedS: doneS(job) };
      found.set(id, work);
    }
    return work;
  };
  for (const group of snapshot.groups) {
    const work = workOf(group.job);
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (work !== undefined && forecast !== undefined) work.leftS += group.count * meanToDo(forecast.runtime, group);
  }
  for (const running of snapshot.running) {
    const work = workOf(running.attempt.job);
    if (work === undefined) continue;
    work.leftS += meanLeftS(running, { snapshot, forecasts });
    work.attainedS += raw(workDoneS(running, snapshot.nowMs));
  }
  return found;
}

/** Expected work of stages that come after others: no task of them waits, runs or has ended. */
function laterS(job: Job, { runtime }: PlanInput['forecasts'], begun: ReadonlySet<string>): number {
  let sum = 0;
  for (const { name, tasks, waiting, running, succeeded, failed, cancelled } of job.stages) {
    if (begun.has(`${job.id}/${name}`) || waiting + running + succeeded + failed + cancelled > 0) continue;
    const told = job.spec.stages.find((s) => s.name === name)?.expectedRuntimeS ?? null;
    const forecast = runtime.get(`${job.id}/${name}`);
    if (forecast !== undefined) sum += tasks * meanS(forecast.runtime);
    else if (told !== null) sum += tasks * raw(told);
  }
  return sum;
}

const doneS = ({ stages }: Job): number =>
  stages.reduce((sum, { times }) => sum + (times === undefined ? 0 : raw(times.sumS)), 0);
