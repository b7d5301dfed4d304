/**
 * What is done about instances as their records stand: tasks that were ordered are started once their instance takes
 * them, those that are to stop are told so, instances that were given back are ended when nothing runs on them any
 * more. Called by whoever has just changed a record: the fleet's calls, the events, the sweep.
 *
 * Crash points: a duty that was done and not noted is done again, under the same token or to the same end.
 */
import { raw } from '../../../kernel/units.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { instanceId, type AttemptId, type InstanceId } from '../../../kernel/ids.ts';
import { invariant, messageOf } from '../../../kernel/errors.ts';
import type { StartRequest } from '../../../ports/fleet.ts';
import { namesInstance, type Ec2, type Seen, type SeenInstance } from './ec2.ts';
import type { Ecs } from './ecs.ts';
import type { Inbox } from './inbox.ts';
import { duties, fold, isOpen, launchedRecord, type Duty, type Fact, type InstanceRecord } from './instance-record.ts';

export interface HostsParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly ecs: Ecs;
  readonly clock: Clock;
  /** Expected time from launch to first task, engine seconds. */
  readonly startDelayS: number;
}

/** An instance's record, and details of what could not be done about it now. */
export interface Settled {
  readonly record: InstanceRecord;
  readonly failures: readonly string[];
}

interface Claimed {
  readonly record: InstanceRecord;
  readonly ours: readonly AttemptId[];
}

/**
 * Tasks that are claimed, asked for at once, and noted, in one write: of more a process that dies would leave too many
 * to be asked for again, and ECS would throttle.
 */
const STARTS_AT_ONCE = 10;

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

  /**
   * Makes the record of an instance that EC2 shows, if there is none; what is known then. That may be of another one,
   * which bears the same tags: `ec2` of the record says of which.
   */
  adopt(seen: Pick<SeenInstance, 'ec2' | 'instance' | 'key' | 'pool' | 'bid' | 'launchedMs'>): Promise<InstanceRecord> {
    const readyMs = seen.launchedMs + this.#parts.startDelayS * 1000;
    return this.#parts.inbox.create(launchedRecord(seen), (r) =>
      fold(r, { is: 'launched', atMs: seen.launchedMs, readyMs }),
    );
  }

  /**
   * Our instances by EC2 ids, by their records or else by their tags; those are missing that are none of ours, or only
   * say so.
   */
  async instancesOf(ec2: readonly string[]): Promise<ReadonlyMap<string, InstanceId>> {
    const found = new Map(await this.#parts.inbox.instancesOf(ec2));
    const unknown = ec2.filter((id) => !found.has(id));
    if (unknown.length === 0) return found;
    const owned = [...(await this.owned(await this.#parts.ec2.seen(unknown))).values()];
    const records = await this.#parts.inbox.records(owned.map((s) => instanceId(s.instance)));
    const known = new Map(records.map((r) => [r.instance, r]));
    for (const seen of owned) {
      const record = known.get(instanceId(seen.instance)) ?? (await this.adopt(seen));
      known.set(record.instance, record);
      if (record.ec2 === seen.ec2) found.set(seen.ec2, record.instance);
    }
    return found;
  }

  /**
   * Which instances of ours EC2 shows, by EC2's ids: by their own tag, or by their place among those that they were
   * bought with. Those are missing that say nothing of the kind. Tags can be copied: the record decides.
   */
  async owned(all: readonly Seen[]): Promise<ReadonlyMap<string, SeenInstance>> {
    const { inbox } = this.#parts;
    const found = new Map(all.filter(namesInstance).map((s) => [s.ec2, s]));
    const grouped = all.filter((s) => s.instance === null && s.launch !== null);
    const groups = Map.groupBy(grouped, (s) => s.launch ?? '');
    const orders = await inbox.launchOrders([...groups.keys()]);
    for (const [group, members] of groups) {
      const ids = members.map((s) => s.ec2);
      const known = orders.get(group);
      if (known === undefined) continue;
      const order = ids.every((id) => known.ec2.includes(id)) ? known : ((await inbox.assign(group, ids)) ?? known);
      for (const seen of members) {
        const member = order.members[order.ec2.indexOf(seen.ec2)];
        if (member !== undefined) found.set(seen.ec2, { ...seen, ...member, pool: order.pool, bid: order.bid });
      }
    }
    return found;
  }

  /**
   * Takes in facts and does what follows. Details of what could not be done now, and is to be tried again. `known`: see
   * `Inbox.update`.
   */
  async take(
    instance: InstanceId,
    facts: readonly Fact[],
    known: InstanceRecord | null = null,
  ): Promise<readonly string[]> {
    const record = await this.#parts.inbox.update(instance, (r) => facts.reduce(fold, r), known);
    return record === null ? [] : (await this.settle(record)).failures;
  }

  /** Does what is left to be done. Throws what EC2 or ECS refuses to hear at all. */
  async settle(record: InstanceRecord): Promise<Settled> {
    let settled: Settled = { record, failures: [] };
    for (let round = 0; round < MAX_ROUNDS && settled.failures.length === 0; round++) {
      const open = duties(settled.record, this.#nowMs);
      if (open.length === 0) break;
      settled = await this.#doAll(settled.record, open);
    }
    return settled;
  }

  async #doAll(record: InstanceRecord, open: readonly Duty[]): Promise<Settled> {
    const starts = open.flatMap((d) => (d.do === 'start' ? [d.attempt] : []));
    const stops = open.filter((d) => d.do === 'stop');
    const ends = open.filter((d) => d.do === 'end');
    const failures: string[] = [];
    let current = record;
    for (let from = 0; from < starts.length; from += STARTS_AT_ONCE) {
      const started = await this.#start(current, starts.slice(from, from + STARTS_AT_ONCE));
      current = started.record;
      failures.push(...started.failures);
    }
    if (stops.length > 0) current = await this.#stop(current, stops);
    for (const { ec2 } of ends) current = await this.#end(current, ec2);
    return { record: current, failures };
  }

  /** Throws what EC2 says against it, noted. */
  async #end(record: InstanceRecord, ec2: string): Promise<InstanceRecord> {
    try {
      await this.#parts.ec2.end(ec2);
    } catch (error) {
      const detail = messageOf(error);
      await this.#noted(record, [{ is: 'end-refused', atMs: this.#nowMs, detail }]);
      throw error;
    }
    return this.#noted(record, [{ is: 'end-asked', atMs: this.#nowMs }]);
  }

  async #stop(record: InstanceRecord, stops: readonly Extract<Duty, { do: 'stop' }>[]): Promise<InstanceRecord> {
    const atMs = this.#nowMs;
    // Noted before it is told: the end that follows then has its reason.
    let current = await this.#noted(
      record,
      stops.map(({ attempt, why }) => ({ is: 'stop', attempt, why, atMs })),
    );
    const sent: Fact[] = [];
    try {
      for (const { attempt, task, why } of stops) {
        await this.#parts.ecs.stop(task, why);
        sent.push({ is: 'stop-sent', attempt });
      }
    } finally {
      current = await this.#noted(current, sent);
    }
    return current;
  }

  async #start(record: InstanceRecord, attempts: readonly AttemptId[]): Promise<Settled> {
    const { inbox } = this.#parts;
    // One whose order is missing: it is only just being written, and who writes it comes here next.
    const orders = await inbox.orders(attempts);
    const claimed = await this.#claim(
      record,
      attempts.filter((a) => orders.has(a)),
    );
    const ours = claimed.ours.map((a) => invariant(orders.get(a), `attempt ${a} is ordered`));
    return this.startClaimed(claimed.record, ours);
  }

  /** Those of the attempts that are started at once, by whoever has the record changed so; up to ten. */
  claimable(record: InstanceRecord, attempts: readonly AttemptId[]): readonly AttemptId[] {
    if (record.host === null || !isOpen(record)) return [];
    const isUntried = (a: AttemptId): boolean =>
      record.attempts[a]?.triedMs === null && record.attempts[a].task === null;
    return attempts.filter(isUntried).slice(0, STARTS_AT_ONCE);
  }

  /** Asks for tasks of attempts that this process has claimed, and notes what comes of it. */
  async startClaimed(record: InstanceRecord, orders: readonly StartRequest[]): Promise<Settled> {
    const asked = await Promise.allSettled(orders.map((order) => this.#ask(record, order)));
    const answers = asked.flatMap((a) => (a.status === 'fulfilled' ? [a.value] : []));
    // What was started is noted, whatever became of another one.
    const noted = await this.#noted(
      record,
      answers.flatMap((a) => a.facts),
    );
    for (const a of asked) if (a.status === 'rejected') throw a.reason;
    return { record: noted, failures: answers.flatMap((a) => a.failures) };
  }

  /** Asks ECS for a task; what is to be noted of its answer. */
  async #ask(
    { instance, ec2, attempts }: InstanceRecord,
    order: StartRequest,
  ): Promise<{ readonly facts: readonly Fact[]; readonly failures: readonly string[] }> {
    const { attempt } = order;
    const refusals = attempts[attempt]?.refusals ?? 0;
    const started = await this.#parts.ecs.start(order, invariant(ec2, `instance ${instance} was launched`), refusals);
    switch (started.status) {
      case 'started': {
        const { task } = started;
        return { facts: [{ is: 'task', attempt, task, startedMs: null, keptMs: null, end: null }], failures: [] };
      }
      case 'unknown':
        return { facts: [], failures: [started.detail] };
      case 'failed':
        return { facts: [{ is: 'tried', attempt, atMs: null }], failures: [started.detail] };
      case 'refused': {
        // What can never run has failed; what found no room or no host waits again.
        const why = started.why === 'invalid' ? null : 'interrupted';
        return { facts: [{ is: 'never', attempt, atMs: this.#nowMs, why, detail: started.detail }], failures: [] };
      }
    }
  }

  /** Of several that would start attempts at once, one starts each: those that are ours to start. */
  async #claim(record: InstanceRecord, attempts: readonly AttemptId[]): Promise<Claimed> {
    let ours: readonly AttemptId[] = [];
    const atMs = this.#nowMs;
    const claimed = await this.#parts.inbox.update(
      record.instance,
      (r) => {
        ours = attempts.filter((a) => {
          const now = r.attempts[a];
          const isAsExpected = now?.triedMs === (record.attempts[a]?.triedMs ?? null);
          return now !== undefined && now.task === null && isAsExpected && r.gone === null;
        });
        return ours.reduce((next, attempt) => fold(next, { is: 'tried', attempt, atMs }), r);
      },
      record,
    );
    return claimed === null ? { record, ours: [] } : { record: claimed, ours };
  }

  async #noted(record: InstanceRecord, facts: readonly Fact[]): Promise<InstanceRecord> {
    if (facts.length === 0) return record;
    return (await this.#parts.inbox.update(record.instance, (r) => facts.reduce(fold, r), record)) ?? record;
  }
}
