/**
 * The Fleet port on EC2 and ECS. One record per instance holds what was asked for and what happened
 * (instance-record.ts, inbox.ts). Events and the sweep bring in observations (watch.ts, sweep.ts).
 *
 * Lifecycle: any number of Lambdas use it at once; nothing to close. Crash points: between a call to AWS and its note.
 * A repeated launch finds its instances by the client token. An instance without a record is adopted by its tags.
 */
import type { Clock } from '../../../kernel/clock.ts';
import { EbbError } from '../../../kernel/errors.ts';
import type { AttemptId, EffectKey, InstanceId, PoolId } from '../../../kernel/ids.ts';
import { poolId } from '../../../kernel/ids.ts';
import { epochMs, raw, rawOrNull, usdPerHour, type EpochMs } from '../../../kernel/units.ts';
import type { Observation } from '../../../domain/observation.ts';
import type { EffectOutcome } from '../../../domain/plan.ts';
import type {
  Bill,
  Fleet,
  FleetInstance,
  LaunchRequest,
  LogChunk,
  ReleaseRequest,
  StartRequest,
  StopRequest,
} from '../../../ports/fleet.ts';
import { instanceId } from '../../../kernel/ids.ts';
import { outcomeOfThrown, type Unsuccessful } from '../errors.ts';
import type { Ec2 } from './ec2.ts';
import type { Hosts } from './hosts.ts';
import type { Inbox, LaunchOrder } from './inbox.ts';
import { launchGroups, type LaunchGroup } from './launch-groups.ts';
import { tokenOf } from './request-names.ts';
import { fold, isOpen, launchedRecord, trimmed, type InstanceRecord } from './instance-record.ts';
import { bidNumber, isBoughtAs } from '../../../domain/pool.ts';

export interface AwsFleetParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly hosts: Hosts;
  readonly clock: Clock;
  readonly bill: (instance: InstanceId, until: EpochMs) => Promise<Bill>;
  readonly logs: Fleet['logs'];
}

/** A bought instance whose record is still to be written. */
interface Made {
  readonly instance: InstanceId;
  readonly key: EffectKey;
  readonly pool: PoolId;
  readonly bid: number | 'uncapped';
  readonly ec2: string;
}

/** Reserved pools that had no capacity left in this call, with the answer. */
type FullPools = Map<PoolId, Unsuccessful>;

const DONE: EffectOutcome = { status: 'done' };
const gone = (detail: string): EffectOutcome => ({ status: 'refused', why: 'instance-gone', detail });
/** Parallel calls of one process; most of their time they wait. */
const AT_ONCE = 5;
/** Number of observations from which applied ones are dropped from a record that always has news. */
const TRIM_FROM = 64;

export class AwsFleet implements Fleet {
  readonly #parts: AwsFleetParts;

  constructor(parts: AwsFleetParts) {
    this.#parts = parts;
  }

  async launch(requests: readonly LaunchRequest[]): Promise<readonly EffectOutcome[]> {
    const made: Made[] = [];
    // One request per instance: a repeated one in the same call is dropped.
    const unique = [...new Map(requests.map((r) => [r.instance, r])).values()];
    const outcomes = new Map<InstanceId, EffectOutcome>();
    const full: FullPools = new Map();
    await inParallel(inSequence(launchGroups(unique)), async (groups) => {
      for (const group of groups) {
        const found = await attemptedAll(group.requests, () => this.#launchGroup(group, made, full));
        group.requests.forEach((r, i) => outcomes.set(r.instance, found[i] ?? DONE));
      }
    });
    await this.#noteLaunched(made, outcomes);
    return requests.map((r) => outcomes.get(r.instance) ?? DONE);
  }

  async #launchGroup({ id, requests }: LaunchGroup, made: Made[], full: FullPools): Promise<readonly EffectOutcome[]> {
    const { inbox } = this.#parts;
    const known = new Map((await inbox.records(requests.map((r) => r.instance))).map((r) => [r.instance, r]));
    const open = requests.filter((r) => !known.has(r.instance));
    const order = id === null || open.length === 0 ? null : await this.#orderOf(id, open);
    const asked = new Map<InstanceId, EffectOutcome>();
    if (order !== null && id !== null) {
      for (const [instance, outcome] of await this.#launchTogether(id, order, made)) asked.set(instance, outcome);
    }
    // Launches without a group, and those missing from its order.
    for (const request of open) {
      if (!asked.has(request.instance)) asked.set(request.instance, await this.#launchAlone(request, made, full));
    }
    return requests.map((r) => known.get(r.instance)?.refused ?? asked.get(r.instance) ?? DONE);
  }

  /** Order of the group's request; null: a single launch is bought alone. */
  #orderOf(group: string, open: readonly LaunchRequest[]): Promise<LaunchOrder | null> {
    const { inbox, ec2 } = this.#parts;
    const [first] = open;
    // A group's order may exist already. Its last open launch then repeats the whole request.
    if (first === undefined || open.length === 1) return inbox.launchOrder(group);
    return inbox.orderLaunch(group, {
      members: open.map(({ instance, key }) => ({ instance, key })),
      pool: first.pool,
      bid: bidNumber(first.bid),
      template: ec2.template,
      ec2: [],
    });
  }

  async #launchAlone(request: LaunchRequest, made: Made[], full: FullPools): Promise<EffectOutcome> {
    const { key, instance, pool } = request;
    const { ec2 } = this.#parts;
    const of = plain(request);
    const before = full.get(pool);
    if (before !== undefined) return this.#notLaunched(of, before);
    const purchase = { ...of, count: 1, tags: { key, instance }, template: ec2.template };
    const bought = await ec2.buy({ ...purchase, token: tokenOf('launch', key, instance) });
    const [id] = bought.ec2;
    if (id !== undefined) made.push({ ...of, ec2: id });
    else if (bought.lacking !== null) {
      if (isBoughtAs(pool, 'reserved') && isLackOfCapacity(bought.lacking)) full.set(pool, bought.lacking);
      return this.#notLaunched(of, bought.lacking);
    }
    return DONE;
  }

  /** Repeats the whole request. EC2 answers the same, and instances that are known already stay as they are. */
  async #launchTogether(
    group: string,
    { members, pool, bid, template }: LaunchOrder,
    made: Made[],
  ): Promise<ReadonlyMap<InstanceId, EffectOutcome>> {
    const { inbox, ec2 } = this.#parts;
    const tags = { launch: group };
    const asked = { token: tokenOf('launch together', group), pool, bid, count: members.length, tags, template };
    const bought = await ec2.buy(asked);
    const assigned = (await inbox.assign(group, bought.ec2))?.ec2 ?? [];
    const outcomes = new Map<InstanceId, EffectOutcome>();
    for (const [n, member] of members.entries()) {
      const id = assigned[n];
      const of = { ...member, pool, bid };
      if (id !== undefined) made.push({ ...of, ec2: id });
      const isLacking = id === undefined && bought.lacking !== null;
      outcomes.set(member.instance, isLacking ? await this.#notLaunched(of, bought.lacking) : DONE);
    }
    return outcomes;
  }

  /** Notes a refusal. A repeated launch gets the same answer. */
  async #notLaunched(of: Omit<Made, 'ec2'>, outcome: Unsuccessful): Promise<EffectOutcome> {
    if (outcome.status === 'refused') {
      await this.#parts.inbox.create(launchedRecord({ ...of, ec2: null, refused: outcome }), (r) => r);
    }
    return outcome;
  }

  /** Times of all launches by EC2's clock, in one request. An instance that EC2 does not show yet was launched now. */
  async #noteLaunched(made: readonly Made[], outcomes: Map<InstanceId, EffectOutcome>): Promise<void> {
    if (made.length === 0) return;
    const nowMs = raw(this.#parts.clock.now());
    // Purchases are kept even if EC2 cannot be asked.
    const seen = await this.#parts.ec2.seen(made.map((m) => m.ec2)).catch(() => []);
    const launchedMs = new Map(seen.map((s) => [s.ec2, s.launchedMs]));
    await inParallel(made, async (each) => {
      const outcome = await attempted(async () => {
        await this.#parts.hosts.adopt({ ...each, launchedMs: launchedMs.get(each.ec2) ?? nowMs });
        return DONE;
      });
      outcomes.set(each.instance, outcome);
    });
  }

  async start(requests: readonly StartRequest[]): Promise<readonly EffectOutcome[]> {
    const outcomes = new Map<StartRequest, EffectOutcome>();
    await inParallel([...Map.groupBy(requests, (r) => r.instance)], async ([instance, group]) => {
      const found = await attemptedAll(group, () => this.#startOn(instance, group));
      group.forEach((r, i) => outcomes.set(r, found[i] ?? DONE));
    });
    return requests.map((r) => outcomes.get(r) ?? DONE);
  }

  async #startOn(instance: InstanceId, requests: readonly StartRequest[]): Promise<readonly EffectOutcome[]> {
    const { inbox, hosts, clock } = this.#parts;
    const known = await inbox.record(instance);
    if (known === null || known.refused !== null) return requests.map(() => gone(`there is no instance ${instance}`));
    // Attempts that were ordered and are no longer in the record have ended: a record is written before its orders.
    const isOver = await inbox.ordered(
      instance,
      requests.map((r) => r.attempt).filter((a) => known.attempts[a] === undefined),
    );
    const wanted = requests.filter((r) => !isOver.has(r.attempt));
    // Attempts that can start at once are claimed in the same write.
    let claimed: ReadonlySet<AttemptId> = new Set();
    const atMs = raw(clock.now());
    const record = await inbox.update(
      instance,
      (r) => {
        const taking = ordered(r, wanted);
        const ours = hosts.claimable(
          taking,
          wanted.map((w) => w.attempt),
        );
        claimed = new Set(ours);
        return ours.reduce((next, attempt) => fold(next, { is: 'tried', attempt, atMs }), taking);
      },
      known,
    );
    const taken = wanted.filter((r) => record?.attempts[r.attempt] !== undefined);
    await inParallel(taken, (order) => inbox.putOrder(order));
    const { failures, attempts } = await this.#begun(
      record,
      taken.filter((r) => claimed.has(r.attempt)),
    );
    const accepted = new Set([...isOver, ...taken.map((r) => r.attempt)]);
    return requests.map((r) => {
      if (!accepted.has(r.attempt)) return gone(whyClosed(record ?? known));
      if (failures.length > 0) return { status: 'failed', detail: failures.join('; ') };
      // Attempt without a task: its order is in progress or lost. The next cycle asks again.
      const { task, triedMs } = attempts[r.attempt] ?? { task: null, triedMs: null };
      return task === null && triedMs !== null
        ? { status: 'failed', detail: 'ECS was asked and has not answered' }
        : DONE;
    });
  }

  /** Starts claimed attempts, and performs other duties of the instance. */
  async #begun(
    record: InstanceRecord | null,
    claimed: readonly StartRequest[],
  ): Promise<{ readonly failures: readonly string[]; readonly attempts: InstanceRecord['attempts'] }> {
    if (record === null) return { failures: [], attempts: {} };
    const { hosts } = this.#parts;
    const started = claimed.length === 0 ? { record, failures: [] } : await hosts.startClaimed(record, claimed);
    if (started.failures.length > 0) return { failures: started.failures, attempts: started.record.attempts };
    const settled = await hosts.settle(started.record);
    return { failures: settled.failures, attempts: settled.record.attempts };
  }

  async stop(requests: readonly StopRequest[]): Promise<readonly EffectOutcome[]> {
    return sequentially(requests, async ({ instance, attempt, why, to }) => {
      const { inbox, hosts, clock } = this.#parts;
      const known = await inbox.record(instance);
      if (known === null || known.refused !== null) return gone(`there is no instance ${instance}`);
      if (known.gone !== null) return gone(whyClosed(known));
      const atMs = raw(clock.now());
      // Unsent attempts count as ordered from now on. Their end is reported, and a later order finds them ended.
      const isUnknown = known.attempts[attempt] === undefined && (await inbox.ordered(instance, [attempt])).size === 0;
      const record = await inbox.update(
        instance,
        (r) => {
          const before = isUnknown ? fold(r, { is: 'ordered', attempt, saves: false, timeoutS: null }) : r;
          return fold(before, { is: 'stop', attempt, why, atMs, ...(to === undefined ? {} : { to }) });
        },
        known,
      );
      if (isUnknown) await inbox.forbid(instance, attempt);
      const { failures } = record === null ? { failures: [] } : await hosts.settle(record);
      return failures.length === 0 ? DONE : { status: 'failed', detail: failures.join('; ') };
    });
  }

  async release(requests: readonly ReleaseRequest[]): Promise<readonly EffectOutcome[]> {
    return sequentially(requests, async ({ instance }) => {
      const atMs = raw(this.#parts.clock.now());
      const known = await this.#parts.inbox.record(instance);
      if (known === null || known.refused !== null) return gone(`there is no instance ${instance}`);
      if (known.gone !== null) return DONE;
      const failures = await this.#parts.hosts.take(instance, [{ is: 'release', atMs }], known);
      return failures.length === 0 ? DONE : { status: 'failed', detail: failures.join('; ') };
    });
  }

  async list(): Promise<readonly FleetInstance[]> {
    const all = await this.#parts.ec2.all();
    const owned = await this.#parts.hosts.owned(all);
    return all.flatMap((seen) => {
      const own = owned.get(seen.ec2);
      if (own === undefined) return [];
      return [
        {
          instance: instanceId(own.instance),
          pool: poolId(own.pool),
          bid: own.bid === 'uncapped' ? own.bid : usdPerHour(own.bid),
          launchedMs: epochMs(seen.launchedMs),
          live: seen.state === 'pending' || seen.state === 'running',
        },
      ];
    });
  }

  async observe(after: ReadonlyMap<InstanceId, number>): Promise<readonly Observation[]> {
    const { inbox } = this.#parts;
    const news = new Map((await inbox.news()).map((n) => [n.instance, n]));
    const found: Observation[] = [];
    for (const record of await inbox.records([...news.keys()])) {
      const { instance, sequence, isEnded } = record;
      const seen = after.get(instance);
      const isEndOffered = news.get(instance)?.isEndOffered === true;
      if (seen !== undefined && seen >= sequence) await inbox.applied(record, seen);
      // An end that was offered and is no longer in the cursors has been applied.
      else if (seen === undefined && isEnded && isEndOffered) await inbox.applied(record, sequence);
      else {
        const open = record.observations.filter((o) => o.sequence > (seen ?? 0));
        found.push(...open);
        if (isEnded && seen !== undefined && !isEndOffered) await inbox.endOffered(instance);
        if (seen !== undefined && record.observations.length - open.length >= TRIM_FROM) {
          await inbox.update(instance, (r) => trimmed(r, seen), record);
        }
      }
    }
    return found;
  }

  /** Observations of this process only. Between Lambdas `Wake` carries the news. */
  onChange(wake: () => void): () => void {
    return this.#parts.inbox.onNews(() => {
      wake();
    });
  }

  bill(instance: InstanceId, until: EpochMs): Promise<Bill> {
    return this.#parts.bill(instance, until);
  }

  logs(...asked: Parameters<Fleet['logs']>): Promise<LogChunk> {
    return this.#parts.logs(...asked);
  }

  async close(): Promise<void> {
    // No clients to close: they belong to the composition.
  }
}

/** Adds orders while the instance accepts tasks. Earlier orders stay in any state. */
const ordered = (record: InstanceRecord, requests: readonly StartRequest[]): InstanceRecord =>
  isOpen(record)
    ? requests.reduce(
        (r, { attempt, checkpoint, timeoutS, resources }) =>
          fold(r, {
            is: 'ordered',
            attempt,
            saves: checkpoint !== null,
            timeoutS: rawOrNull(timeoutS),
            milliCpu: raw(resources.cpu),
          }),
        record,
      )
    : record;

function whyClosed({ instance, gone: end, warnedMs }: InstanceRecord): string {
  if (end !== null) return `instance ${instance} has ended: ${end.detail}`;
  return warnedMs === null ? `instance ${instance} is given back` : `instance ${instance} was given notice`;
}

const isLackOfCapacity = (outcome: Unsuccessful): boolean =>
  outcome.status === 'refused' && outcome.why === 'insufficient-capacity';

/** Launches of one reserved pool run one after another: after a refusal the rest need not be sent. */
const inSequence = (groups: readonly LaunchGroup[]): readonly (readonly LaunchGroup[])[] => [
  ...Map.groupBy(groups, (group) => {
    const pool = group.requests[0]?.pool;
    return pool !== undefined && isBoughtAs(pool, 'reserved') ? pool : group;
  }).values(),
];

const plain = ({ key, instance, pool, bid }: LaunchRequest) => ({ key, instance, pool, bid: bidNumber(bid) });

/** Turns faults that may pass into outcomes. Defects are thrown. */
async function attempted(effect: () => Promise<EffectOutcome>): Promise<EffectOutcome> {
  try {
    return await effect();
  } catch (error) {
    if (error instanceof EbbError && error.code !== 'internal') return outcomeOfThrown(error);
    throw error;
  }
}

async function attemptedAll<R>(
  requests: readonly R[],
  effect: () => Promise<readonly EffectOutcome[]>,
): Promise<readonly EffectOutcome[]> {
  let outcomes: readonly EffectOutcome[] = [];
  const failed = await attempted(async () => {
    outcomes = await effect();
    return DONE;
  });
  return failed.status === 'done' ? outcomes : requests.map(() => failed);
}

async function sequentially<R>(
  requests: readonly R[],
  effect: (request: R) => Promise<EffectOutcome>,
): Promise<readonly EffectOutcome[]> {
  const outcomes: EffectOutcome[] = [];
  for (const request of requests) outcomes.push(await attempted(() => effect(request)));
  return outcomes;
}

async function inParallel<T>(list: readonly T[], work: (value: T) => Promise<void>): Promise<void> {
  const queue = [...list];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, list.length) }, worker));
}
