/** State of the cycles after a purchase: its instances are up, then its tasks run. */
import type { ActiveState } from '../../lib/ports/store.ts';
import type { Attempt, Job, Task } from '../../lib/domain/job.ts';
import type { Effect } from '../../lib/domain/plan.ts';
import type { Resources } from '../../lib/domain/resources.ts';
import { ZERO_S } from '../../lib/kernel/units.ts';
import { attempt, instance } from '../load/values.ts';

const NOTHING: ActiveState = {
  jobs: [],
  tasks: [],
  attempts: [],
  instances: [],
  openEffects: [],
  cursors: new Map(),
};

export const beforePurchase = (jobs: readonly Job[]): ActiveState => ({ ...NOTHING, jobs });

/** All that was bought is up, and nothing runs. */
export const purchased = (jobs: readonly Job[], effects: readonly Effect[]): ActiveState => ({
  ...NOTHING,
  jobs,
  instances: effects.flatMap((e) => (e.kind === 'launch' ? [instance(e.instance, e.pool, { bid: e.bid })] : [])),
});

/** All that was started runs. */
export function started(before: ActiveState, effects: readonly Effect[]): ActiveState {
  const needs = new Map(
    before.jobs.flatMap((j) => j.spec.stages.map((s): [string, Resources] => [`${j.id}/${s.name}`, s.resources])),
  );
  const attempts: Attempt[] = [];
  const tasks: Task[] = [];
  const running = new Map<string, number>();
  for (const e of effects) {
    if (e.kind !== 'start') continue;
    const of = `${e.task.job}/${e.task.stage}`;
    const resources = needs.get(of);
    if (resources === undefined) throw new Error(`there is no stage ${of}`);
    const { job, stage, index } = e.task;
    attempts.push(attempt({ id: e.attempt, instance: e.instance, resources, job, stage, index }));
    tasks.push({ job, stage, index, state: 'running', attempts: 1, failures: 0, keptS: ZERO_S, notBeforeMs: null });
    running.set(job, (running.get(job) ?? 0) + 1);
  }
  const jobs = before.jobs.map((j): Job => {
    const n = running.get(j.id) ?? 0;
    const stages = j.stages.map((s) => ({ ...s, nextFresh: n, running: n }));
    return n === 0 ? j : { ...j, state: 'running', startedMs: j.submittedMs, stages };
  });
  return { ...before, jobs, tasks, attempts };
}
