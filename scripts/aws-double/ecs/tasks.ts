import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { z } from 'zod';
import { attemptId, effectKey } from '../../../lib/kernel/ids.ts';
import { mib, milliCpu } from '../../../lib/kernel/units.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import { action, Tokens, type Actions } from '../api.ts';
import type { Ec2Instance } from '../ec2/instance.ts';
import { hexOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import type { LogStreams } from '../logs.ts';
import { isVisible, nowMs, type Place } from '../place.ts';
import { matchesAny } from '../wildcard.ts';
import type { ContainerInstances } from './container-instances.ts';
import type { Definitions, TaskDefinition } from './definitions.ts';
import { pageOf } from './paging.ts';
import { selects } from './query-language.ts';
import { kill, terminate, type TaskProcess } from './signals.ts';
import { describeTasks, listTasks, runTask, startTask, stopTask, tagResource, type Startable } from './task-calls.ts';
import { cannotFetch, cannotPull, endOf } from './task-end.ts';
import {
  commandLine,
  environmentIn,
  tagsShown,
  takeOf,
  taskShown,
  type ContainerOverride,
  type HostPort,
  type Images,
  type Task,
  type TaskEnd,
} from './task.ts';
import type { ContainerInstance } from './container-instance.ts';

/** Text of an S3 object. Rejects if it does not exist. */
export type ReadObject = (bucket: string, key: string) => Promise<string>;
type Environment = readonly (readonly [string, string])[];

interface Failure {
  readonly arn?: string;
  readonly reason: string;
  readonly detail?: string;
}
interface Started {
  readonly tasks: readonly Task[];
  readonly failures: readonly Failure[];
}

/** Wait of a stop for a process that is just being started, wall ms. */
const SPAWN_PATIENCE_MS = 10_000;
const SPAWN_POLL_MS = 20;
/** Least wall time from SIGTERM to SIGKILL: real processes need time to save, however fast the market. */
const STOP_FLOOR_MS = 2000;

/** Tasks as real processes on the capacity engine's instances. */
export class Tasks {
  readonly #place: Place;
  readonly #instances: ContainerInstances;
  readonly #definitions: Definitions;
  readonly #logs: LogStreams;
  readonly #images: Images;
  readonly #files: ReadObject;
  readonly #byId = new Map<string, Task>();
  readonly #tokens = new Tokens<Started>();
  /** Wall timers of current stops. */
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    place: Place,
    of: {
      readonly instances: ContainerInstances;
      readonly definitions: Definitions;
      readonly logs: LogStreams;
      readonly images: Images;
      readonly files: ReadObject;
    },
  ) {
    this.#place = place;
    this.#instances = of.instances;
    this.#definitions = of.definitions;
    this.#logs = of.logs;
    this.#images = of.images;
    this.#files = of.files;
  }

  readonly actions: Actions<object> = {
    StartTask: action(startTask, async (asked) => shownAll(await this.#startTask(asked))),
    // Idempotence per cluster: https://docs.aws.amazon.com/AmazonECS/latest/APIReference/ECS_Idempotency.html
    RunTask: action(runTask, async ({ clientToken, ...asked }) => {
      const token =
        clientToken === undefined ? undefined : `${this.#instances.cluster(asked.cluster).arn} ${clientToken}`;
      const started = await this.#tokens.once(token, asked, {
        answer: () => this.#runTask(asked),
        mismatch: (first) =>
          new AwsFault(
            'ConflictException',
            'The provided clientToken is already in use with a different RunTask request.',
            {
              more: { resourceIds: first.tasks.map((task) => task.arn) },
            },
          ),
      });
      return shownAll(started);
    }),
    StopTask: action(stopTask, (asked) => this.#stopTask(asked)),
    DescribeTasks: action(describeTasks, (asked) => {
      const cluster = this.#instances.cluster(asked.cluster);
      const found = asked.tasks.map((name) => this.#find(cluster.arn, name));
      return {
        tasks: found.filter((t) => t !== undefined).map((t) => taskShown(t, asked.include.includes('TAGS'))),
        failures: asked.tasks
          .filter((_, n) => found[n] === undefined)
          .map((name) => ({ arn: name.startsWith('arn:') ? name : this.#arn(cluster.name, name), reason: 'MISSING' })),
      };
    }),
    ListTasks: action(listTasks, (asked) => this.#list(asked)),
    TagResource: action(tagResource, (asked) => {
      const task = [...this.#byId.values()].find((t) => t.arn === asked.resourceArn);
      if (task === undefined)
        throw new AwsFault('InvalidParameterException', `The double tags tasks only, not ${asked.resourceArn}`);
      for (const { key, value } of asked.tags) task.tags.set(key, value);
      return {};
    }),
  };

  /** Running or pending tasks of the instance. */
  #on(instance: ContainerInstance): readonly Task[] {
    return [...this.#byId.values()].filter((t) => t.on === instance && t.lastStatus !== 'STOPPED');
  }

  async #startTask(asked: z.infer<typeof startTask>): Promise<Started> {
    const cluster = this.#instances.cluster(asked.cluster);
    const definition = this.#definition(asked);
    const tasks: Task[] = [];
    const failures: Failure[] = [];
    for (const name of asked.containerInstances) {
      const instance = this.#instances.find(cluster, name);
      const outcome =
        instance === undefined
          ? { arn: this.#instances.missingArn(cluster, name), reason: 'MISSING' }
          : await this.#startOn(instance, definition, asked);
      if ('reason' in outcome) failures.push(outcome);
      else tasks.push(outcome);
    }
    return { tasks, failures };
  }

  /** Places each task on the first instance that meets the constraints and has room. */
  async #runTask(asked: Omit<z.infer<typeof runTask>, 'clientToken'>): Promise<Started> {
    const cluster = this.#instances.cluster(asked.cluster);
    const definition = this.#definition(asked);
    const tasks: Task[] = [];
    const failures: Failure[] = [];
    const active = this.#instances
      .in(cluster)
      .filter((i) => i.status === 'ACTIVE' && isVisible(this.#place, i.registeredMs));
    const allowed = active.filter((i) => asked.placementConstraints.every((c) => selects(c.expression, i)));
    for (let n = 0; n < asked.count; n++) {
      if (allowed.length === 0) {
        // Reason of an empty cluster, which
        // https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html does not list.
        failures.push({
          reason:
            active.length === 0
              ? 'No Container Instances were found in your cluster.'
              : 'MemberOf placement constraint unsatisfied.',
        });
        continue;
      }
      const refused: Failure[] = [];
      for (const instance of allowed) {
        const outcome = await this.#startOn(instance, definition, asked);
        if ('reason' in outcome) refused.push(outcome);
        else {
          tasks.push(outcome);
          break;
        }
      }
      if (refused.length === allowed.length) failures.push(...refused);
    }
    return { tasks, failures };
  }

  #definition(asked: Startable): TaskDefinition {
    const definition = this.#definitions.find(asked.taskDefinition);
    if (definition === undefined) throw new AwsFault('ClientException', 'TaskDefinition not found.');
    const [override] = asked.overrides.containerOverrides;
    if (override !== undefined && override.name !== definition.container.name) {
      throw new AwsFault(
        'InvalidParameterException',
        `Override for container named ${override.name} is not a container in the TaskDefinition.`,
      );
    }
    return definition;
  }

  /** Reasons: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/api_failures_messages.html */
  async #startOn(instance: ContainerInstance, definition: TaskDefinition, asked: Startable): Promise<Task | Failure> {
    const fails = (reason: string, detail?: string): Failure => ({
      arn: instance.arn,
      reason,
      ...(detail === undefined ? {} : { detail }),
    });
    if (instance.status === 'INACTIVE') return fails('INACTIVE');
    // Draining "prevents new tasks from being scheduled"; the page on failures lists no reason for it.
    if (instance.status === 'DRAINING') return fails('INACTIVE', 'The container instance is draining');
    if (!instance.agentConnected) return fails('AGENT');
    const override = asked.overrides.containerOverrides[0] ?? null;
    const fromFiles = await this.#environmentOf(override);
    const take = takeOf(definition, override);
    const lacking = this.#instances.lacks(instance, take);
    if (lacking !== null) return fails(`RESOURCE:${lacking}`);
    const hostPort = await hostPortOf(definition);
    const task = this.#newTask(instance, definition, { asked, override, hostPort });
    const unpullable = matchesAny(this.#place.knobs.now.unpullableImages, definition.container.image);
    const unable = unpullable ? cannotPull(definition.container.image) : 'value' in fromFiles ? null : fromFiles;
    if (unable === null && 'value' in fromFiles) {
      const [outcome] = await this.#place.fleet.start([this.#request(task, fromFiles.value)]);
      // Refusal by the engine after an interruption notice. A real agent would accept tasks for two more minutes.
      if (outcome?.status !== 'done') return fails('AGENT', outcome?.detail);
    }
    this.#byId.set(task.id, task);
    this.#instances.occupy(instance, { task: task.id, take, running: 0 });
    this.#changed(task, task.createdMs);
    if (unable !== null) this.#stopped(task, unable, nowMs(this.#place));
    return task;
  }

  /** Environment files of a task as the agent reads them, the first value of a name wins; or the resulting failure. */
  async #environmentOf(override: ContainerOverride | null): Promise<TaskEnd | { readonly value: Environment }> {
    const value: (readonly [string, string])[] = [];
    for (const { value: arn } of [...(override?.environmentFiles ?? [])].reverse()) {
      const [, bucket = '', key = ''] = /:::([^/]+)\/(.+)$/.exec(arn) ?? [];
      try {
        value.push(...environmentIn(await this.#files(bucket, key)));
      } catch (error) {
        return cannotFetch(
          `unable to download env file with key ${key} from bucket ${bucket}, error: ${String(error)}`,
        );
      }
    }
    return { value };
  }

  #newTask(
    on: ContainerInstance,
    definition: TaskDefinition,
    of: {
      readonly asked: Startable;
      readonly override: ContainerOverride | null;
      readonly hostPort: HostPort | null;
    },
  ): Task {
    const { asked, override, hostPort } = of;
    const id = hexOf(`task/${on.id}/${this.#byId.size}`, 32);
    const { container } = definition;
    const inherited = asked.propagateTags === 'TASK_DEFINITION' ? definition.tags : [];
    return {
      id,
      arn: this.#arn(on.cluster.name, id),
      definition,
      on,
      override,
      take: takeOf(definition, override),
      startedBy: asked.startedBy,
      group: asked.group ?? `family:${definition.family}`,
      createdMs: nowMs(this.#place),
      tags: new Map([...inherited, ...asked.tags].map(({ key, value }) => [key, value])),
      hostPort,
      log: this.#logs.streamFor(container, id),
      lastStatus: 'PENDING',
      desiredStatus: 'RUNNING',
      version: 0,
      startedMs: null,
      stoppingMs: null,
      stoppedMs: null,
      stopAsked: null,
      killedForMemory: false,
      end: null,
    };
  }

  #arn(cluster: string, id: string): string {
    return `arn:aws:ecs:${this.#place.region}:${this.#place.account}:task/${cluster}/${id}`;
  }

  #request(task: Task, fromFiles: Environment): StartRequest {
    const { take } = task;
    return {
      key: effectKey(`start/${task.id}`),
      attempt: attemptId(task.id),
      instance: task.on.host.id,
      command: commandLine(task.definition.container, task.override, {
        images: this.#images,
        fromFiles,
        hostPort: task.hostPort,
      }),
      env: {},
      workdir: this.#place.fleetDir,
      inputs: [],
      outputs: [],
      resources: {
        cpu: milliCpu((take.cpu / 1024) * 1000),
        memory: mib(take.memoryMiB),
        gpus: take.gpus,
        disk: mib(0),
      },
      timeoutS: null,
      checkpoint: null,
      task: { job: 'ecs', stage: task.definition.family, index: this.#byId.size, number: 1 },
    };
  }

  #find(clusterArn: string, name: string): Task | undefined {
    const task = this.#byId.get(name.split('/').at(-1) ?? '');
    return task?.on.cluster.arn === clusterArn && isVisible(this.#place, task.createdMs) ? task : undefined;
  }

  #list(asked: z.infer<typeof listTasks>): object {
    const cluster = this.#instances.cluster(asked.cluster);
    if (asked.startedBy !== undefined && (asked.family ?? asked.containerInstance) !== undefined) {
      // Rule of API_ListTasks: "When you specify startedBy as the filter, it must be the only filter that you use".
      throw new AwsFault('InvalidParameterException', 'cannot specify startedBy with another filter');
    }
    // Rule of API_ListTasks: "Although you can filter results based on a desired status of PENDING, this doesn't return
    // any results".
    const wanted = [...this.#byId.values()].filter(
      (t) =>
        t.on.cluster === cluster &&
        t.desiredStatus === asked.desiredStatus &&
        isVisible(this.#place, t.createdMs) &&
        (asked.startedBy === undefined || t.startedBy === asked.startedBy) &&
        (asked.family === undefined || t.definition.family === asked.family) &&
        (asked.containerInstance === undefined || t.on === this.#instances.find(cluster, asked.containerInstance)),
    );
    const { items, nextToken } = pageOf(wanted, asked);
    return { taskArns: items.map((t) => t.arn), nextToken };
  }

  /**
   * Stop: SIGTERM, then SIGKILL after the container's stopTimeout. No effect on a stopped task.
   * https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_StopTask.html
   */
  #stopTask(asked: z.infer<typeof stopTask>): object {
    const task = this.#find(this.#instances.cluster(asked.cluster).arn, asked.task);
    if (task === undefined) throw new AwsFault('InvalidParameterException', 'The referenced task was not found.');
    if (task.lastStatus !== 'STOPPED' && task.stopAsked === null) {
      task.stopAsked = asked.reason;
      task.desiredStatus = 'STOPPED';
      task.stoppingMs = nowMs(this.#place);
      this.#changed(task, task.stoppingMs);
      this.#terminate(task, performance.now());
    }
    return { task: taskShown(task, false) };
  }

  #terminate(task: Task, sinceMs: number): void {
    if (task.lastStatus === 'STOPPED') return;
    const { container } = task.definition;
    if (!terminate(this.#process(task), container.linuxParameters?.initProcessEnabled === true)) {
      // Process that is just being started, or has just ended.
      if (performance.now() - sinceMs < SPAWN_PATIENCE_MS)
        this.#after(SPAWN_POLL_MS, () => this.#terminate(task, sinceMs));
      return;
    }
    const stopTimeoutS = container.stopTimeout ?? task.on.host.agent.stopTimeoutS;
    const waitMs = Math.max((stopTimeoutS * 1000) / this.#place.speed, STOP_FLOOR_MS);
    this.#after(waitMs, () => {
      if (task.lastStatus !== 'STOPPED') kill(this.#process(task));
    });
  }

  #after(ms: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, ms);
    this.#timers.add(timer);
  }

  #process(task: Task): TaskProcess {
    return { fleetDir: this.#place.fleetDir, instance: task.on.host.id, attempt: task.id };
  }

  /** Start of a task's process, reported by the engine. */
  started(id: string, atMs: number): void {
    const task = this.#byId.get(id);
    if (task?.lastStatus !== 'PENDING') return;
    task.lastStatus = 'RUNNING';
    task.startedMs = atMs;
    this.#logs.open(id);
    this.#instances.occupy(task.on, { task: id, take: task.take, running: 1 });
    this.#changed(task, atMs);
    if (matchesAny(this.#place.knobs.now.outOfMemoryImages, task.definition.container.image)) {
      task.killedForMemory = true;
      this.#kill(task, performance.now());
    }
  }

  #kill(task: Task, sinceMs: number): void {
    if (task.lastStatus === 'STOPPED' || kill(this.#process(task))) return;
    if (performance.now() - sinceMs < SPAWN_PATIENCE_MS) this.#after(SPAWN_POLL_MS, () => this.#kill(task, sinceMs));
  }

  /**
   * End of a task's process, reported by the engine. Ends caused by the instance's end are told with it, since the
   * agent died too.
   */
  ended(
    id: string,
    seen: {
      readonly exitCode: number | null;
      readonly exitSignal: string | null;
      readonly stopped: string | null;
      readonly detail: string | null;
      readonly atMs: number;
    },
  ): void {
    const task = this.#byId.get(id);
    if (task === undefined || task.lastStatus === 'STOPPED') return;
    const byHost = seen.stopped !== null && seen.exitCode === null && task.stopAsked === null;
    if (byHost) return;
    this.#stopped(task, endOf(task, seen), seen.atMs);
  }

  /**
   * End of a host: its tasks stop. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html A
   * stopped host stays registered, without its agent: API_DeregisterContainerInstance.
   */
  hostGone(host: Ec2Instance, how: 'stopped' | 'terminated', atMs: number): void {
    const instance = this.#instances.ofHost(host);
    if (instance === undefined) return;
    this.#instances.disconnected(instance, atMs);
    for (const task of this.#on(instance)) {
      const reason = `Host EC2 (instance ${host.id}) ${how}.`;
      this.#stopped(task, { stopCode: 'TerminationNotice', stoppedReason: reason, exitCode: null, reason: null }, atMs);
    }
    if (how === 'terminated') this.#instances.deregistered(instance, atMs);
  }

  #stopped(task: Task, end: TaskEnd, atMs: number): void {
    const wasRunning = task.lastStatus === 'RUNNING';
    task.lastStatus = 'STOPPED';
    task.desiredStatus = 'STOPPED';
    task.stoppingMs ??= atMs;
    task.stoppedMs = atMs;
    task.end = end;
    this.#instances.occupy(task.on, { task: task.id, take: null, running: wasRunning ? -1 : 0 });
    this.#changed(task, atMs);
  }

  /** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_task_events.html */
  #changed(task: Task, atMs: number): void {
    task.version++;
    this.#place.events.add({
      source: 'aws.ecs',
      type: 'ECS Task State Change',
      atMs,
      resources: [task.arn],
      detail: { ...taskShown(task, true), updatedAt: new Date(atMs) },
    });
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** A free port of this machine for the container's. */
async function hostPortOf({ container: { portMappings } }: TaskDefinition): Promise<HostPort | null> {
  const [mapping] = portMappings;
  if (mapping === undefined) return null;
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return { containerPort: mapping.containerPort, hostPort: port };
}

const shownAll = ({ tasks, failures }: Started): object => ({
  tasks: tasks.map((task) => ({ ...taskShown(task, false), tags: tagsShown(task.tags) })),
  failures,
});
