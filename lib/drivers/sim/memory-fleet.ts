import type { Clock } from '../../kernel/clock.ts';
import { EbbError } from '../../kernel/errors.ts';
import type { AttemptId, EffectKey, InstanceId, PoolId } from '../../kernel/ids.ts';
import {
  ZERO_S,
  add,
  between,
  epochMs,
  gt,
  gte,
  isPositive,
  isZero,
  least,
  lte,
  most,
  plus,
  ratio,
  raw,
  scale,
  seconds,
  sub,
  type EpochMs,
  type Seconds,
} from '../../kernel/units.ts';
import type { EndCause } from '../../domain/instance.ts';
import type { Checkpoint, Usage } from '../../domain/job.ts';
import type { Observation } from '../../domain/observation.ts';
import type { EffectOutcome } from '../../domain/plan.ts';
import type { CapacityTruth } from '../../market/capacity-truth.ts';
import type {
  Bill,
  Fleet,
  FleetInstance,
  LaunchRequest,
  LogChunk,
  ReleaseRequest,
  StartRequest,
  StopRequest,
} from '../../ports/fleet.ts';
import type { Beside } from './interference/interference.ts';
import { Pacing } from './pacing.ts';
import { Schedule } from './schedule.ts';

/**
 * A fleet in memory with the meaning of the local one: tasks are scripts, and a clock gives the time. All events follow
 * from the calls, the market and the scripts; only start-up delays are drawn, from the instances' own streams, so two
 * runs with the same calls at the same times report the same.
 * Events happen at their own time in the order (time, sequence number), whenever the clock is found past them: at every
 * call, and, while a listener is set through `onChange`, by sleeping on the clock.
 */
export interface MemoryFleetOptions {
  readonly truth: CapacityTruth;
  readonly clock: Clock;
  /** Behaviour of a task, given the executor's request, the saved work of earlier attempts, and the pool. */
  readonly script: (request: StartRequest, keptS: Seconds, pool: PoolId) => TaskScript;
}

export interface TaskScript {
  /** Running time of this attempt without a stop, `setupS` included. */
  readonly runtimeS: Seconds;
  /** Its pace beside these neighbours, and what is measured of it. `runtimeS` is at pace 1. Absent: always that. */
  readonly beside?: (neighbours: readonly StartRequest[]) => Beside;
  /**
   * Name of a gang whose members share their work, as executors of one program do: each goes at the mean of their
   * paces. With `beside` alone. Absent: it is on its own.
   */
  readonly gang?: string;
  /** Time from its start until its work begins: image, inputs, reading a checkpoint. Absent: none. */
  readonly setupS?: Seconds;
  readonly exitCode: number;
  /** Interval of its own saves; null: it saves only on the checkpoint signal, if it has one. */
  readonly checkpointEveryS: Seconds | null;
  /** Time from a checkpoint signal or SIGTERM to its exit; the checkpoint signal saves the work done so far. */
  readonly stopsInS: Seconds;
  /** Time after a stop until its place is free. Absent: none. */
  readonly vacatesInS?: Seconds;
  /** Least time to save and transfer its memory for a move; it makes no progress meanwhile. Absent: as any stop. */
  readonly movesInS?: Seconds;
  readonly usage?: Usage;
  readonly stdout?: string;
}

/** A program that ignores signals: from SIGTERM to SIGKILL, as the local fleet waits. */
const KILL_AFTER_S = 5;
const DONE: EffectOutcome = { status: 'done' };
/** A start that was done: its instance remembers the attempt, so that the key need not be. */
const STARTED: EffectOutcome = { status: 'done' };

type StopReason = 'interrupted' | 'preempted' | 'cancelled' | 'timed-out' | 'superseded';

interface MemoryAttempt {
  readonly request: StartRequest;
  script: TaskScript | null;
  startedMs: EpochMs | null;
  stopped: StopReason | null;
  /** The end that stands; an earlier event than this one's is void. */
  endsMs: EpochMs | null;
  keptS: Seconds;
  /** Work in the checkpoint that is being written for a move; it counts once the attempt has stopped. Null: none is. */
  savingS: Seconds | null;
  ended: boolean;
  /** Null for one whose pace is always 1. */
  pacing: Pacing | null;
  /** What its machine lets it do, which its gang then shares. */
  beside: Beside | null;
}

interface MemoryInstance {
  readonly request: LaunchRequest;
  /** The how manieth that was launched. */
  readonly launch: number;
  readonly launchedMs: EpochMs;
  readonly goneMs: EpochMs | null;
  state: 'starting' | 'ready' | 'warned' | 'releasing' | 'ended';
  endedMs: EpochMs | null;
  cause: EndCause | null;
  /** Every attempt ever started here, so that each is started once; null: it has ended. */
  readonly attempts: Map<AttemptId, MemoryAttempt | null>;
  /** Answers to requests about it. */
  readonly outcomes: Map<EffectKey, EffectOutcome>;
  readonly stoppedBefore: Map<AttemptId, StopReason>;
  /** Attempts that run at a pace of their own. */
  paced: number;
  observations: Observation[];
}

type Fact = Observation extends infer O ? (O extends Observation ? Omit<O, 'instance' | 'sequence'> : never) : never;

export class MemoryFleet implements Fleet {
  readonly #truth: CapacityTruth;
  readonly #clock: Clock;
  readonly #script: MemoryFleetOptions['script'];
  readonly #instances = new Map<InstanceId, MemoryInstance>();
  /** Instances that have not ended, by pool. */
  readonly #alive = new Map<PoolId, number>();
  /** Instances with reports that the caller of `observe` has not seen: mostly few. */
  readonly #reporting = new Set<MemoryInstance>();
  /** Answers to requests that name no existing instance. */
  readonly #refused = new Map<EffectKey, EffectOutcome>();
  /** Saved work in checkpoints, by job and task. */
  readonly #kept = new Map<string, Map<string, Seconds>>();
  /** Members that run, by gang: those with a pace of their own. */
  readonly #gangs = new Map<string, Map<MemoryAttempt, MemoryInstance>>();
  readonly #stdout = new Map<AttemptId, string>();
  readonly #schedule = new Schedule();
  readonly #wakes = new Set<() => void>();
  #isUntold = false;
  #launched = 0;
  #observed = 0;
  #happened = 0;
  #nap: AbortController | null = null;

  constructor(options: MemoryFleetOptions) {
    this.#truth = options.truth;
    this.#clock = options.clock;
    this.#script = options.script;
  }

  async launch(requests: readonly LaunchRequest[]): Promise<readonly EffectOutcome[]> {
    return this.#each(requests, (r) => this.#launch(r));
  }

  async start(requests: readonly StartRequest[]): Promise<readonly EffectOutcome[]> {
    return this.#each(requests, (r) => this.#start(r));
  }

  async stop(requests: readonly StopRequest[]): Promise<readonly EffectOutcome[]> {
    return this.#each(requests, (r) => this.#stopRequest(r));
  }

  async release(requests: readonly ReleaseRequest[]): Promise<readonly EffectOutcome[]> {
    return this.#each(requests, (r) => this.#release(r));
  }

  /** One outcome per request; a repeated key gets its first answer, without further effect. */
  #each<R extends { readonly key: EffectKey; readonly instance: InstanceId }>(
    requests: readonly R[],
    act: (request: R) => EffectOutcome,
  ): readonly EffectOutcome[] {
    this.#catchUp();
    const outcomes = requests.map((request) => {
      const before = this.#answersOf(request.instance);
      const known = before.get(request.key) ?? this.#refused.get(request.key);
      if (known !== undefined) return known;
      const outcome = act(request);
      // A launch makes its instance.
      const answers = before === this.#refused ? this.#answersOf(request.instance) : before;
      if (outcome !== STARTED) answers.set(request.key, outcome);
      return outcome;
    });
    if (this.#catchUp()) this.#isUntold = true;
    this.#napUntilNext();
    return outcomes;
  }

  /**
   * True if something happened in the instant of requests, because of them: a machine that was up at once, a task of no
   * length, a server that others are to reach. No cycle knows of it yet. Asking resets the answer.
   */
  takeUntold(): boolean {
    const isUntold = this.#isUntold;
    this.#isUntold = false;
    return isUntold;
  }

  #answersOf(id: InstanceId): Map<EffectKey, EffectOutcome> {
    return this.#instances.get(id)?.outcomes ?? this.#refused;
  }

  #launch(request: LaunchRequest): EffectOutcome {
    const { pool, bid } = request;
    const at = this.#clock.now();
    if (!this.#truth.knows(pool)) {
      return { status: 'refused', why: 'unsupported', detail: `the market has no pool ${pool}` };
    }
    const outcome = this.#isFull(pool) ? 'insufficient-capacity' : this.#truth.launch(pool, at, bid);
    if (outcome !== 'ok') {
      const why = outcome === 'no-price' ? 'insufficient-capacity' : outcome;
      return { status: 'refused', why, detail: `${pool}: ${outcome}` };
    }
    const taken = this.#truth.interruption(pool, at, bid);
    const hint = this.#truth.rebalance(pool, at, bid);
    const readyMs = this.#truth.ready(request, at);
    const instance: MemoryInstance = {
      request,
      launch: this.#launched++,
      launchedMs: at,
      goneMs: taken?.goneMs ?? null,
      state: 'starting',
      endedMs: null,
      cause: null,
      attempts: new Map(),
      outcomes: new Map(),
      stoppedBefore: new Map(),
      paced: 0,
      observations: [],
    };
    this.#instances.set(request.instance, instance);
    this.#countAlive(pool, 1);
    this.#observe(instance, { kind: 'instance-launched', atMs: at, readyMs });
    this.#at(readyMs, () => this.#ready(instance, readyMs));
    if (hint !== null) this.#at(hint, () => this.#rebalance(instance, hint));
    if (taken !== null) {
      this.#at(taken.warnMs, () => this.#warn(instance, taken.warnMs, taken.goneMs));
      this.#at(taken.goneMs, () => this.#gone(instance, taken.goneMs, taken.cause));
    }
    return DONE;
  }

  /** True if all reserved instances are in use. */
  #isFull(pool: PoolId): boolean {
    return (this.#alive.get(pool) ?? 0) >= this.#truth.most(pool);
  }

  #countAlive(pool: PoolId, by: 1 | -1): void {
    this.#alive.set(pool, (this.#alive.get(pool) ?? 0) + by);
  }

  #ready(instance: MemoryInstance, atMs: EpochMs): void {
    if (instance.state !== 'starting') return;
    instance.state = 'ready';
    this.#observe(instance, { kind: 'instance-ready', atMs });
    for (const attempt of live(instance)) this.#begin(instance, attempt, atMs);
  }

  #rebalance(instance: MemoryInstance, atMs: EpochMs): void {
    if (instance.state === 'starting' || instance.state === 'ready') {
      this.#observe(instance, { kind: 'instance-rebalance', atMs });
    }
  }

  #warn(instance: MemoryInstance, atMs: EpochMs, goneMs: EpochMs): void {
    if (instance.state !== 'starting' && instance.state !== 'ready') return;
    instance.state = 'warned';
    this.#observe(instance, { kind: 'instance-warned', atMs, goneMs });
    for (const attempt of live(instance)) {
      // Without a checkpoint there is nothing to save, so it runs on, and may finish in time.
      const termMs = attempt.request.checkpoint === null ? plus(goneMs, seconds(-KILL_AFTER_S)) : atMs;
      this.#at(termMs, () => this.#stop(instance, attempt, { why: 'interrupted', atMs: termMs }));
    }
  }

  #gone(instance: MemoryInstance, atMs: EpochMs, cause: string): void {
    for (const attempt of live(instance)) {
      // A move that has not saved by now comes to nothing.
      if (attempt.stopped === null || attempt.savingS !== null) attempt.stopped = 'interrupted';
      this.#end(instance, attempt, { atMs, exitCode: null, exitSignal: 'SIGKILL' });
    }
    this.#finish(instance, { atMs, cause: 'interrupted', detail: `taken by the market (${cause})` });
  }

  #finish(
    instance: MemoryInstance,
    end: { readonly atMs: EpochMs; readonly cause: EndCause; readonly detail: string },
  ): void {
    if (instance.state === 'ended') return;
    instance.state = 'ended';
    this.#countAlive(instance.request.pool, -1);
    instance.endedMs = end.atMs;
    instance.cause = end.cause;
    this.#observe(instance, { kind: 'instance-ended', ...end });
  }

  /** Loses the instance now, as when a supervisor dies: for tests and scenarios. */
  lose(id: InstanceId): void {
    this.#catchUp();
    const instance = this.#instances.get(id);
    if (instance === undefined || instance.state === 'ended') return;
    const atMs = this.#clock.now();
    for (const attempt of live(instance)) {
      if (attempt.savingS === null) this.#updateCheckpoint(attempt, atMs);
      attempt.stopped = 'interrupted';
      this.#end(instance, attempt, { atMs, exitCode: null, exitSignal: null });
    }
    this.#finish(instance, { atMs, cause: 'lost', detail: 'its supervisor died' });
    this.#wake();
  }

  #start(request: StartRequest): EffectOutcome {
    const instance = this.#instances.get(request.instance);
    if (instance?.attempts.has(request.attempt) === true) return STARTED;
    if (instance === undefined || instance.state === 'ended' || instance.state === 'warned') {
      return goneOutcome(request.instance, instance);
    }
    const attempt: MemoryAttempt = {
      request,
      script: null,
      startedMs: null,
      stopped: null,
      endsMs: null,
      keptS: ZERO_S,
      savingS: null,
      ended: false,
      pacing: null,
      beside: null,
    };
    instance.attempts.set(request.attempt, attempt);
    const atMs = this.#clock.now();
    const stopped = instance.stoppedBefore.get(request.attempt);
    if (stopped !== undefined || instance.state === 'releasing') {
      attempt.stopped = stopped ?? 'interrupted';
      this.#end(instance, attempt, { atMs, exitCode: null, exitSignal: null });
    } else if (instance.state === 'ready') this.#begin(instance, attempt, atMs);
    return STARTED;
  }

  #begin(instance: MemoryInstance, attempt: MemoryAttempt, atMs: EpochMs): void {
    const { request } = attempt;
    const script = this.#script(request, this.#keptOf(request), instance.request.pool);
    attempt.script = script;
    attempt.startedMs = atMs;
    if (script.stdout !== undefined) this.#stdout.set(request.attempt, script.stdout);
    this.#observe(instance, { kind: 'attempt-started', attempt: request.attempt, atMs });
    // Requests can reach it once its start is known.
    if (request.port !== undefined) this.#isUntold = true;
    const endMs = script.beside === undefined ? plus(atMs, script.runtimeS) : pacedEnd(instance, attempt, script);
    this.#endAt(instance, attempt, { atMs: endMs, exitCode: script.exitCode, exitSignal: null });
    this.#joinGang(instance, attempt);
    if (instance.paced > 0) this.#repace(instance, atMs);
    if (request.timeoutS !== null) {
      const limitMs = plus(atMs, request.timeoutS);
      this.#at(limitMs, () => this.#stop(instance, attempt, { why: 'timed-out', atMs: limitMs }));
    }
    if (script.checkpointEveryS !== null) this.#checkpointAt(instance, attempt, plus(atMs, script.checkpointEveryS));
  }

  /** Recomputes pace and end of the attempts there, and of their gangs, after a change of neighbours. */
  #repace(instance: MemoryInstance, atMs: EpochMs): void {
    const gangs = new Set<string>();
    for (const attempt of live(instance)) {
      const { script, pacing } = attempt;
      if (script?.beside === undefined || pacing === null || attempt.stopped !== null) continue;
      attempt.beside = script.beside(neighboursOf(instance, attempt));
      if (script.gang === undefined) this.#setPace(instance, attempt, { atMs, pace: attempt.beside.pace });
      else gangs.add(script.gang);
    }
    for (const gang of gangs) this.#repaceGang(gang, atMs);
  }

  /** O(members). */
  #repaceGang(gang: string, atMs: EpochMs): void {
    const members = [...(this.#gangs.get(gang) ?? [])];
    const pace = members.reduce((sum, [attempt]) => sum + (attempt.beside?.pace ?? 1), 0) / members.length;
    for (const [attempt, instance] of members)
      if (attempt.stopped === null) this.#setPace(instance, attempt, { atMs, pace });
  }

  #setPace(
    instance: MemoryInstance,
    attempt: MemoryAttempt,
    { atMs, pace }: { readonly atMs: EpochMs; readonly pace: number },
  ): void {
    const { script, pacing } = attempt;
    if (script === null || pacing === null || !pacing.change(atMs, { ...attempt.beside, pace })) return;
    attempt.endsMs = null;
    const endMs = most(atMs, pacing.whenMs(workToDoS(script)));
    this.#endAt(instance, attempt, { atMs: endMs, exitCode: script.exitCode, exitSignal: null });
  }

  #joinGang(instance: MemoryInstance, attempt: MemoryAttempt): void {
    const gang = attempt.script?.gang;
    if (gang === undefined) return;
    const members = this.#gangs.get(gang) ?? new Map<MemoryAttempt, MemoryInstance>();
    this.#gangs.set(gang, members.set(attempt, instance));
  }

  #leaveGang(attempt: MemoryAttempt, atMs: EpochMs): void {
    const gang = attempt.script?.gang;
    const members = gang === undefined ? undefined : this.#gangs.get(gang);
    if (gang === undefined || members?.delete(attempt) !== true) return;
    if (members.size === 0) this.#gangs.delete(gang);
    else this.#repaceGang(gang, atMs);
  }

  #checkpointAt(instance: MemoryInstance, attempt: MemoryAttempt, atMs: EpochMs): void {
    this.#at(atMs, () => {
      if (attempt.ended || attempt.stopped !== null) return;
      this.#updateCheckpoint(attempt, atMs);
      const keptS = this.#reportedS(attempt, this.#keptOf(attempt.request));
      this.#observe(instance, { kind: 'attempt-checkpointed', attempt: attempt.request.attempt, atMs, keptS });
      this.#checkpointAt(instance, attempt, plus(atMs, attempt.script?.checkpointEveryS ?? seconds(Infinity)));
    });
  }

  #keptOf(request: StartRequest): Seconds {
    return this.#kept.get(request.task.job)?.get(taskOf(request)) ?? ZERO_S;
  }

  /**
   * Progress of an attempt as every fleet reports it: by the clock from its start. A task's running time, as users give
   * it and as it is learned, includes one set-up; without earlier saved work it is this attempt's.
   */
  #reportedS({ keptS, script }: MemoryAttempt, keptBeforeS: Seconds): Seconds {
    return isPositive(keptS) && isZero(keptBeforeS) ? add(keptS, script?.setupS ?? ZERO_S) : keptS;
  }

  /** Work saved by the program itself until `atMs`. */
  #updateCheckpoint(attempt: MemoryAttempt, atMs: EpochMs): void {
    const everyS = attempt.script?.checkpointEveryS ?? null;
    if (everyS === null || attempt.startedMs === null) return;
    attempt.keptS = scale(everyS, Math.floor(ratio(workedS(attempt, atMs), everyS) + 1e-9));
  }

  #stopRequest(request: StopRequest): EffectOutcome {
    const instance = this.#instances.get(request.instance);
    if (instance === undefined || instance.state === 'ended') return goneOutcome(request.instance, instance);
    const attempt = instance.attempts.get(request.attempt);
    if (attempt === null) return DONE;
    if (attempt === undefined) instance.stoppedBefore.set(request.attempt, request.why);
    else
      this.#stop(instance, attempt, {
        why: request.why,
        atMs: this.#clock.now(),
        isMove: request.to !== undefined,
      });
    return DONE;
  }

  /** Signals now; the program saves if it has a checkpoint signal, and exits after its time, or is killed. */
  #stop(
    instance: MemoryInstance,
    attempt: MemoryAttempt,
    how: { readonly why: StopReason; readonly atMs: EpochMs; readonly isMove?: boolean },
  ): void {
    if (attempt.ended || attempt.stopped !== null) return;
    attempt.stopped = how.why;
    const { script, startedMs, request } = attempt;
    if (script === null || startedMs === null) {
      this.#end(instance, attempt, { atMs: how.atMs, exitCode: null, exitSignal: null });
      return;
    }
    // Nobody resumes a superseded attempt or a copy, so that they have no time to save.
    const checkpoint = how.why === 'superseded' || request.role === 'copy' ? null : request.checkpoint;
    if (checkpoint !== null && how.isMove === true) {
      this.#save(instance, attempt, { script, checkpoint, atMs: how.atMs });
      return;
    }
    if (checkpoint !== null) attempt.keptS = workedS(attempt, how.atMs);
    const patienceS = add(checkpoint?.graceS ?? ZERO_S, seconds(KILL_AFTER_S));
    this.#endAt(instance, attempt, {
      atMs: plus(how.atMs, add(least(script.stopsInS, patienceS), script.vacatesInS ?? ZERO_S)),
      exitCode: null,
      exitSignal: gt(script.stopsInS, patienceS) ? 'SIGKILL' : 'SIGTERM',
    });
  }

  /**
   * Saves for a move: no progress until the memory is transferred, and nothing is kept of it if the instance ends
   * before.
   */
  #save(
    instance: MemoryInstance,
    attempt: MemoryAttempt,
    of: { readonly script: TaskScript; readonly checkpoint: Checkpoint; readonly atMs: EpochMs },
  ): void {
    const { script, checkpoint, atMs } = of;
    this.#updateCheckpoint(attempt, atMs);
    attempt.savingS = workedS(attempt, atMs);
    attempt.endsMs = null;
    const patienceS = add(checkpoint.graceS, seconds(KILL_AFTER_S));
    const stopsInS = most(least(script.stopsInS, patienceS), script.movesInS ?? ZERO_S);
    const takesS = add(stopsInS, script.vacatesInS ?? ZERO_S);
    const exitSignal = gt(script.stopsInS, patienceS) ? 'SIGKILL' : 'SIGTERM';
    this.#endAt(instance, attempt, { atMs: plus(atMs, takesS), exitCode: null, exitSignal });
  }

  /** Plans the end; an earlier plan that comes first wins (a program may finish while it is told to stop). */
  #endAt(instance: MemoryInstance, attempt: MemoryAttempt, end: AttemptEnd): void {
    if (attempt.endsMs !== null && lte(attempt.endsMs, end.atMs)) return;
    attempt.endsMs = end.atMs;
    this.#at(end.atMs, () => {
      if (attempt.endsMs === end.atMs) this.#end(instance, attempt, end);
    });
  }

  #end(instance: MemoryInstance, attempt: MemoryAttempt, end: AttemptEnd): void {
    if (attempt.ended) return;
    attempt.ended = true;
    if (attempt.savingS !== null && attempt.stopped !== 'interrupted') attempt.keptS = attempt.savingS;
    const { request, startedMs } = attempt;
    const keptBeforeS = this.#keptOf(request);
    instance.attempts.set(request.attempt, null);
    if (attempt.pacing !== null) instance.paced--;
    this.#leaveGang(attempt, end.atMs);
    if (instance.paced > 0) this.#repace(instance, end.atMs);
    if (end.exitCode === 0 && startedMs !== null) {
      attempt.keptS = workedS(attempt, end.atMs);
      this.#kept.get(request.task.job)?.delete(taskOf(request));
    } else if (isPositive(attempt.keptS)) {
      const ofJob = this.#kept.get(request.task.job) ?? new Map<string, Seconds>();
      this.#kept.set(request.task.job, ofJob.set(taskOf(request), add(keptBeforeS, keptWorkS(attempt))));
    }
    const { atMs, exitCode, exitSignal } = end;
    this.#observe(instance, {
      kind: 'attempt-ended',
      attempt: request.attempt,
      atMs,
      exitCode,
      exitSignal,
      stopped: end.exitCode === 0 ? null : attempt.stopped,
      keptS: this.#reportedS(attempt, keptBeforeS),
      usage: startedMs === null ? null : usageOf(attempt, end.atMs),
      detail: startedMs === null ? 'stopped before it began' : null,
    });
    if (instance.state === 'releasing' && live(instance).length === 0) {
      this.#finish(instance, { atMs: end.atMs, cause: 'released', detail: 'given back' });
    }
  }

  #release(request: ReleaseRequest): EffectOutcome {
    const instance = this.#instances.get(request.instance);
    if (instance === undefined) return goneOutcome(request.instance, instance);
    if (instance.state === 'ended') return DONE;
    const atMs = this.#clock.now();
    instance.state = 'releasing';
    const running = live(instance);
    if (running.length === 0) this.#finish(instance, { atMs, cause: 'released', detail: 'given back' });
    for (const attempt of running) this.#stop(instance, attempt, { why: 'preempted', atMs });
    return DONE;
  }

  async list(): Promise<readonly FleetInstance[]> {
    this.#catchUp();
    return [...this.#instances.values()].map(({ request, launchedMs, state }) => ({
      instance: request.instance,
      pool: request.pool,
      bid: request.bid,
      launchedMs,
      live: state !== 'ended',
    }));
  }

  async observe(after: ReadonlyMap<InstanceId, number>): Promise<readonly Observation[]> {
    this.#catchUp();
    const found: Observation[] = [];
    // Reports in the order of launches.
    for (const instance of [...this.#reporting].sort((a, b) => a.launch - b.launch)) {
      const { observations } = instance;
      const seen = after.get(instance.request.instance) ?? 0;
      // Sequences are 1, 2, 3, ...: the reports after n begin at index n.
      for (let i = seen; i < observations.length; i++) found.push(observations[i] as Observation);
      if (seen < observations.length) continue;
      this.#reporting.delete(instance);
      if (instance.state === 'ended') instance.observations = [];
    }
    return found;
  }

  onChange(wake: () => void): () => void {
    this.#wakes.add(wake);
    this.#napUntilNext();
    return () => {
      this.#wakes.delete(wake);
      if (this.#wakes.size === 0) this.#stopNap();
    };
  }

  /** Throws EbbError `not-found` for an instance that never was. */
  async bill(id: InstanceId, until: EpochMs): Promise<Bill> {
    this.#catchUp();
    const instance = this.#instances.get(id);
    if (instance === undefined) throw new EbbError('not-found', { what: `there is no bill for instance ${id}` });
    const { endedMs, goneMs, cause, launchedMs, request } = instance;
    const untilMs = least(until, endedMs ?? goneMs ?? until);
    const takenByMarket = cause === 'interrupted' && endedMs !== null && gte(until, endedMs);
    return this.#truth.bill(request.pool, { launchedMs, untilMs, bid: request.bid, takenByMarket });
  }

  /** Output of the script on stdout; nothing on stderr. */
  async logs(attempt: AttemptId, stream: 'stdout' | 'stderr', offset: number, maxBytes: number): Promise<LogChunk> {
    const bytes = new TextEncoder().encode(stream === 'stdout' ? (this.#stdout.get(attempt) ?? '') : '');
    const part = bytes.subarray(offset, offset + maxBytes);
    return { text: new TextDecoder().decode(part), nextOffset: offset + part.length, totalBytes: bytes.length };
  }

  async close(): Promise<void> {
    this.#wakes.clear();
    this.#stopNap();
  }

  #observe(instance: MemoryInstance, fact: Fact): void {
    const id = instance.request.instance;
    this.#observed++;
    this.#reporting.add(instance);
    instance.observations.push({ ...fact, instance: id, sequence: instance.observations.length + 1 });
  }

  #at(at: EpochMs, happen: () => void): void {
    this.#schedule.add(raw(at), happen);
  }

  /**
   * Forgets an instance without a trace: its bill, its list entry and answers under its keys. For a driver that bounds
   * its memory.
   */
  forget(id: InstanceId): void {
    const instance = this.#instances.get(id);
    if (instance === undefined) return;
    if (this.#stdout.size > 0) for (const attempt of instance.attempts.keys()) this.#stdout.delete(attempt);
    this.#instances.delete(id);
    this.#reporting.delete(instance);
  }

  /** Forgets the checkpoints of a finished job. For the same driver. */
  forgetTasks(job: string): void {
    this.#kept.delete(job);
  }

  /** Jobs with checkpoint entries, also empty ones. */
  get jobsWithCheckpoints(): number {
    return this.#kept.size;
  }

  /** Time of the next event; null: none. For a driver that moves time itself and does not listen. */
  nextMs(): EpochMs | null {
    const nextMs = this.#schedule.nextMs;
    return nextMs === null ? null : epochMs(nextMs);
  }

  /** Number of events so far. */
  get happened(): number {
    return this.#happened;
  }

  /** Lets everything happen that the clock has passed. True when there is something new to observe. */
  catchUp(): boolean {
    const before = this.#observed;
    this.#catchUp();
    return this.#observed > before;
  }

  /** True when something happened. */
  #catchUp(): boolean {
    const now = raw(this.#clock.now());
    let happened = false;
    for (let nextMs = this.#schedule.nextMs; nextMs !== null && nextMs <= now; nextMs = this.#schedule.nextMs) {
      this.#schedule.take()?.();
      this.#happened++;
      happened = true;
    }
    return happened;
  }

  /** Sleeps on the clock until the next thing is due, while somebody wants to know. */
  #napUntilNext(): void {
    this.#stopNap();
    const { nextMs } = this.#schedule;
    if (nextMs === null || this.#wakes.size === 0) return;
    const nap = new AbortController();
    this.#nap = nap;
    // `then`, not `await`: a virtual clock lets exactly the work behind this promise run before it moves on.
    void this.#clock.sleep(between(this.#clock.now(), epochMs(nextMs)), nap.signal).then(() => {
      if (nap.signal.aborted) return;
      if (this.#catchUp()) this.#wake();
      this.#napUntilNext();
    });
  }

  #stopNap(): void {
    this.#nap?.abort();
    this.#nap = null;
  }

  #wake(): void {
    for (const wake of this.#wakes) wake();
  }
}

interface AttemptEnd {
  readonly atMs: EpochMs;
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
}

/** A copy, because an effect on one attempt may end others. */
const live = (instance: MemoryInstance): MemoryAttempt[] =>
  [...instance.attempts.values()].filter((attempt) => attempt !== null);

/** Requests of the other attempts on the instance. */
const neighboursOf = (instance: MemoryInstance, attempt: MemoryAttempt): StartRequest[] =>
  live(instance).flatMap((other) => (other === attempt || other.startedMs === null ? [] : [other.request]));

/** Usage that the script states, with what was measured meanwhile. */
function usageOf({ script, pacing, request }: MemoryAttempt, atMs: EpochMs): Usage | null {
  const measured = pacing?.measured(atMs) ?? null;
  const stated = script?.usage ?? null;
  if (measured === null) return stated;
  const { own, ofS } = measured;
  const cpuS = seconds(own.cpu * (raw(request.resources.cpu) / 1000) * ofS);
  return { maxRss: request.resources.memory, cpuS, ...stated, own, machine: measured.machine };
}

const workToDoS = ({ runtimeS, setupS = ZERO_S }: TaskScript): Seconds => sub(runtimeS, setupS);

/**
 * Begins the work of an attempt with a pace of its own, once it is set up. Returns when it is done if nothing changes.
 */
function pacedEnd(instance: MemoryInstance, attempt: MemoryAttempt, script: TaskScript): EpochMs {
  const { startedMs } = attempt;
  if (script.beside === undefined || startedMs === null) {
    throw new EbbError('internal', { what: 'an attempt without a pace, or one that has not started, is paced' });
  }
  const fromMs = plus(startedMs, script.setupS ?? ZERO_S);
  attempt.beside = script.beside(neighboursOf(instance, attempt));
  attempt.pacing = new Pacing(fromMs, attempt.beside);
  instance.paced++;
  return attempt.pacing.whenMs(workToDoS(script));
}

/** Work that the checkpoint of an attempt keeps, where `keptS` is the running time that it took. */
function keptWorkS({ pacing, keptS, script, startedMs }: MemoryAttempt): Seconds {
  if (pacing === null || startedMs === null) return keptS;
  return pacing.workS(plus(startedMs, add(script?.setupS ?? ZERO_S, keptS)));
}

/** Running time less the set-up. */
function workedS({ startedMs, script }: MemoryAttempt, atMs: EpochMs): Seconds {
  if (startedMs === null) return ZERO_S;
  return most(ZERO_S, sub(between(startedMs, atMs), script?.setupS ?? ZERO_S));
}

/** Name of the attempt's checkpoint: a copy has one of its own. */
const taskOf = ({ task: { stage, index, number }, role }: StartRequest): string =>
  role === 'copy' ? `${stage}\n${index}\n${number}` : `${stage}\n${index}`;

const goneOutcome = (id: InstanceId, instance: MemoryInstance | undefined): EffectOutcome => ({
  status: 'refused',
  why: 'instance-gone',
  detail: instance === undefined ? `there is no instance ${id}` : `instance ${id} is ${instance.state}`,
});
