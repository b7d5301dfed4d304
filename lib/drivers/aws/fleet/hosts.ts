/**
 * Duties of instances by their records. Ordered tasks are started once the instance accepts them, tasks with a stop
 * request are stopped, and released instances are ended once empty. Callers are all that have just changed a record:
 * the fleet, the events, the sweep.
 *
 * Crash points: a duty that was done but not noted is repeated, under the same token or to the same end.
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

/** Record of an instance, and details of duties that failed for now. */
export interface Settled {
  readonly record: InstanceRecord;
  readonly failures: readonly string[];
}

interface Claimed {
  readonly record: InstanceRecord;
  readonly ours: readonly AttemptId[];
}

/** Starts per write. A crash leaves at most these to repeat. More would also be throttled by ECS. */
const STARTS_AT_ONCE = 10;

/** Rounds of duties: stopping a task can follow its start. */
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
   * Creates the record of an instance that EC2 shows, if missing. The answer may be the record of another instance with
   * the same tags; its `ec2` tells.
   */
  adopt(seen: Pick<SeenInstance, 'ec2' | 'instance' | 'key' | 'pool' | 'bid' | 'launchedMs'>): Promise<InstanceRecord> {
    const readyMs = seen.launchedMs + this.#parts.startDelayS * 1000;
    return this.#parts.inbox.create(launchedRecord(seen), (r) =>
      fold(r, { is: 'launched', atMs: seen.launchedMs, readyMs }),
    );
  }

  /** Our instances by EC2 id, from records or else from tags. Ids of unknown or foreign instances are missing. */
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
   * Our instances that EC2 shows, by EC2 id. A tag of their own or their place in their group identifies them. Tags can
   * be copied, so the record decides.
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
   * Applies facts and performs the duties that follow. Answers with details of duties that failed for now. `known`: see
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

  /** Performs open duties. Throws faults of EC2 and ECS that concern all instances. */
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

  /** Ends the instance. A refusal of EC2 is noted and thrown. */
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
    // Note first: the end that follows then has its reason.
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
    // Attempts without an order are skipped: its writer comes here next.
    const orders = await inbox.orders(attempts);
    const claimed = await this.#claim(
      record,
      attempts.filter((a) => orders.has(a)),
    );
    const ours = claimed.ours.map((a) => invariant(orders.get(a), `attempt ${a} is ordered`));
    return this.startClaimed(claimed.record, ours);
  }

  /** Attempts that are started at once by the writer of this record, up to ten. */
  claimable(record: InstanceRecord, attempts: readonly AttemptId[]): readonly AttemptId[] {
    if (record.host === null || !isOpen(record)) return [];
    const isUntried = (a: AttemptId): boolean =>
      record.attempts[a]?.triedMs === null && record.attempts[a].task === null;
    return attempts.filter(isUntried).slice(0, STARTS_AT_ONCE);
  }

  /** Starts tasks of attempts that this process has claimed, and notes the outcomes. */
  async startClaimed(record: InstanceRecord, orders: readonly StartRequest[]): Promise<Settled> {
    const asked = await Promise.allSettled(orders.map((order) => this.#ask(record, order)));
    const answers = asked.flatMap((a) => (a.status === 'fulfilled' ? [a.value] : []));
    // Outcomes of all starts are noted, even if one failed.
    const noted = await this.#noted(
      record,
      answers.flatMap((a) => a.facts),
    );
    for (const a of asked) if (a.status === 'rejected') throw a.reason;
    return { record: noted, failures: answers.flatMap((a) => a.failures) };
  }

  /** Starts a task. Answers with the facts to note. */
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
        // Invalid starts have failed. Starts without room or host wait again.
        const why = started.why === 'invalid' ? null : 'interrupted';
        return { facts: [{ is: 'never', attempt, atMs: this.#nowMs, why, detail: started.detail }], failures: [] };
      }
    }
  }

  /** Claims attempts: of several processes, one starts each. Answers with those that are claimed here. */
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
