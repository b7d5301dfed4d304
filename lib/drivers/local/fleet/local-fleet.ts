import { closeSync, existsSync, openSync, readdirSync, readSync, rmSync, fstatSync, utimesSync, watch } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock } from '../../../kernel/clock.ts';
import { EbbError, messageOf } from '../../../kernel/errors.ts';
import type { AttemptId, EffectKey, InstanceId, PoolId } from '../../../kernel/ids.ts';
import { ascending, epochMs, gte, isPositive, least, raw, rawOrNull, type EpochMs } from '../../../kernel/units.ts';
import type { Observation } from '../../../domain/observation.ts';
import type { EffectOutcome } from '../../../domain/plan.ts';
import { bidNumber, type Bid } from '../../../domain/pool.ts';
import { milliCpuIn } from '../../../domain/resources.ts';
import type { CapacityTruth } from '../../../market/capacity-truth.ts';
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
import { monotonicMs } from './engine-time.ts';
import { hasCode, makeFolder, readIfThere, replaceFile } from './files.ts';
import { InstanceRecord, readSpec } from './instance-record.ts';
import { JournalWriter } from './journal.ts';
import { fileName, inside, layout } from './layout.ts';
import { lockAsDead, lockOwner, lockState, takeLock } from './lock.ts';
import { buryLost } from './lost.ts';
import type { Command, InstanceSpec, LaunchedSpec, SupervisorLimits } from './messages.ts';
import { signalQuietly } from './processes.ts';
import { spawnSupervisor, supervisorProgram } from './program.ts';
import { wholeCharacters } from '../../log-text.ts';

/**
 * Local capacity: each instance is a supervisor process of its own (supervisor.ts), reached through files (layout.ts).
 * Lifecycle: instances and tasks outlive this object and its process; a fleet opened on the same directory finds them
 * with their reports. One engine per directory (ensured by the store's lock).
 * Crash points of a launch: before the spec is written nothing has happened and the market is asked again; after it the
 * answer stands, and a supervisor that was not started (or did not come up) is started by the next observation; its
 * lock allows only one. Commands are files named by their key, so sending one again changes nothing.
 */
export interface LocalFleetOptions {
  readonly dir: string;
  readonly truth: CapacityTruth;
  readonly clock: Clock;
  /** Engine seconds per wall second: that of the clock. */
  readonly speed: number;
  readonly limits?: Partial<SupervisorLimits>;
  /** Ended instances whose directory is kept. Logs and checkpoints are elsewhere and stay. */
  readonly keepEnded?: number;
  /** Wall seconds of silence after which a supervisor is taken for one that hangs; default 60. */
  readonly hangsAfterS?: number;
  /**
   * Told, once, of each file that cannot be read, for people; the fleet goes on without it. Default: standard error.
   */
  readonly onTrouble?: (text: string) => void;
}

/** An instance as the store knows it: enough to restore its files. */
export interface KnownInstance {
  readonly id: InstanceId;
  readonly allocation: EffectKey;
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly launchedMs: EpochMs;
  /** Sequence of the last observation that was taken in. */
  readonly cursor: number;
}

export interface LocalFleet extends Fleet {
  /**
   * Restores instances whose files are missing or unreadable: after a restore from a backup, or on a damaged disk. One
   * with a live supervisor goes on; any other is buried as lost, with its bill. To be called before the first
   * `observe`.
   */
  recover(instances: readonly KnownInstance[]): void;
}

const LIMITS: SupervisorLimits = {
  logBytes: 32 * 2 ** 20,
  // Time for a process that must start an interpreter's handler and write some MiB; longer would show in a fast replay.
  warningFloorS: 2,
  // ECS waits 30 s by default (stopTimeout); on one machine there is no network to wait for.
  killAfterS: 5,
  orphanAfterS: 300,
};
const KEEP_ENDED = 200;
/** Heartbeats come every second. A machine that swaps, or copies large inputs, may make one wait for half a minute. */
const HANGS_AFTER_S = 60;
/** Time for a process to disappear after SIGKILL. */
const KILL_PATIENCE_MS = 2000;
const KILL_POLL_MS = 20;
const ENGINE_HEARTBEAT_MS = 30_000;
/** Interval at which supervisors are checked without a doorbell: a killed one rings none. */
const POLL_MS = 2000;
/** One write rings several times. */
const DEBOUNCE_MS = 5;
/** A supervisor takes its lock within some 100 ms of its start; a loaded machine gets this long before another try. */
const START_PATIENCE_MS = 15_000;
const START_TRIES = 3;

const DONE: EffectOutcome = { status: 'done' };

/** Throws EbbError `usage` where the platform has no process groups. */
export function createLocalFleet(options: LocalFleetOptions): LocalFleet {
  if (process.platform === 'win32') {
    throw new EbbError('usage', {
      what: 'local capacity runs tasks as process groups, which this platform does not have',
      got: process.platform,
      allowed: 'Linux or macOS',
      next: 'run ebb in WSL',
    });
  }
  return new FileFleet(options);
}

class FileFleet implements LocalFleet {
  readonly #dir: string;
  readonly #truth: CapacityTruth;
  readonly #clock: Clock;
  readonly #speed: number;
  readonly #limits: SupervisorLimits;
  readonly #keepEnded: number;
  readonly #hangsAfterS: number;
  readonly #program: string;
  readonly #trouble: (text: string) => void;
  readonly #records = new Map<InstanceId, InstanceRecord>();
  /** Directories of launches that the market refused, oldest first. */
  readonly #refused: string[] = [];
  readonly #wakes = new Set<() => void>();
  readonly #heartbeat: NodeJS.Timeout;
  #stopWatching: (() => void) | null = null;
  #ringing: NodeJS.Timeout | null = null;
  #observing: Promise<unknown> = Promise.resolve();

  constructor(options: LocalFleetOptions) {
    this.#dir = resolve(options.dir);
    this.#truth = options.truth;
    this.#clock = options.clock;
    this.#speed = options.speed;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#keepEnded = options.keepEnded ?? KEEP_ENDED;
    this.#hangsAfterS = options.hangsAfterS ?? HANGS_AFTER_S;
    this.#trouble = options.onTrouble ?? ((text) => void process.stderr.write(`ebb: ${text}\n`));
    makeFolder(layout.instances(this.#dir));
    for (const file of [layout.doorbell(this.#dir), layout.engineHeartbeat(this.#dir)]) closeSync(openSync(file, 'a'));
    this.#program = supervisorProgram(this.#dir);
    this.#beat();
    this.#heartbeat = setInterval(() => this.#beat(), ENGINE_HEARTBEAT_MS).unref();
    for (const name of readdirSync(layout.instances(this.#dir)).sort()) this.#find(name);
  }

  #find(name: string): void {
    const dir = join(layout.instances(this.#dir), name);
    const spec = readSpec(dir, this.#trouble);
    if (spec?.status === 'refused') this.#refused.push(dir);
    else if (spec !== null) this.#add(dir, spec);
  }

  #add(dir: string, spec: LaunchedSpec): InstanceRecord {
    const record = new InstanceRecord(dir, spec, this.#trouble);
    record.refresh();
    this.#records.set(record.id, record);
    return record;
  }

  #beat(): void {
    const now = new Date();
    utimesSync(layout.engineHeartbeat(this.#dir), now, now);
  }

  async launch(requests: readonly LaunchRequest[]): Promise<readonly EffectOutcome[]> {
    return requests.map((request) => attempted(() => this.#launch(request)));
  }

  #launch(request: LaunchRequest): EffectOutcome {
    const known = this.#records.get(request.instance);
    const dir = layout.instance(this.#dir, request.instance);
    const spec = known?.spec ?? readSpec(dir, this.#trouble) ?? this.#decide(request, dir);
    if (spec.status === 'refused') return { status: 'refused', why: spec.why, detail: spec.detail };
    this.#ensureSupervisor(known ?? this.#add(dir, spec));
    return DONE;
  }

  /** Asks the market, once, and records its answer. */
  #decide(request: LaunchRequest, dir: string): InstanceSpec {
    const spec = this.#answerOfMarket(request);
    makeFolder(inside.inbox(dir));
    replaceFile(inside.spec(dir), JSON.stringify(spec), true);
    if (spec.status === 'refused') {
      this.#refused.push(dir);
      for (const old of this.#refused.splice(0, this.#refused.length - this.#keepEnded)) remove(old);
    }
    return spec;
  }

  #answerOfMarket({ key, instance, pool, bid }: LaunchRequest): InstanceSpec {
    const at = this.#clock.now();
    const asked = { version: 1, instance, key, pool, bid: bidNumber(bid) } as const;
    if (!this.#truth.knows(pool)) {
      return { ...asked, status: 'refused', why: 'unsupported', detail: `the market has no pool ${pool}` };
    }
    const outcome = this.#isFull(pool) ? 'insufficient-capacity' : this.#truth.launch(pool, at, bid);
    switch (outcome) {
      case 'bid-below-price':
        return { ...asked, status: 'refused', why: outcome, detail: `the price of ${pool} is above the bid` };
      case 'insufficient-capacity':
        return { ...asked, status: 'refused', why: outcome, detail: `${pool} has no capacity now` };
      case 'no-price':
        return { ...asked, status: 'refused', why: 'insufficient-capacity', detail: `${pool} has no price now` };
      case 'ok':
        return this.#launchedSpec({ key, instance, pool, bid }, at);
    }
  }

  /** True if all reserved instances are in use. O(instances) for a reserved pool alone. */
  #isFull(pool: PoolId): boolean {
    const most = this.#truth.most(pool);
    if (most === Infinity) return false;
    const there = this.#records.values().filter((r) => r.pool === pool && r.ended === null);
    return [...there].length >= most;
  }

  /** The market's answers depend on their arguments only: asked again they are the same. */
  #launchedSpec({ key, instance, pool, bid }: LaunchRequest, at: EpochMs): LaunchedSpec {
    const taken = this.#truth.interruption(pool, at, bid);
    const hint = this.#truth.rebalance(pool, at, bid);
    return {
      version: 1,
      instance,
      key,
      pool,
      bid: bidNumber(bid),
      status: 'launched',
      launchedMs: raw(at),
      readyMs: raw(this.#truth.ready({ pool, instance }, at)),
      rebalanceMs: rawOrNull(hint),
      interruption:
        taken === null ? null : { warnMs: raw(taken.warnMs), goneMs: raw(taken.goneMs), cause: taken.cause },
      clock: { monotonicMs: monotonicMs(), engineMs: raw(this.#clock.now()), speed: this.#speed },
      limits: this.#limits,
    };
  }

  recover(instances: readonly KnownInstance[]): void {
    for (const known of instances) {
      if (this.#records.has(known.id) || !this.#truth.knows(known.pool)) continue;
      const dir = layout.instance(this.#dir, known.id);
      const spec = this.#launchedSpec({ ...known, key: known.allocation, instance: known.id }, known.launchedMs);
      makeFolder(dir);
      if (lockState(inside.lock(dir)) === 'free') lockAsDead(inside.lock(dir));
      if (readIfThere(inside.heartbeat(dir)) === null) {
        replaceFile(inside.heartbeat(dir), JSON.stringify([raw(this.#clock.now()), Date.now()]));
      }
      if (readIfThere(inside.journal(dir)) === null) {
        const journal = new JournalWriter(inside.journal(dir), known.cursor, () => undefined);
        journal.observe({ kind: 'instance-launched', atMs: spec.launchedMs, readyMs: spec.readyMs });
        journal.close();
      }
      // Last: without a spec, the next engine begins here again.
      replaceFile(inside.spec(dir), JSON.stringify(spec), true);
      this.#add(dir, spec);
      this.#trouble(`the files of instance ${known.id} were missing or damaged: they were made again`);
    }
  }

  /** Starts the supervisor where none has ever come up. */
  #ensureSupervisor(record: InstanceRecord): void {
    if (record.ended !== null || lockState(inside.lock(record.dir)) !== 'free') return;
    if (record.spawnedMs !== null && monotonicMs() - record.spawnedMs < START_PATIENCE_MS) return;
    if (record.spawns >= START_TRIES) {
      this.#giveUp(record);
      return;
    }
    record.spawns++;
    record.spawnedMs = monotonicMs();
    const child = spawnSupervisor(this.#dir, record.dir, this.#program);
    const gone = (): void => {
      record.spawnedMs = null;
      this.#ring();
    };
    child.once('exit', gone).once('error', gone);
  }

  /**
   * Takes the lock in place of a supervisor that does not come up, so that none can come later, and ends the instance.
   */
  #giveUp(record: InstanceRecord): void {
    if (!takeLock(inside.lock(record.dir))) return;
    const said = (readIfThere(inside.crashLog(record.dir)) ?? '').trim().split('\n').at(-1) ?? '';
    const journal = new JournalWriter(inside.journal(record.dir), record.lastSequence, () => undefined);
    const { launchedMs, readyMs } = record.spec;
    journal.observe({ kind: 'instance-launched', atMs: launchedMs, readyMs });
    const detail = `its supervisor did not start${said === '' ? '' : `: ${said}`}`;
    journal.observe({ kind: 'instance-ended', atMs: launchedMs, cause: 'failed', detail });
    journal.close();
    record.refresh();
  }

  async start(requests: readonly StartRequest[]): Promise<readonly EffectOutcome[]> {
    return requests.map((r) =>
      attempted(() => {
        const record = this.#fresh(r.instance);
        const taken = record?.spec.interruption ?? null;
        const isWarned = record?.warned === true || (taken !== null && taken.warnMs <= raw(this.#clock.now()));
        const wasSent = record !== undefined && existsSync(inside.command(record.dir, r.key));
        return this.#send(r.instance, {
          command: startCommand(r),
          closed: isWarned && !wasSent ? 'the instance has been given its interruption notice' : null,
        });
      }),
    );
  }

  async stop(requests: readonly StopRequest[]): Promise<readonly EffectOutcome[]> {
    return requests.map((r) => attempted(() => this.#send(r.instance, { command: stopCommand(r), closed: null })));
  }

  async release(requests: readonly ReleaseRequest[]): Promise<readonly EffectOutcome[]> {
    return requests.map((r) =>
      attempted(() => {
        // Released or taken: either way it is gone, as requested.
        if ((this.#fresh(r.instance)?.ended ?? null) !== null) return DONE;
        return this.#send(r.instance, { command: { do: 'release', key: r.key }, closed: null });
      }),
    );
  }

  /** Present state of the instance's files; also of one launched by another thread's fleet on this directory. */
  #fresh(id: InstanceId): InstanceRecord | undefined {
    if (!this.#records.has(id)) this.#find(fileName(id));
    const record = this.#records.get(id);
    record?.refresh();
    return record;
  }

  /** Puts a command into the instance's inbox, unless it got there before or nobody will read it any more. */
  #send(id: InstanceId, mail: { readonly command: Command; readonly closed: string | null }): EffectOutcome {
    const gone = (detail: string): EffectOutcome => ({ status: 'refused', why: 'instance-gone', detail });
    const record = this.#records.get(id);
    if (record === undefined) return gone(`there is no instance ${id}`);
    if (record.hasTaken(mail.command.key)) return DONE;
    if (record.ended !== null) return gone(`instance ${id} has ended: ${record.ended.detail}`);
    if (mail.closed !== null) return gone(mail.closed);
    try {
      replaceFile(inside.command(record.dir, mail.command.key), JSON.stringify(mail.command));
    } catch (error) {
      // The supervisor takes its inbox away when it ends.
      if (hasCode(error, 'ENOENT')) return gone(`instance ${id} has ended`);
      throw error;
    }
    return DONE;
  }

  async list(): Promise<readonly FleetInstance[]> {
    return [...this.#records.values()].map((record) => {
      record.refresh();
      const { id, pool, bid, launchedMs, ended } = record;
      return { instance: id, pool, bid, launchedMs, live: ended === null };
    });
  }

  /** Also finds dead supervisors and buries their instances. Calls run one after the other. */
  observe(after: ReadonlyMap<InstanceId, number>): Promise<readonly Observation[]> {
    const observation = this.#observing.then(() => this.#observe(after));
    this.#observing = observation.catch(() => undefined);
    return observation;
  }

  async #observe(after: ReadonlyMap<InstanceId, number>): Promise<readonly Observation[]> {
    this.#beat();
    const found: Observation[] = [];
    for (const record of this.#records.values()) {
      record.refresh();
      if (record.ended === null) await this.#checkSupervisor(record);
      const seen = after.get(record.id) ?? 0;
      if (record.ended !== null && seen >= record.lastSequence) record.consumed = true;
      if (seen < record.lastSequence) found.push(...record.after(seen));
    }
    this.#purge();
    return found;
  }

  async #checkSupervisor(record: InstanceRecord): Promise<void> {
    this.#ensureSupervisor(record);
    const hung = await this.#killedAsHung(record);
    if (lockState(inside.lock(record.dir)) !== 'dead') return;
    // Its last words may have come between the first check and its death.
    record.refresh();
    if (record.ended !== null) return;
    await buryLost(record, hung ? `its supervisor did not answer for ${this.#hangsAfterS} s` : 'its supervisor died');
    record.refresh();
  }

  /**
   * Ends a supervisor without a sign of life: stopped, or with a blocked event loop. It would never answer a request.
   * Its tasks are ended with it (lost.ts), and go on elsewhere. True if it is gone.
   */
  async #killedAsHung(record: InstanceRecord): Promise<boolean> {
    const lock = inside.lock(record.dir);
    if (record.silentMs() < this.#hangsAfterS * 1000) return false;
    const pid = lockOwner(lock);
    if (pid === null || pid === process.pid) return false;
    signalQuietly(pid, 'SIGKILL');
    const until = monotonicMs() + KILL_PATIENCE_MS;
    while (lockState(lock) === 'held' && monotonicMs() < until) {
      await new Promise((resolve) => setTimeout(resolve, KILL_POLL_MS));
    }
    return lockState(lock) !== 'held';
  }

  /**
   * Removes the oldest ended instances beyond the bound, if the engine has observed their end. A supervisor that is
   * still on its way out may write once more: its directory goes with a later call.
   */
  #purge(): void {
    const over = [...this.#records.values()].filter((r) => r.consumed);
    over.sort((a, b) => ascending(a.launchedMs, b.launchedMs));
    for (const record of over.slice(0, Math.max(0, over.length - this.#keepEnded))) {
      if (lockState(inside.lock(record.dir)) === 'held') continue;
      this.#records.delete(record.id);
      remove(record.dir);
    }
  }

  onChange(wake: () => void): () => void {
    this.#wakes.add(wake);
    this.#stopWatching ??= this.#watch();
    return () => {
      this.#wakes.delete(wake);
      if (this.#wakes.size > 0) return;
      this.#stopWatching?.();
      this.#stopWatching = null;
    };
  }

  /** One watched file for all instances; a slow poll finds the rest. Neither keeps a process alive. */
  #watch(): () => void {
    let close = (): void => undefined;
    try {
      const watcher = watch(layout.doorbell(this.#dir), () => this.#ring()).on('error', () => undefined);
      watcher.unref();
      close = () => watcher.close();
    } catch (error) {
      if (!hasCode(error, 'ENOSPC', 'EMFILE', 'ENFILE', 'ENOSYS')) throw error;
    }
    const poll = setInterval(() => {
      for (const record of this.#records.values()) {
        if (record.ended === null && this.#hasNews(record)) {
          this.#ring();
          return;
        }
      }
    }, POLL_MS).unref();
    return () => {
      close();
      clearInterval(poll);
    };
  }

  #hasNews(record: InstanceRecord): boolean {
    if (record.journalBytes() > record.journal.offset) return true;
    if (record.silentMs() >= this.#hangsAfterS * 1000) return true;
    const state = lockState(inside.lock(record.dir));
    return state === 'dead' || (state === 'free' && record.spawnedMs === null);
  }

  #ring(): void {
    if (this.#ringing !== null || this.#wakes.size === 0) return;
    this.#ringing = setTimeout(() => {
      this.#ringing = null;
      for (const wake of this.#wakes) wake();
    }, DEBOUNCE_MS);
  }

  /** Throws EbbError `not-found` for an instance that never was or whose record is gone. */
  async bill(id: InstanceId, until: EpochMs): Promise<Bill> {
    const record = this.#fresh(id);
    if (record === undefined) {
      throw new EbbError('not-found', { what: `there is no bill for instance ${id}`, next: 'see `ebb instances`' });
    }
    const { ended, spec } = record;
    const end = ended?.atMs ?? (spec.interruption === null ? until : epochMs(spec.interruption.goneMs));
    const untilMs = least(until, end);
    const takenByMarket = ended?.cause === 'interrupted' && gte(until, ended.atMs);
    return this.#truth.bill(record.pool, {
      launchedMs: record.launchedMs,
      untilMs,
      bid: record.bid,
      takenByMarket,
    });
  }

  async logs(attempt: AttemptId, stream: 'stdout' | 'stderr', offset: number, maxBytes: number): Promise<LogChunk> {
    return readChunk(layout.log(this.#dir, attempt, stream), offset, maxBytes);
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#stopWatching?.();
    this.#stopWatching = null;
    this.#wakes.clear();
    if (this.#ringing !== null) clearTimeout(this.#ringing);
    await this.#observing;
  }
}

/** A fault of the machine (disk full, too many processes) is an outcome: the next try may succeed. */
function attempted(effect: () => EffectOutcome): EffectOutcome {
  try {
    return effect();
  } catch (error) {
    return { status: 'failed', detail: messageOf(error) };
  }
}

const stopCommand = ({ key, attempt, why, to }: StopRequest): Command => ({
  do: 'stop',
  key,
  attempt,
  why,
  ...(to === undefined ? {} : { to }),
});

function startCommand(r: StartRequest): Command {
  const { key, attempt, command, env, secrets, workdir, inputs, outputs, task } = r;
  return {
    do: 'start',
    key,
    attempt,
    command,
    env,
    ...(secrets === undefined ? {} : { secrets }),
    workdir,
    inputs,
    outputs,
    task,
    ...(r.role === undefined ? {} : { role: r.role }),
    timeoutS: rawOrNull(r.timeoutS),
    memoryMib: isPositive(r.resources.memory) ? raw(r.resources.memory) : null,
    milliCpu: milliCpuIn(r.resources),
    checkpoint: r.checkpoint === null ? null : { signal: r.checkpoint.signal, graceS: raw(r.checkpoint.graceS) },
  };
}

/** Part of a file as text, cut between characters. A file that is not there yet is empty. */
function readChunk(path: string, offset: number, maxBytes: number): LogChunk {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { text: '', nextOffset: offset, totalBytes: 0 };
    throw error;
  }
  try {
    const totalBytes = fstatSync(fd).size;
    const wanted = Math.max(0, Math.min(maxBytes, totalBytes - offset));
    const bytes = Buffer.alloc(wanted);
    const got = wanted === 0 ? 0 : readSync(fd, bytes, 0, wanted, offset);
    const whole = wholeCharacters(bytes.subarray(0, got));
    return { text: whole.toString('utf8'), nextOffset: offset + whole.length, totalBytes };
  } finally {
    closeSync(fd);
  }
}

const remove = (dir: string): void => rmSync(dir, { recursive: true, force: true });
