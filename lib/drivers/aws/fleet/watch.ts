/**
 * Observations from AWS events about instances and tasks, repeated and in any order. EC2 is asked about what an event
 * leaves open. So the record depends on what happened, not on the order of events.
 */
import type { Task } from '@aws-sdk/client-ecs';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId, InstanceId } from '../../../kernel/ids.ts';
import type { EndCause } from '../../../domain/instance.ts';
import { faultOf } from '../errors.ts';
import type { Ec2, Seen } from './ec2.ts';
import { FOREIGN_IMAGE, meaningOf } from './stop-reasons.ts';
import { taskNotice, type Notice, type TaskNotice } from './event-notices.ts';
import type { Hosts } from './hosts.ts';
import type { Inbox } from './inbox.ts';
import { attemptsOf, fold, type Fact, type InstanceRecord, type TaskEnd } from './instance-record.ts';
import type { LastWords } from './task-logs.ts';

export interface WatchParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly hosts: Hosts;
  /** Wall time of an attempt's latest checkpoint mark; null if there is none. */
  readonly keptAt: (attempt: AttemptId) => Promise<number | null>;
  /** End of the log of an attempt's task; null if unreadable now. */
  readonly lastWords: (attempt: AttemptId, task: string) => Promise<LastWords | null>;
  /** Engine time of a wall time. */
  readonly engineMs: (wallMs: number) => number;
}

type AttemptNotice = Extract<Notice, { readonly mark: string }>;
type InstanceNotice = Exclude<Notice, AttemptNotice>;

/** Notice with its position in the batch and its subject. */
type About = { readonly at: number; readonly instance: InstanceId; readonly notice: InstanceNotice } | AttemptAbout;
interface AttemptAbout {
  readonly at: number;
  readonly instance: InstanceId;
  readonly notice: AttemptNotice;
  readonly attempt: AttemptId;
}

/** Ends of logs, by attempt. */
type Logs = ReadonlyMap<AttemptId, Promise<LastWords | null>>;

/** Parallel instances of one invocation; most of their time they wait for ECS. */
const INSTANCES_AT_ONCE = 5;

/** State of an instance in EC2 and ECS; undefined: not shown. */
export interface World {
  readonly shown: Seen | undefined;
  readonly host: { readonly host: string; readonly atMs: number } | undefined;
  /** Tasks that ECS still shows, by ARN. */
  readonly tasks: ReadonlyMap<string, Task>;
}

/** ARNs of tasks in the record. */
export const tasksOn = (record: InstanceRecord): readonly string[] =>
  attemptsOf(record).flatMap(([, { task }]) => (task === null ? [] : [task]));

const KILLED_WITH_HOST = 'killed as its instance went down';

/** States of an instance that was stopped by somebody or by a scheduled event. It still exists and can start again. */
const STOPPED_STATES: ReadonlySet<string> = new Set(['stopping', 'stopped']);
/** Time by which ECS has reported the tasks of a lost instance, ms. */
const SILENT_MS = 300_000;

/** Exit codes of a killed container, by its host's shutdown or by itself. */
const KILLED = new Set([137, 143]);

/**
 * Exit codes of a program for another processor, within seconds of its start. 1: AWS re:Post, "How do I troubleshoot an
 * exec format error", https://repost.aws/knowledge-center/ecs-task-exec-format-error. 255: newer engines.
 */
const FOREIGN_CODES = new Set([1, 255]);
const FOREIGN_WITHIN_MS = 30_000;

export class Watch {
  readonly #parts: WatchParts;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * Applies notices. Those of one instance are applied together, with one read and one write of its record. Answers
   * with retryable failures by position, so that the other notices need not come again.
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
          // Retryable faults of one instance do not delay the others.
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
   * True for a stopped instance that EC2 refuses to end. Its events are noted; repeating them until they become dead
   * letters would not help. The sweep tries again and reports it.
   */
  async #isLeftToSweep(instance: InstanceId, error: EbbError): Promise<boolean> {
    if (faultOf(error.cause) !== 'denied') return false;
    const record = await this.#parts.inbox.record(instance);
    return record !== null && record.gone !== null && record.endRefused !== null;
  }

  /** Applies one notice. Throws if its duties fail for now: the event must come again. */
  async notice(notice: Notice): Promise<void> {
    for (const error of (await this.notices([notice])).values()) throw error;
  }

  /** Subjects of notices. Notices about other things are left out. */
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

  /** Facts of each notice, given the record with the earlier ones. */
  async #factsOf(known: InstanceRecord, group: readonly About[]): Promise<readonly Fact[]> {
    const all: Fact[] = [];
    let record = known;
    // Parallel reads of logs: each is one call, and they are independent.
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

  /** Last words of attempts that end with these notices. */
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
        what: 'the duties after an event failed for now',
        got: failures.join('; '),
        next: 'deliver the event again',
      });
    }
  }

  async #instanceFacts(notice: InstanceNotice, record: InstanceRecord): Promise<readonly Fact[]> {
    switch (notice.is) {
      case 'gone': {
        // A known end needs no further question.
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
    // Latest mark, read now: its own event may come after the end, when it is too late.
    const markMs = known?.saves === true && end.exitCode !== 0 ? await this.#parts.keptAt(attempt) : null;
    const last = known === undefined ? null : await (logs.get(attempt) ?? this.#parts.lastWords(attempt, task));
    const detail =
      end.exitCode === 0
        ? (last?.report?.why ?? null)
        : (end.detail ?? last?.report?.why ?? (known === undefined ? null : guess(startedMs, end, last)));
    const isUnexplained = KILLED.has(end.exitCode ?? 0) && !end.isAsked && known?.stop === null;
    // True: the end follows the host's shutdown. The exit code then means nothing.
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

  /** True if EC2 is taking, or has taken, the instance. */
  async #isTaken(record: InstanceRecord): Promise<boolean> {
    if (record.ec2 === null) return false;
    if (record.warnedMs !== null || record.gone !== null) return true;
    const [seen] = await this.#parts.ec2.seen([record.ec2]);
    return seen === undefined || seen.state !== 'running';
  }

  /** Applies the state of ECS and EC2 in place of lost events. True if something was learned. */
  async repair(record: InstanceRecord, world: World, nowMs: number): Promise<boolean> {
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

/** Guess at an unexplained end. An image for another processor says so in its log only. */
function guess(startedMs: number | null, end: TaskEnd, last: LastWords | null): string | null {
  const ranMs = startedMs === null ? 0 : end.atMs - startedMs;
  const mayBeForeign = FOREIGN_CODES.has(end.exitCode ?? 0) && ranMs < FOREIGN_WITHIN_MS;
  if (mayBeForeign && /exec format error/i.test(last?.text ?? '')) return FOREIGN_IMAGE;
  return meaningOf(end.exitCode);
}

/** Notices about another instance with the same tags are ignored. */
const isOf =
  ({ ec2 }: InstanceRecord) =>
  ({ notice }: About): boolean =>
    !('ec2' in notice) || notice.ec2 === ec2;

const isOutOfMemory = (detail: string | null): boolean => /OutOfMemory|out of memory/.test(detail ?? '');

/**
 * ECS deletes stopped tasks after about an hour. The exit status is then lost. It may show a task on a stopped instance
 * as running, because the agent cannot report.
 */
const forgotten = (task: string, atMs: number, isShown: boolean): TaskNotice => ({
  is: 'task',
  mark: '',
  task,
  startedMs: null,
  end: {
    atMs,
    exitCode: null,
    detail: isShown ? 'its instance is gone' : 'ECS no longer knows its task',
    isHostGone: true,
    isAsked: false,
  },
});

/** Attempts with an unanswered RunTask on a lost instance: no task can exist any more. */
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

/** End cause by EC2's code (API_StateReason). */
function causeOf(record: InstanceRecord, code: string): EndCause {
  if (code.startsWith('Server.Spot')) return 'interrupted';
  if (record.isReleased) return 'released';
  if (code === '' && record.warnedMs !== null) return 'interrupted';
  return record.readyMs === null && code !== 'Client.UserInitiatedShutdown' ? 'failed' : 'lost';
}
