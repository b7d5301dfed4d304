/**
 * What is done about instances as their records stand: tasks that were ordered are started once their instance takes them,
 * those that are to stop are told so, instances that were given back are ended when nothing runs on them any more. Called by
 * whoever has just changed a record: the fleet's calls, the events, the sweep.
 *
 * Crash points: a duty that was done and not noted is done again, under the same token or to the same end.
 */
import { raw } from '../../kernel/units.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import { invariant } from '../../kernel/errors.ts';
import type { Ec2, Seen } from './ec2.ts';
import type { Ecs } from './ecs.ts';
import type { Inbox } from './inbox.ts';
import { duties, fold, launchedRecord, type Duty, type Fact, type InstanceRecord } from './record.ts';

export interface HostsParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly ecs: Ecs;
  readonly clock: Clock;
  /** Expected time from launch to first task, engine seconds. */
  readonly startDelayS: number;
}

/** What a duty can bring about another one for: a task that is told to stop as soon as it is there. */
const MAX_ROUNDS = 3;

export class Hosts {
  readonly #parts: HostsParts;

  constructor(parts: HostsParts) {
    this.#parts = parts;
  }

  get #nowMs(): number {
    return raw(this.#parts.clock.now());
  }

  /** Makes the record of an instance that EC2 shows, if there is none; what is known of it then. */
  adopt(seen: Pick<Seen, 'ec2' | 'instance' | 'key' | 'pool' | 'bid' | 'launchedMs'>): Promise<InstanceRecord> {
    const readyMs = seen.launchedMs + this.#parts.startDelayS * 1000;
    return this.#parts.inbox.create(launchedRecord(seen), (r) =>
      fold(r, { is: 'launched', atMs: seen.launchedMs, readyMs }),
    );
  }

  /** Our instance of an EC2 id, by its record or else by its tags; null for one that is none of ours. */
  async instanceOf(ec2: string): Promise<InstanceId | null> {
    const known = await this.#parts.inbox.instanceOf(ec2);
    if (known !== null) return known;
    const [seen] = await this.#parts.ec2.seen([ec2]);
    return seen === undefined ? null : (await this.adopt(seen)).instance;
  }

  /** Takes in facts and does what follows. Details of what could not be done now, and is to be tried again. */
  async take(instance: InstanceId, facts: readonly Fact[]): Promise<readonly string[]> {
    const record = await this.#parts.inbox.update(instance, (r) => facts.reduce(fold, r));
    return record === null ? [] : this.settle(record);
  }

  /** Does what is left to be done. Throws what EC2 or ECS refuses to hear at all. */
  async settle(record: InstanceRecord): Promise<readonly string[]> {
    const failures: string[] = [];
    let current: InstanceRecord | null = record;
    for (let round = 0; round < MAX_ROUNDS && current !== null && failures.length === 0; round++) {
      const open: readonly Duty[] = duties(current, this.#nowMs);
      if (open.length === 0) break;
      for (const duty of open) failures.push(...(await this.#do(current, duty)));
      current = await this.#parts.inbox.record(record.instance);
    }
    return failures;
  }

  async #do(record: InstanceRecord, duty: Duty): Promise<readonly string[]> {
    const { inbox, ec2, ecs } = this.#parts;
    const { instance } = record;
    switch (duty.do) {
      case 'start':
        return this.#start(record, duty.attempt);
      case 'stop': {
        // Noted before it is told: the end that follows then has its reason.
        const { attempt, why } = duty;
        await inbox.update(instance, (r) => fold(r, { is: 'stop', attempt, why, atMs: this.#nowMs }));
        await ecs.stop(duty.task, why);
        await inbox.update(instance, (r) => fold(r, { is: 'stop-sent', attempt }));
        return [];
      }
      case 'end':
        await ec2.end(duty.ec2);
        await inbox.update(instance, (r) => fold(r, { is: 'end-asked', atMs: this.#nowMs }));
        return [];
    }
  }

  async #start(record: InstanceRecord, attempt: AttemptId): Promise<readonly string[]> {
    const { inbox, ecs } = this.#parts;
    const { instance } = record;
    const order = await inbox.order(instance, attempt);
    // Its order is only just being written, and who writes it comes here next.
    if (order === null) return [];
    const claimed = await this.#claim(record, attempt);
    if (claimed === null) return [];
    const { ec2, attempts } = claimed;
    const refusals = attempts[attempt]?.refusals ?? 0;
    const started = await ecs.start(order, invariant(ec2, `instance ${instance} was launched`), refusals);
    const nowMs = this.#nowMs;
    switch (started.status) {
      case 'started':
        await inbox.setTask(attempt, started.task);
        await this.#note(instance, {
          is: 'task',
          attempt,
          task: started.task,
          startedMs: null,
          keptMs: null,
          end: null,
        });
        return [];
      case 'unknown':
        return [started.detail];
      case 'failed':
        await this.#note(instance, { is: 'tried', attempt, atMs: null });
        return [started.detail];
      case 'refused': {
        // What can never run has failed; what found no room or no host waits again.
        const why = started.why === 'invalid' ? null : 'interrupted';
        await this.#note(instance, { is: 'never', attempt, atMs: nowMs, why, detail: started.detail });
        return [];
      }
    }
  }

  /** One of several that would start it at once does; null for the others. */
  async #claim(record: InstanceRecord, attempt: AttemptId): Promise<InstanceRecord | null> {
    const expected = record.attempts[attempt]?.triedMs ?? null;
    const claim = { isOurs: false };
    const claimed = await this.#parts.inbox.update(record.instance, (r) => {
      const now = r.attempts[attempt];
      claim.isOurs = now !== undefined && now.task === null && now.triedMs === expected && r.gone === null;
      return claim.isOurs ? fold(r, { is: 'tried', attempt, atMs: this.#nowMs }) : r;
    });
    return claim.isOurs ? claimed : null;
  }

  async #note(instance: InstanceId, fact: Fact): Promise<void> {
    await this.#parts.inbox.update(instance, (r) => fold(r, fact));
  }
}
