import { NO_RESOURCES } from '../../domain/resources.ts';
import { groupId, jobId, type JobId } from '../../kernel/ids.ts';
import { mib, milliCpu, ZERO_S } from '../../kernel/units.ts';
import { isEnding, type Job, type JobSpec, type StageSpec } from '../../domain/job.ts';
import {
  SnapshotParts,
  type InstanceView,
  type PendingGroup,
  type RunningTask,
  type SetAside,
  type Snapshot,
} from '../../domain/snapshot.ts';

export type Aside = Pick<SetAside, 'why' | 'detail'>;

/**
 * The snapshot without some jobs, so that no policy meets their owners' texts. None of their tasks starts. Their
 * running tasks keep their room, as tasks without constraints, deadline or worth: no policy moves or stops them. A job
 * that is ending stays among the jobs, without its texts, so that its tasks are stopped.
 * O(jobs + groups), and O(running tasks) if some belong to these jobs.
 */
export function setAside(snapshot: Snapshot, aside: ReadonlyMap<JobId, Aside>): Snapshot {
  if (aside.size === 0) return snapshot;
  const stages = new PlainStages();
  const jobs = new Map<JobId, Job>();
  const left: SetAside[] = [...(snapshot.setAside ?? [])];
  for (const [id, job] of snapshot.jobs) {
    const why = aside.get(id);
    if (why === undefined) jobs.set(id, job);
    else if (isEnding(job))
      jobs.set(id, { ...job, deadlineMs: null, spec: plainSpec(job.spec.stages.map((s) => stages.of(s))) });
    else left.push({ job, ...why });
  }
  const isIn = ({ job }: { readonly job: JobId }): boolean => !aside.has(job);
  return {
    ...snapshot,
    ...plainRunning(snapshot, aside, stages),
    jobs,
    setAside: left,
    tasks: snapshot.tasks.filter(isIn),
    groups: snapshot.groups.filter(isIn),
    ...(snapshot.postponed && { postponed: snapshot.postponed.filter((p) => isIn(p.group)) }),
    blocked: snapshot.blocked.filter((b) => !aside.has(b.job) || b.why === 'cancelling'),
  };
}

function plainRunning(
  { running, instances }: Snapshot,
  aside: { has(job: JobId): boolean },
  stages: PlainStages,
): Partial<Pick<Snapshot, 'running' | 'instances' | 'parts'>> {
  const isAside = ({ attempt }: RunningTask): boolean => aside.has(attempt.job);
  if (!running.some(isAside)) return {};
  const plain = new Map<RunningTask, RunningTask>();
  const plainOf = (r: RunningTask): RunningTask => {
    if (!isAside(r)) return r;
    let known = plain.get(r);
    if (known === undefined) plain.set(r, (known = plainTask(r, stages)));
    return known;
  };
  const views = new Map<InstanceView['instance']['id'], InstanceView>();
  for (const view of instances.values()) {
    if (!view.attempts.some(isAside)) views.set(view.instance.id, view);
    else {
      const { distinct: _, ...rest } = view;
      views.set(view.instance.id, { ...rest, attempts: view.attempts.map(plainOf) });
    }
  }
  const left = { running: running.map(plainOf), instances: views };
  return { ...left, parts: new SnapshotParts(left) };
}

function plainTask({ attempt, stage, readS, savedS }: RunningTask, stages: PlainStages): RunningTask {
  return { attempt, stage: stages.of(stage), class: 'best-effort', deadlineMs: null, readS, savedS };
}

const PLAIN: Omit<StageSpec, 'name' | 'tasks' | 'resources'> = {
  dependsOn: [],
  gang: false,
  command: ['true'],
  env: {},
  workdir: '/',
  inputs: [],
  outputs: [],
  retries: 0,
  timeoutS: null,
  checkpoint: null,
  expectedRuntimeS: null,
  constraints: {},
  preferences: [],
};

/** Plain stand-in of each stage: same name, size and needs, nothing else. One record for all tasks of the stage. */
class PlainStages {
  readonly #plain = new Map<StageSpec, StageSpec>();

  of(stage: StageSpec): StageSpec {
    let plain = this.#plain.get(stage);
    if (plain === undefined) {
      const { name, tasks, resources } = stage;
      plain = { ...PLAIN, name, tasks, resources };
      this.#plain.set(stage, plain);
    }
    return plain;
  }
}

/**
 * The snapshot with one more job, of one small plain task. A decision that fails on it would fail on any job, so no
 * waiting job is to blame. For trials only: the job does not exist.
 */
export function probed(snapshot: Snapshot): Snapshot {
  const { nowMs } = snapshot;
  const id = jobId('j-probe');
  const stage: StageSpec = {
    ...PLAIN,
    name: 'main',
    tasks: 1,
    resources: { ...NO_RESOURCES, cpu: milliCpu(1000), memory: mib(512) },
  };
  const counts = { nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  const job: Job = {
    id,
    spec: plainSpec([stage]),
    template: 'probe',
    state: 'pending',
    stateReason: null,
    submittedMs: nowMs,
    deadlineMs: null,
    startedMs: null,
    finishedMs: null,
    cancelRequested: false,
    stages: [{ name: stage.name, tasks: 1, ...counts }],
    after: [],
    admission: { feasible: true, notes: [] },
  };
  const group: PendingGroup = {
    id: groupId(`${id}/main/fresh`),
    job: id,
    class: 'best-effort',
    stage,
    count: 1,
    members: { freshFrom: 0 },
    keptS: ZERO_S,
    submittedMs: nowMs,
    deadlineMs: null,
    need: stage.resources,
  };
  return { ...snapshot, jobs: new Map([...snapshot.jobs, [id, job]]), groups: [...snapshot.groups, group] };
}

const plainSpec = (stages: JobSpec['stages']): JobSpec => ({
  name: 'set-aside',
  owner: '',
  labels: {},
  class: 'best-effort',
  deadline: null,
  value: { onTimeUsd: null, worthlessAfterS: null },
  after: [],
  maxCostUsd: null,
  stages,
});
