import type { Inbox } from '../../lib/drivers/aws/fleet/inbox.ts';
import { CONTAINER } from '../../lib/drivers/aws/fleet/log-place.ts';
import { markOf } from '../../lib/drivers/aws/fleet/request-names.ts';
import { fold, type Fact, type InstanceRecord } from '../../lib/drivers/aws/fleet/instance-record.ts';
import { attemptName } from '../../lib/cycle/state/working-state.ts';
import type { Instance } from '../../lib/domain/instance.ts';
import type { Attempt, Job } from '../../lib/domain/job.ts';
import { effectKey, type AttemptId } from '../../lib/kernel/ids.ts';
import { epochMs, raw, ZERO_S, type EpochMs } from '../../lib/kernel/units.ts';
import type { Change } from '../../lib/ports/store.ts';
import type { StartRequest } from '../../lib/ports/fleet.ts';
import type { AwsDouble } from '../../scripts/aws-double/double.ts';
import { attempt, instance } from './builders.ts';

interface Written {
  readonly double: Pick<AwsDouble, 'ask'>;
  readonly inbox: Inbox;
  /** All its tasks are started, on one instance that is ready. */
  readonly job: Job;
  readonly on: InstanceRecord;
  readonly nowMs: EpochMs;
  readonly commandOf: (index: number) => string;
}

/**
 * Tasks as they stand once ECS has started them and everybody knows: in ECS, in the fleet's records; what the store is
 * to be told.
 */
export async function writeTasks(of: Written): Promise<readonly Change[]> {
  const { job, on, nowMs } = of;
  const [stage] = job.spec.stages;
  if (stage === undefined) throw new Error(`job ${job.id} has no stage`);
  const attempts = Array.from({ length: stage.tasks }, (_, index) => {
    const ref = { job: job.id, stage: stage.name, index };
    return attempt({
      ...ref,
      id: attemptName(ref, 1),
      instance: on.instance,
      resources: stage.resources,
      state: 'running',
      placedMs: nowMs,
      startedMs: nowMs,
    });
  });
  const arns = new Map<AttemptId, string>();
  for (const each of attempts) arns.set(each.id, await taskInEcs(of, each));
  const record = await recorded(of, attempts, arns);
  return [
    { put: 'job', value: allRunning(job, nowMs) },
    { put: 'instance', value: instanceOf(record) },
    { put: 'cursor', instance: on.instance, sequence: record.sequence },
    ...attempts.flatMap((value): Change[] => [
      {
        put: 'task',
        value: {
          job: value.job,
          stage: value.stage,
          index: value.index,
          state: 'running',
          attempts: 1,
          failures: 0,
          keptS: ZERO_S,
          notBeforeMs: null,
        },
      },
      { put: 'attempt', value: { ...value, log: arns.get(value.id)?.split('/').at(-1) ?? '' } },
    ]),
  ];
}

async function taskInEcs({ double, on, commandOf }: Written, { id, index, resources }: Attempt): Promise<string> {
  const override = {
    name: CONTAINER,
    command: [commandOf(index)],
    cpu: Math.floor((raw(resources.cpu) * 1024) / 1000),
    memory: raw(resources.memory),
  };
  const { tasks } = (await double.ask('StartTask', {
    cluster: 'ebb',
    containerInstances: [on.host],
    taskDefinition: 'written',
    startedBy: markOf(id),
    overrides: { containerOverrides: [override] },
  })) as { readonly tasks: readonly { readonly taskArn: string }[] };
  const [task] = tasks;
  if (task === undefined) throw new Error(`ECS starts no task on ${on.instance}`);
  return task.taskArn;
}

/** The record of the instance, with all that was reported applied. */
async function recorded(
  { inbox, job, on, nowMs, commandOf }: Written,
  attempts: readonly Attempt[],
  arns: ReadonlyMap<AttemptId, string>,
): Promise<InstanceRecord> {
  const facts = attempts.flatMap(({ id }): Fact[] => [
    { is: 'ordered', attempt: id, saves: false, timeoutS: null },
    { is: 'tried', attempt: id, atMs: raw(nowMs) },
    { is: 'task', attempt: id, task: arns.get(id) ?? '', startedMs: raw(nowMs), keptMs: null, end: null },
  ]);
  const changed = await inbox.update(on.instance, (r) => facts.reduce(fold, r), on);
  if (changed === null) throw new Error(`${on.instance} has no record`);
  await inbox.applied(changed, changed.sequence);
  for (const each of attempts) await inbox.putOrder(orderOf(job, each, commandOf(each.index)));
  return changed;
}

function orderOf(job: Job, { id, instance: on, resources, stage, index }: Attempt, command: string): StartRequest {
  return {
    key: effectKey(`start/${id}`),
    attempt: id,
    instance: on,
    command: [command],
    env: {},
    workdir: '/data',
    inputs: [],
    outputs: [],
    resources,
    timeoutS: null,
    checkpoint: null,
    task: { job: job.id, stage, index, number: 1 },
  };
}

function instanceOf({ instance: id, key, pool, launchedMs, readyMs }: InstanceRecord): Instance {
  const launched = epochMs(launchedMs ?? 0);
  return instance({
    id,
    allocation: key,
    pool,
    requestedMs: launched,
    launchedMs: launched,
    readyMs: epochMs(readyMs ?? 0),
  });
}

const allRunning = (job: Job, nowMs: EpochMs): Job => ({
  ...job,
  state: 'running',
  startedMs: nowMs,
  stages: job.stages.map((s) => ({ ...s, nextFresh: s.tasks, running: s.tasks })),
});
