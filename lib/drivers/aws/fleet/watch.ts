/**
 * Takes in what AWS tells of instances and tasks, however often and in whatever order it tells it. What an event leaves
 * open is asked of EC2, so that what is recorded depends on what happened and not on which event came first.
 */
import type { Task } from '@aws-sdk/client-ecs';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId, InstanceId } from '../../../kernel/ids.ts';
import type { EndCause } from '../../../domain/instance.ts';
import { faultOf } from '../errors.ts';
import type { Ec2, Seen } from './ec2.ts';
import { FOREIGN_IMAGE, meaningOf } from './ends.ts';
import { taskNotice, type Notice, type TaskNotice } from './event-notices.ts';
import type { Hosts } from './hosts.ts';
import type { Inbox } from './inbox.ts';
import { attemptsOf, fold, type Fact, type InstanceRecord, type TaskEnd } from './instance-record.ts';
import type { LastWords } from './task-logs.ts';

export interface WatchParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly hosts: Hosts;
  /** Wall time of the newest mark that an attempt's checkpoint was written; null when there is none. */
  readonly keptAt: (attempt: AttemptId) => Promise<number | null>;
  /** How the log of an attempt's task ends; null where it cannot be read now. */
  readonly lastWords: (attempt: AttemptId, task: string) => Promise<LastWords | null>;
  /** Engine time of a wall time. */
  readonly engineMs: (wallMs: number) => number;
}

type AttemptNotice = Extract<Notice, { readonly mark: string }>;
type InstanceNotice = Exclude<Notice, AttemptNotice>;

/** A notice, by its place among those that came with it, and whose it is. */
type About = { readonly at: number; readonly instance: InstanceId; readonly notice: InstanceNotice } | AttemptAbout;
interface AttemptAbout {
  readonly at: number;
  readonly instance: InstanceId;
  readonly notice: AttemptNotice;
  readonly attempt: AttemptId;
}

/** How the logs of attempts end, by attempt. */
type Logs = ReadonlyMap<AttemptId, Promise<LastWords | null>>;

/** Of one invocation; most of their time they wait for ECS. */
const INSTANCES_AT_ONCE = 5;

/** What EC2 and ECS show of an instance at a time: undefined where they show nothing. */
export interface World {
  readonly shown: Seen | undefined;
  readonly host: { readonly host: string; readonly atMs: number } | undefined;
  /** Its tasks that ECS still knows, by ARN. */
  readonly tasks: ReadonlyMap<string, Task>;
}

/** ARNs of the tasks that the record knows of. */
export const tasksOn = (record: InstanceRecord): readonly string[] =>
  attemptsOf(record).flatMap(([, { task }]) => (task === null ? [] : [task]));

const KILLED_WITH_HOST = 'killed as its instance went down';

/** States of an instance that somebody, or a scheduled event, stopped; it is there still, and can be started again. */
const STOPPED_STATES: ReadonlySet<string> = new Set(['stopping', 'stopped']);
/** By then ECS has told of the tasks of an instance that is gone, ms. */
const SILENT_MS = 300_000;

/** What a container's exit code is when it was killed: by a host that shuts down, or by its own doing. */
const KILLED = new Set([137, 143]);

/**
 * Exit codes of a container whose program the processor does not understand, within seconds of its start: 1 (AWS
 * re:Post, "How do I troubleshoot an exec format error",
 * https://repost.aws/knowledge-center/ecs-task-exec-format-error), and 255 of newer engines.
 */
const FOREIGN_CODES = new Set([1, 255]);
const FOREIGN_WITHIN_MS = 30_000;

export class Watch {
  readonly #parts: WatchParts;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * Takes in notices, those of one instance together: each record is read and written once. What could not be taken in,
   * by the notice's place: throws nothing that may pass, so that the others need not come again.
   */
  async notices(notices: readonly Notice[]): Promise<ReadonlyMap<number, EbbError>> {
    const about = await this.#about(notices);
    const failed = new Map<number, EbbError>();
    const known = new Map(
      (await this.#parts.inbox.records([...new Set(about.map((n) => n.instance))])).map((r) => [r.instance, r]),
    );
    const groups = [...Map.groupBy(about, (n) => n.instance)];
    const worker = async (): Promise<void> => {
      for (let next = groups.shift(); next !== undefined; next = groups.shift()) {
        const [instance, group] = next;
        try {
          const record = known.get(instance);
          if (record !== undefined) await this.#take(record, await this.#factsOf(record, group.filter(isOf(record))));
        } catch (error) {
          // One instance that cannot be helped now must not keep the others waiting.
          if (!(error instanceof EbbError) || error.code === 'internal') throw error;
          if (await this.#isLeftToSweep(instance, error)) continue;
          for (const { at } of group) failed.set(at, error);
        }
      }
    };
    await Promise.all(Array.from({ length: INSTANCES_AT_ONCE }, worker));
    return failed;
  }

  /**
   * One that somebody stopped, and that EC2 must not end: all that events say of it is noted, and they would say it in
   * vain until they are put aside as dead letters. The sweep asks again, and tells of it.
   */
  async #isLeftToSweep(instance: InstanceId, error: EbbError): Promise<boolean> {
    if (faultOf(error.cause) !== 'denied') return false;
    const record = await this.#parts.inbox.record(instance);
    return record !== null && record.gone !== null && record.endRefused !== null;
  }

  /** Throws when what follows cannot be done now: the event is to be delivered again. */
  async notice(notice: Notice): Promise<void> {
    for (const error of (await this.notices([notice])).values()) throw error;
  }

  /** Whose notices they are; those that are about nothing of ours are left out. */
  async #about(notices: readonly Notice[]): Promise<readonly About[]> {
    const { hosts, inbox } = this.#parts;
    const marks = notices.flatMap((n) => ('mark' in n ? [n.mark] : []));
    const ids = notices.flatMap((n) => ('ec2' in n ? [n.ec2] : []));
    const [marked, instances] = [await inbox.marked(marks), await hosts.instancesOf([...new Set(ids)])];
    return notices.flatMap((notice, at): About[] => {
      if ('mark' in notice) {
        const of = marked.get(notice.mark);
        return of === undefined ? [] : [{ at, instance: of.instance, notice, attempt: of.attempt }];
      }
      const instance = instances.get(notice.ec2);
      return instance === undefined ? [] : [{ at, instance, notice }];
    });
  }

  /** Each notice is understood by what the record says with those before it. */
  async #factsOf(known: InstanceRecord, group: readonly About[]): Promise<readonly Fact[]> {
    const all: Fact[] = [];
    let record = known;
    // Logs are read at once: each is a call, and what it says depends on nothing that comes before.
    const logs = this.#lastWordsOf(known, group);
    await Promise.allSettled(logs.values());
    for (const about of group) {
      const facts =
        'attempt' in about
          ? [await this.#attemptFact(about, record, logs)]
          : await this.#instanceFacts(about.notice, record);
      all.push(...facts);
      record = facts.reduce(fold, record);
    }
    return all;
  }

  /** Of the attempts that end, and had not ended before. */
  #lastWordsOf(record: InstanceRecord, group: readonly About[]): Logs {
    const logs = new Map<AttemptId, Promise<LastWords | null>>();
    for (const about of group) {
      if (!('attempt' in about) || about.notice.is !== 'task' || about.notice.end === null) continue;
      const { attempt, notice } = about;
      if (record.attempts[attempt] === undefined || logs.has(attempt)) continue;
      logs.set(attempt, this.#parts.lastWords(attempt, notice.task));
    }
    return logs;
  }

  async #take(record: InstanceRecord, facts: readonly Fact[]): Promise<void> {
    const failures = await this.#parts.hosts.take(record.instance, facts, record);
    if (failures.length > 0) {
      throw new EbbError('aws.unavailable', {
        what: 'what follows from an event cannot be done now',
        got: failures.join('; '),
        next: 'deliver the event again',
      });
    }
  }

  async #instanceFacts(notice: InstanceNotice, record: InstanceRecord): Promise<readonly Fact[]> {
    switch (notice.is) {
      case 'gone': {
        // Of an end that is known already nothing more is asked.
        if (record.gone !== null) return [];
        const [seen] = await this.#parts.ec2.seen([notice.ec2]);
        return [goneFact(record, seen, notice)];
      }
      case 'rebalance':
        return [{ is: 'rebalance', atMs: notice.atMs }];
      case 'warned':
        return [{ is: 'warned', atMs: notice.atMs, goneMs: notice.goneMs }];
      case 'ready':
        return [{ is: 'ready', atMs: notice.atMs, host: notice.host }];
    }
  }

  async #attemptFact(
    { notice, attempt }: Pick<AttemptAbout, 'notice' | 'attempt'>,
    record: InstanceRecord,
    logs: Logs = new Map(),
  ): Promise<Fact> {
    const { engineMs } = this.#parts;
    if (notice.is === 'kept') return { is: 'kept', attempt, atMs: engineMs(notice.atMs) };
    const { task, startedMs, end } = notice;
    if (end === null) return { is: 'task', attempt, task, startedMs, keptMs: null, end };
    const known = record.attempts[attempt];
    // The mark's own event may come after this one, when nothing more can be said of the attempt.
    const markMs = known?.saves === true && end.exitCode !== 0 ? await this.#parts.keptAt(attempt) : null;
    const last = known === undefined ? null : await (logs.get(attempt) ?? this.#parts.lastWords(attempt, task));
    const detail =
      end.exitCode === 0
        ? (last?.report?.why ?? null)
        : (end.detail ?? last?.report?.why ?? (known === undefined ? null : guess(startedMs, end, last)));
    const isUnexplained = KILLED.has(end.exitCode ?? 0) && !end.isAsked && known?.stop === null;
    // Whatever code a program answers the shutdown of its host with.
    const isAfterwards = record.gone !== null && end.exitCode !== 0 && end.atMs >= record.gone.atMs;
    const isHostGone =
      end.isHostGone || isAfterwards || (isUnexplained && !isOutOfMemory(detail) && (await this.#isTaken(record)));
    return {
      is: 'task',
      attempt,
      task,
      startedMs,
      keptMs: markMs === null ? null : engineMs(markMs),
      end: {
        ...end,
        detail: detail ?? (isHostGone ? KILLED_WITH_HOST : null),
        isHostGone,
        usage: last?.report?.usage ?? null,
      },
    };
  }

  /** Whether EC2 is taking, or has taken, the instance. */
  async #isTaken(record: InstanceRecord): Promise<boolean> {
    if (record.ec2 === null) return false;
    if (record.warnedMs !== null || record.gone !== null) return true;
    const [seen] = await this.#parts.ec2.seen([record.ec2]);
    return seen === undefined || seen.state !== 'running';
  }

  /** Takes in what ECS and EC2 show of an instance, for events that never came. True when something was learned. */
  async lookAfter(record: InstanceRecord, world: World, nowMs: number): Promise<boolean> {
    const { shown: seen, host, tasks: found } = world;
    const tasks = attemptsOf(record).flatMap(([attempt, a]) => (a.task === null ? [] : [{ attempt, task: a.task }]));
    const facts: Fact[] = host === undefined ? [] : [{ is: 'ready', atMs: host.atMs, host: host.host }];
    for (const { attempt, task } of tasks) {
      const now = found.get(task);
      const isSilent = now?.lastStatus !== 'STOPPED' && record.gone !== null && nowMs - record.gone.atMs > SILENT_MS;
      const notice =
        now === undefined || isSilent
          ? forgotten(task, nowMs, now !== undefined)
          : taskNotice(
              {
                taskArn: task,
                startedBy: now.startedBy ?? '',
                lastStatus: now.lastStatus ?? '',
                startedAt: now.startedAt?.getTime(),
                stoppedAt: now.stoppedAt?.getTime(),
                executionStoppedAt: now.executionStoppedAt?.getTime(),
                stopCode: now.stopCode,
                stoppedReason: now.stoppedReason,
                containers: (now.containers ?? []).map(({ exitCode, reason }) => ({ exitCode, reason })),
              },
              nowMs,
            );
      if (notice !== null) facts.push(await this.#attemptFact({ notice, attempt }, record));
    }
    const isStopped = STOPPED_STATES.has(seen?.state ?? '');
    if (isStopped || seen === undefined || seen.state === 'terminated') {
      facts.push(...lostOrders(record, nowMs), goneFact(record, seen, { atMs: nowMs, isStopped }));
    }
    const before = record.sequence;
    await this.#take(record, facts);
    return ((await this.#parts.inbox.record(record.instance))?.sequence ?? before) > before;
  }
}

/** Of an end that nobody has explained. What its image cannot run at all says so in its log, and nowhere else. */
function guess(startedMs: number | null, end: TaskEnd, last: LastWords | null): string | null {
  const ranMs = startedMs === null ? 0 : end.atMs - startedMs;
  const mayBeForeign = FOREIGN_CODES.has(end.exitCode ?? 0) && ranMs < FOREIGN_WITHIN_MS;
  if (mayBeForeign && /exec format error/i.test(last?.text ?? '')) return FOREIGN_IMAGE;
  return meaningOf(end.exitCode);
}

/** What is told of another instance that bears the same tags says nothing of this one. */
const isOf =
  ({ ec2 }: InstanceRecord) =>
  ({ notice }: About): boolean =>
    !('ec2' in notice) || notice.ec2 === ec2;

const isOutOfMemory = (detail: string | null): boolean => /OutOfMemory|out of memory/.test(detail ?? '');

/**
 * ECS forgets a task about an hour after it stopped: what became of it nobody knows any more. Of one on an instance
 * that was stopped it may go on to say that it runs, as the agent is not there to tell.
 */
const forgotten = (task: string, atMs: number, isShown: boolean): TaskNotice => ({
  is: 'task',
  mark: '',
  task,
  startedMs: null,
  end: {
    atMs,
    exitCode: null,
    detail: isShown ? 'its instance is gone' : 'ECS does not know its task any more',
    isHostGone: true,
    isAsked: false,
  },
});

/**
 * Attempts for which a task was asked of ECS without an answer, on an instance that is gone: they can have none any
 * more.
 */
const lostOrders = (record: InstanceRecord, atMs: number): Fact[] =>
  attemptsOf(record).flatMap(([attempt, a]): Fact[] =>
    a.task === null ? [{ is: 'never', attempt, atMs, why: 'interrupted', detail: 'its instance ended' }] : [],
  );

function goneFact(
  record: InstanceRecord,
  seen: Seen | undefined,
  told: { readonly atMs: number; readonly isStopped: boolean },
): Fact {
  const { code = '', text = '' } = seen?.reason ?? {};
  const isStopped = told.isStopped && seen?.state !== 'terminated' && seen?.state !== 'shutting-down';
  const what = isStopped ? 'stopped in EC2' : 'terminated by EC2';
  return {
    is: 'gone',
    atMs: seen?.changedMs ?? told.atMs,
    cause: causeOf(record, code),
    detail: isStopped ? [what, text].filter((t) => t !== '').join(': ') : text || what,
    isStopped,
  };
}

/** API_StateReason lists the codes. */
function causeOf(record: InstanceRecord, code: string): EndCause {
  if (code.startsWith('Server.Spot')) return 'interrupted';
  if (record.isReleased) return 'released';
  if (code === '' && record.warnedMs !== null) return 'interrupted';
  return record.readyMs === null && code !== 'Client.UserInitiatedShutdown' ? 'failed' : 'lost';
}
