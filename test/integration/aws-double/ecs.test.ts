import {
  CreateClusterCommand,
  CreateServiceCommand,
  DescribeClustersCommand,
  DescribeContainerInstancesCommand,
  DescribeTaskDefinitionCommand,
  DescribeTasksCommand,
  ListContainerInstancesCommand,
  ListTasksCommand,
  PutAttributesCommand,
  RunTaskCommand,
  StartTaskCommand,
  StopTaskCommand,
  TagResourceCommand,
  UpdateContainerInstancesStateCommand,
  type ContainerInstance,
} from '@aws-sdk/client-ecs';
import { GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Bench, idsOf, refusal } from './bench.ts';

const cluster = 'ebb';
const TASK = 'ECS Task State Change';

async function container(bench: Bench, arn: string): Promise<ContainerInstance> {
  const { containerInstances } = await bench.ecs.send(
    new DescribeContainerInstancesCommand({ cluster, containerInstances: [arn] }),
  );
  return containerInstances![0]!;
}

/** Runs until it is stopped, and then ends at once. */
const UNTIL_STOPPED = 'trap "exit 0" TERM; while :; do sleep 0.05; done';

const statesOf = (bench: Bench, taskArn: string | undefined): unknown[] =>
  bench.events(TASK, { taskArn }).map((e) => [e.detail['lastStatus'], e.detail['desiredStatus']]);

describe('clusters and definitions', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.start();
  });
  afterAll(async () => bench.close());

  it('a cluster is made once, and missing ones are named', async () => {
    const { cluster: made } = await bench.ecs.send(new CreateClusterCommand({ clusterName: 'two' }));
    expect(made).toMatchObject({
      clusterName: 'two',
      clusterArn: 'arn:aws:ecs:us-east-1:000000000000:cluster/two',
      status: 'ACTIVE',
    });
    expect((await bench.ecs.send(new CreateClusterCommand({ clusterName: 'two' }))).cluster!.clusterArn).toBe(
      made!.clusterArn,
    );
    const described = await bench.ecs.send(new DescribeClustersCommand({ clusters: [made!.clusterArn!, 'none'] }));
    expect(described.clusters!.map((c) => c.clusterName)).toEqual(['two']);
    expect(described.failures).toEqual([{ arn: 'none', reason: 'MISSING' }]);
    const list = bench.ecs.send(new ListTasksCommand({ cluster: 'none' }));
    expect(await refusal(list)).toMatchObject({ name: 'ClusterNotFoundException' });
  });

  it('a task definition gets a revision each time and is shown as it came', async () => {
    const first = await bench.define({ ulimits: [{ name: 'nofile', softLimit: 1, hardLimit: 2 }] }, 'shape');
    const second = await bench.define({ stopTimeout: 5 }, 'shape');
    expect([first, second].map((arn) => arn.split('/').at(-1))).toEqual(['shape:1', 'shape:2']);
    const shown = await bench.ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition: 'shape:1' }));
    expect(shown.taskDefinition).toMatchObject({
      family: 'shape',
      revision: 1,
      status: 'ACTIVE',
      containerDefinitions: [{ name: 'main', memory: 128, ulimits: [{ name: 'nofile', softLimit: 1, hardLimit: 2 }] }],
    });
    const latest = await bench.ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition: 'shape' }));
    expect(latest.taskDefinition!.revision).toBe(2);
    const missing = bench.ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition: 'none' }));
    expect(await refusal(missing)).toMatchObject({ name: 'ClientException' });
  });

  it('what it does not play is refused and said aloud', async () => {
    const service = bench.ecs.send(new CreateServiceCommand({ serviceName: 's', taskDefinition: 'shape' }));
    expect((await refusal(service)).name).toMatch(/UnknownOperation/);
    const network = bench.ecs.send(
      new StartTaskCommand({ cluster, containerInstances: ['x'], taskDefinition: 'shape', networkConfiguration: {} }),
    );
    expect(await refusal(network)).toMatchObject({ name: 'InvalidParameterException' });
  });
});

describe('tasks', () => {
  let bench: Bench;
  let host: { readonly instance: string; readonly arn: string };
  const start = async (script: string, more = {}) => bench.script(host.arn, script, more);
  const stopped = async (arn: string | undefined) => bench.taskIn('STOPPED', arn);

  beforeAll(async () => {
    bench = await Bench.start({}, 'ECS_CLUSTER=ebb\nECS_INSTANCE_ATTRIBUTES={"ebb.pool":"calm"}');
    await bench.define({ environment: [{ name: 'COLOUR', value: 'red' }] });
    host = await bench.host('calm', '0.05');
  });
  afterAll(async () => bench.close());

  it('find their instance registered, active, with its attributes and what it has', async () => {
    const shown = await container(bench, host.arn);
    expect(shown).toMatchObject({ ec2InstanceId: host.instance, status: 'ACTIVE', agentConnected: true });
    const attributes = Object.fromEntries(shown.attributes!.map((a) => [a.name, a.value]));
    expect(attributes).toMatchObject({
      'ecs.instance-type': 'c5.large',
      'ecs.availability-zone': 'calm',
      'ecs.os-type': 'linux',
      'ebb.pool': 'calm',
    });
    const registered = Object.fromEntries(shown.registeredResources!.map((r) => [r.name, r.integerValue]));
    // Two vCPUs, and 95 % of 4096 MiB.
    expect(registered).toEqual({ CPU: 2048, MEMORY: 3891 });
    await bench.ecs.send(
      new PutAttributesCommand({
        cluster,
        attributes: [{ name: 'extra', value: 'yes', targetId: shown.containerInstanceArn }],
      }),
    );
    const among = async (filter: string) =>
      (await bench.ecs.send(new ListContainerInstancesCommand({ cluster, filter }))).containerInstanceArns;
    expect(await among(`attribute:extra == yes and ec2InstanceId in [${host.instance}, i-0]`)).toEqual([host.arn]);
    expect(await among('attribute:extra == no')).toEqual([]);
    expect(bench.events('ECS Container Instance State Change', { ec2InstanceId: host.instance })[0]).toMatchObject({
      source: 'aws.ecs',
      detail: { status: 'ACTIVE', agentConnected: true, clusterArn: 'arn:aws:ecs:us-east-1:000000000000:cluster/ebb' },
    });
  });

  it('run the command as a process with the environment of the container and of nothing else', async () => {
    process.env['EBB_AWS_DOUBLE_SECRET'] = 'host';
    const command = [
      'sh',
      '-c',
      'echo "$COLOUR $SIZE [$HOME] [$EBB_AWS_DOUBLE_SECRET] $EBB_JOB"; echo oops >&2; printf unfinished; exit 7',
    ];
    const environment = [
      { name: 'SIZE', value: "large 'and' $wide" },
      { name: 'EBB_JOB', value: 'mine' },
    ];
    const task = await start('', {
      startedBy: 'effect-1',
      tags: [{ key: 'ebb:attempt', value: 'a1' }],
      overrides: { containerOverrides: [{ name: 'main', command, environment }] },
    });
    delete process.env['EBB_AWS_DOUBLE_SECRET'];
    expect(task).toMatchObject({
      lastStatus: 'PENDING',
      desiredStatus: 'RUNNING',
      startedBy: 'effect-1',
      containerInstanceArn: host.arn,
    });
    const end = await stopped(task.taskArn);
    expect(end).toMatchObject({
      stopCode: 'EssentialContainerExited',
      stoppedReason: 'Essential container in task exited',
      containers: [{ name: 'main', exitCode: 7, lastStatus: 'STOPPED' }],
      tags: [{ key: 'ebb:attempt', value: 'a1' }],
    });
    expect(end.createdAt!.getTime()).toBeLessThanOrEqual(end.startedAt!.getTime());
    expect(end.startedAt!.getTime()).toBeLessThanOrEqual(end.stoppedAt!.getTime());
    expect(new Set(await bench.logOf(end))).toEqual(
      new Set(["red large 'and' $wide [] [] mine", 'oops', 'unfinished']),
    );
    expect(statesOf(bench, task.taskArn)).toEqual([
      ['PENDING', 'RUNNING'],
      ['RUNNING', 'RUNNING'],
      ['STOPPED', 'STOPPED'],
    ]);
    const last = bench.events(TASK, { taskArn: task.taskArn }).at(-1)!;
    expect(last.detail).toMatchObject({
      stopCode: 'EssentialContainerExited',
      containers: [{ exitCode: 7 }],
      stoppedAt: end.stoppedAt!.toISOString(),
      version: end.version,
    });
  });

  it('are stopped by SIGTERM, and end as they choose', async () => {
    const task = await start('trap "echo saving; exit 75" TERM; echo up; while :; do sleep 0.05; done');
    await bench.until('its first words', async () => {
      const running = await bench.taskIn('RUNNING', task.taskArn);
      return (await bench.logOf(running)).includes('up') ? true : undefined;
    });
    const { task: stopping } = await bench.ecs.send(
      new StopTaskCommand({ cluster, task: task.taskArn, reason: 'ebb: preempted' }),
    );
    expect(stopping).toMatchObject({ lastStatus: 'RUNNING', desiredStatus: 'STOPPED' });
    const end = await stopped(task.taskArn);
    expect(end).toMatchObject({
      stopCode: 'UserInitiated',
      stoppedReason: 'ebb: preempted',
      containers: [{ exitCode: 75 }],
    });
    expect(await bench.logOf(end)).toEqual(['up', 'saving']);
    const { task: again } = await bench.ecs.send(new StopTaskCommand({ cluster, task: task.taskArn, reason: 'other' }));
    expect(again).toMatchObject({ lastStatus: 'STOPPED', stoppedReason: 'ebb: preempted' });
  });

  it('that do not handle SIGTERM are killed after the stop timeout, unless an init process runs', async () => {
    const deaf = await start('exec sleep 1000');
    await bench.taskIn('RUNNING', deaf.taskArn);
    await bench.ecs.send(new StopTaskCommand({ cluster, task: deaf.taskArn }));
    const killed = await stopped(deaf.taskArn);
    expect(killed).toMatchObject({
      stopCode: 'UserInitiated',
      stoppedReason: 'Task stopped by user',
      containers: [{ exitCode: 137 }],
    });
    // 30 s of the agent's default are 0.3 s of wall time here; real processes get two seconds.
    expect((killed.stoppedAt!.getTime() - killed.stoppingAt!.getTime()) / 1000).toBeGreaterThanOrEqual(195);
    await bench.define({ linuxParameters: { initProcessEnabled: true } }, 'init');
    const withInit = await start('exec sleep 1000', { taskDefinition: 'init' });
    await bench.taskIn('RUNNING', withInit.taskArn);
    await bench.ecs.send(new StopTaskCommand({ cluster, task: withInit.taskArn }));
    expect(await stopped(withInit.taskArn)).toMatchObject({ containers: [{ exitCode: 143 }] });
  });

  it('may be stopped at once after their start', async () => {
    const task = await start(UNTIL_STOPPED);
    await bench.ecs.send(new StopTaskCommand({ cluster, task: task.taskArn }));
    expect(await stopped(task.taskArn)).toMatchObject({ stopCode: 'UserInitiated' });
  });

  it('are doubled by StartTask asked twice: it has no token', async () => {
    const [one, two] = [await start('exit 0', { startedBy: 'same' }), await start('exit 0', { startedBy: 'same' })];
    expect(one.taskArn).not.toBe(two.taskArn);
    await Promise.all([stopped(one.taskArn), stopped(two.taskArn)]);
    const { taskArns } = await bench.ecs.send(
      new ListTasksCommand({ cluster, startedBy: 'same', desiredStatus: 'STOPPED' }),
    );
    expect([...taskArns!].sort()).toEqual([one.taskArn, two.taskArn].sort());
    const long = start('exit 0', { startedBy: 'x'.repeat(37) });
    expect(await refusal(long)).toMatchObject({ name: 'InvalidParameterException' });
    const large = start(`: ${'x'.repeat(8192)}`);
    expect(await refusal(large)).toMatchObject({ name: 'InvalidParameterException' });
  });

  it('are not doubled by RunTask asked twice with one token, and a token used otherwise is refused', async () => {
    const run = (value: string) =>
      bench.ecs.send(
        new RunTaskCommand({
          cluster,
          taskDefinition: 'job',
          clientToken: 'token-1',
          startedBy: 'x'.repeat(64),
          placementConstraints: [{ type: 'memberOf', expression: `ec2InstanceId == ${host.instance}` }],
          overrides: { containerOverrides: [{ name: 'main', command: ['echo', value] }] },
        }),
      );
    const [first, second] = await Promise.all([run('a'), run('a')]);
    expect(first.tasks).toHaveLength(1);
    expect(first.tasks![0]!.containerInstanceArn).toBe(host.arn);
    expect(second.tasks![0]!.taskArn).toBe(first.tasks![0]!.taskArn);
    expect(await refusal(run('b'))).toMatchObject({ name: 'ConflictException' });
    const end = await stopped(first.tasks![0]!.taskArn);
    expect(await bench.logOf(end)).toEqual(['a']);
    const nowhere = await bench.ecs.send(
      new RunTaskCommand({
        cluster,
        taskDefinition: 'job',
        placementConstraints: [{ type: 'memberOf', expression: 'ec2InstanceId == i-0' }],
      }),
    );
    expect([nowhere.tasks, nowhere.failures!.map((f) => f.reason)]).toEqual([
      [],
      ['MemberOf placement constraint unsatisfied.'],
    ]);
  });

  it('are listed, described, tagged; what is not there is named', async () => {
    const task = await start(UNTIL_STOPPED);
    await bench.ecs.send(new TagResourceCommand({ resourceArn: task.taskArn, tags: [{ key: 'k', value: 'v' }] }));
    const onHost = await bench.ecs.send(new ListTasksCommand({ cluster, containerInstance: host.arn }));
    expect(onHost.taskArns).toEqual([task.taskArn]);
    expect((await bench.task(task.taskArn)).tags).toEqual([{ key: 'k', value: 'v' }]);
    const { failures } = await bench.ecs.send(new DescribeTasksCommand({ cluster, tasks: ['f'.repeat(32)] }));
    expect(failures).toEqual([
      { arn: `arn:aws:ecs:us-east-1:000000000000:task/ebb/${'f'.repeat(32)}`, reason: 'MISSING' },
    ]);
    const stop = bench.ecs.send(new StopTaskCommand({ cluster, task: 'f'.repeat(32) }));
    expect(await refusal(stop)).toMatchObject({
      name: 'InvalidParameterException',
      message: 'The referenced task was not found.',
    });
    await bench.ecs.send(new StopTaskCommand({ cluster, task: task.taskArn }));
    await stopped(task.taskArn);
  });

  it('are placed where there is room: CPU and memory are counted, and given back', async () => {
    const failuresOf = async (of: object, on = host.arn) => {
      const { failures } = await bench.ecs.send(
        new StartTaskCommand({
          cluster,
          containerInstances: [on],
          taskDefinition: 'job',
          overrides: { containerOverrides: [{ name: 'main', ...of }] },
        }),
      );
      return failures!.map((f) => f.reason);
    };
    expect(await failuresOf({ memory: 3892 })).toEqual(['RESOURCE:MEMORY']);
    expect(await failuresOf({ cpu: 2049 })).toEqual(['RESOURCE:CPU']);
    const held = await start('', {
      overrides: {
        containerOverrides: [{ name: 'main', cpu: 2048, memory: 100, command: ['sh', '-c', UNTIL_STOPPED] }],
      },
    });
    const shown = await container(bench, host.arn);
    expect(Object.fromEntries(shown.remainingResources!.map((r) => [r.name, r.integerValue]))).toEqual({
      CPU: 0,
      MEMORY: 3791,
    });
    expect(await failuresOf({ cpu: 1 })).toEqual(['RESOURCE:CPU']);
    await bench.ecs.send(new StopTaskCommand({ cluster, task: held.taskArn }));
    await stopped(held.taskArn);
    expect(await failuresOf({ command: ['true'] })).toEqual([]);
    expect(await failuresOf({}, 'f'.repeat(32))).toEqual(['MISSING']);
    const misnamed = bench.ecs.send(
      new StartTaskCommand({
        cluster,
        containerInstances: [host.arn],
        taskDefinition: 'job',
        overrides: { containerOverrides: [{ name: 'other' }] },
      }),
    );
    expect(await refusal(misnamed)).toMatchObject({ name: 'InvalidParameterException' });
  });

  it('that cannot be pulled, that take too much memory and that are killed are told apart', async () => {
    bench.double.knobs.set({ unpullableImages: ['gone/*'], outOfMemoryImages: ['fat/*'] });
    await bench.define({ image: 'gone/image:1' }, 'gone');
    await bench.define({ image: 'fat/image:1' }, 'fat');
    const unpulled = await stopped((await start('true', { taskDefinition: 'gone' })).taskArn);
    expect(unpulled).toMatchObject({
      stopCode: 'TaskFailedToStart',
      stoppedReason: expect.stringMatching(/^CannotPullContainerError: /),
    });
    expect(unpulled.containers![0]!.exitCode).toBeUndefined();
    const fat = await stopped((await start('sleep 100', { taskDefinition: 'fat' })).taskArn);
    expect(fat).toMatchObject({
      stopCode: 'EssentialContainerExited',
      containers: [{ exitCode: 137, reason: expect.stringMatching(/^OutOfMemoryError: /) }],
    });
    const killed = await stopped((await start('kill -9 $$')).taskArn);
    expect(killed.containers![0]).toMatchObject({ exitCode: 137 });
    expect(killed.containers![0]!.reason).toBeUndefined();
  });

  it('have logs that are read in pages, from either end, and only once they run', async () => {
    const task = await stopped((await start('for i in 1 2 3 4 5; do echo "line $i"; done')).taskArn);
    const logStreamName = `ebb/main/${task.taskArn!.split('/').at(-1)!}`;
    const get = (more: object) =>
      bench.logs.send(new GetLogEventsCommand({ logGroupName: '/ebb', logStreamName, ...more }));
    const read: string[] = [];
    let token: string | undefined;
    for (let calls = 0; calls < 10; calls++) {
      const { events, nextForwardToken } = await get({
        startFromHead: true,
        limit: 2,
        ...(token === undefined ? {} : { nextToken: token }),
      });
      read.push(...events!.map((e) => e.message!));
      // The end of a stream is the token that was asked with: API_GetLogEvents.
      if (nextForwardToken === token) break;
      token = nextForwardToken;
    }
    expect(read).toEqual(['line 1', 'line 2', 'line 3', 'line 4', 'line 5']);
    const tail = await get({ limit: 2 });
    expect(tail.events!.map((e) => e.message)).toEqual(['line 4', 'line 5']);
    const before = await get({ limit: 2, nextToken: tail.nextBackwardToken });
    expect(before.events!.map((e) => e.message)).toEqual(['line 2', 'line 3']);
    const [{ timestamp } = {}] = tail.events!;
    expect((await get({ startTime: timestamp! + 1e6 })).events).toEqual([]);
    const missing = bench.logs.send(new GetLogEventsCommand({ logGroupName: '/ebb', logStreamName: 'none' }));
    expect(await refusal(missing)).toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('are not placed on an instance that drains, and go on running there', async () => {
    const { arn } = await bench.host('calm');
    const task = await bench.script(arn, 'sleep 0.5');
    const { containerInstances } = await bench.ecs.send(
      new UpdateContainerInstancesStateCommand({ cluster, containerInstances: [arn], status: 'DRAINING' }),
    );
    expect(containerInstances![0]!.status).toBe('DRAINING');
    await expect(bench.script(arn, 'true')).rejects.toThrow('not started');
    const { containerInstanceArns } = await bench.ecs.send(
      new ListContainerInstancesCommand({ cluster, status: 'ACTIVE' }),
    );
    expect(containerInstanceArns).toEqual([host.arn]);
    expect((await stopped(task.taskArn)).containers![0]!.exitCode).toBe(0);
  });
});

describe('tasks and the end of their instance', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.start({ speed: 40 }, 'ECS_CLUSTER=ebb\nECS_ENABLE_SPOT_INSTANCE_DRAINING=true');
    await bench.define();
  });
  afterAll(async () => bench.close());

  it('nobody stops them at the notice: they can be stopped in time, or end with the instance', async () => {
    // The zone's price passes the bid after 400 s of market time, 10 s after the double began.
    const { instance, arn } = await bench.host('spiky', '0.05');
    const saving = await bench.script(arn, 'trap "exit 75" TERM; while :; do sleep 0.05; done');
    const heedless = await bench.script(arn, 'trap "" TERM; while :; do sleep 0.05; done');
    await bench.until('the notice', () => bench.events('EC2 Spot Instance Interruption Warning')[0]);
    expect((await container(bench, arn)).status).toBe('DRAINING');
    expect([
      (await bench.task(saving.taskArn)).desiredStatus,
      (await bench.task(heedless.taskArn)).desiredStatus,
    ]).toEqual(['RUNNING', 'RUNNING']);
    await bench.ecs.send(new StopTaskCommand({ cluster, task: saving.taskArn, reason: 'interrupted' }));
    const saved = await bench.taskIn('STOPPED', saving.taskArn);
    expect(saved).toMatchObject({
      stopCode: 'UserInitiated',
      stoppedReason: 'interrupted',
      containers: [{ exitCode: 75 }],
    });
    const taken = await bench.taskIn('STOPPED', heedless.taskArn);
    expect(taken.stoppedReason).toBe(`Host EC2 (instance ${instance}) terminated.`);
    expect(taken.containers![0]!.exitCode).toBeUndefined();
    const order = bench.double.events
      .filter(
        (e) =>
          e.detail['instance-id'] === instance ||
          e.detail['taskArn'] === heedless.taskArn ||
          e.detail['ec2InstanceId'] === instance,
      )
      .slice(-8)
      .map(
        (e) =>
          e.detail['state'] ??
          e.detail['lastStatus'] ??
          `${String(e.detail['status'])} ${String(e.detail['agentConnected'])}`,
      );
    expect(order.slice(order.indexOf('shutting-down'))).toEqual([
      'shutting-down',
      'DRAINING false',
      'DRAINING false',
      'STOPPED',
      'INACTIVE false',
      'terminated',
    ]);
    const gone = await bench.ecs.send(
      new StartTaskCommand({ cluster, containerInstances: [arn], taskDefinition: 'job' }),
    );
    expect(gone.failures).toEqual([{ arn, reason: 'INACTIVE' }]);
  });

  it('termination stops them', async () => {
    const { instance, arn } = await bench.host('calm');
    const task = await bench.script(arn, 'sleep 1000');
    await bench.taskIn('RUNNING', task.taskArn);
    await bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: [instance] }));
    expect(await bench.taskIn('STOPPED', task.taskArn)).toMatchObject({
      stoppedReason: `Host EC2 (instance ${instance}) terminated.`,
    });
    expect((await container(bench, arn)).status).toBe('INACTIVE');
  });

  it('an agent whose cluster is not there never registers', async () => {
    const other = await Bench.start({}, 'ECS_CLUSTER=elsewhere');
    const [id] = idsOf(await other.ec2.send(other.fleet('calm')));
    await other.until(
      'running',
      () => other.events('EC2 Instance State-change Notification', { 'instance-id': id, state: 'running' })[0],
    );
    const { containerInstanceArns } = await other.ecs.send(new ListContainerInstancesCommand({ cluster }));
    expect(containerInstanceArns).toEqual([]);
    await other.close();
  });
});
