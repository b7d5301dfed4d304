import {
  existsSync,
  futimesSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { engineNow, whenEngineTime } from './engine-time.ts';
import { hasCode, makeFolder, quarantine, readIfThere, removeFolder } from './files.ts';
import { JournalWriter } from './journal.ts';
import { inside, keyOfCommand, layout } from './layout.ts';
import { takeLock } from './lock.ts';
import type { Command, LaunchedSpec, StartCommand, StopReason } from './messages.ts';
import { StagingProcess } from './staging-process.ts';
import { TaskRun, type StopSchedule, type TaskEnd } from './task.ts';
import { endedChildrenCpuMs, sampleGroups } from './usage.ts';

/**
 * Plays one EC2 instance: comes up after its delay, runs tasks as they arrive in its inbox, gives the two-minute
 * warning when the market takes it, and ends. It lives on its own: engines come and go, the inbox and the journal stay.
 *   starting -> ready -> (warned | releasing ->) ended
 * It is never restarted, so its memory is the truth, and the journal its report. Dying at any point is a lost instance:
 * the lock then has a dead owner, and the engine kills remaining processes and completes the journal. Waits are on
 * monotonic time. Imports node: modules and files of this folder that do the same, to stay small.
 *   node supervisor.js <fleet directory> <instance directory> <file that packages are resolved from>
 */
const TICK_MS = 1000;
/** First readings of a task, so that short ones are measured too. */
const EARLY_READINGS_MS = [60, 300];
/**
 * Least time between two early readings, which scan all processes of the machine: tasks may come by the hundred a
 * second.
 */
const EARLY_GAP_MS = 100;
/** After the last SIGKILL: time for the processes to disappear and for outputs of tasks that finished in time. */
const SETTLE_MS = 5000;
/** Width of a heartbeat: one write of constant size replaces it. */
const HEARTBEAT_CHARS = 48;

type State = 'starting' | 'ready' | 'warned' | 'releasing' | 'ended';

interface Entry {
  readonly run: TaskRun;
  startedMs: number | null;
  /** Resolves once the end is in the journal; null while queued. */
  finished: Promise<void> | null;
  ended: boolean;
  /** True if it stops to go on elsewhere. */
  moves?: true;
}

class Supervisor {
  readonly #dir: string;
  readonly #instanceDir: string;
  readonly #requireFrom: string;
  readonly #spec: LaunchedSpec;
  readonly #journal: JournalWriter;
  readonly #heartbeatFd: number;
  readonly #doorbellFd: number;
  /** Every attempt that ever arrived here: an attempt is started once, however often it is asked for. */
  readonly #entries = new Map<string, Entry>();
  /** Stops that came before their start. */
  readonly #stoppedBefore = new Map<string, StopReason>();
  #state: State = 'starting';
  /** Tasks whose programs ended in this pass of the event loop. */
  #exits: TaskRun[] = [];
  #childrenCpuMs = endedChildrenCpuMs();
  /** Its process's usage must not count as a task's. */
  readonly #staging = new StagingProcess(() => {
    if (this.#exits.length === 0) this.#childrenCpuMs = endedChildrenCpuMs();
  });
  #engineSeen = { mtimeMs: 0, atMs: performance.now() };
  /** Due times of early readings, monotonic ms, unordered; and the time of the last one. */
  #earlyDue: number[] = [];
  #earlyTimer: NodeJS.Timeout | null = null;
  #earlyMs = -Infinity;
  #inboxIsDue = false;

  constructor(paths: { dir: string; instanceDir: string; requireFrom: string }, spec: LaunchedSpec) {
    this.#dir = paths.dir;
    this.#instanceDir = paths.instanceDir;
    this.#requireFrom = paths.requireFrom;
    this.#spec = spec;
    this.#doorbellFd = openSync(layout.doorbell(paths.dir), 'r+');
    this.#heartbeatFd = openSync(inside.heartbeat(paths.instanceDir), 'w');
    this.#journal = new JournalWriter(inside.journal(paths.instanceDir), 0, () => this.#ring());
  }

  begin(): void {
    const { launchedMs, readyMs, rebalanceMs, interruption, clock } = this.#spec;
    this.#beat();
    this.#journal.observe({ kind: 'instance-launched', atMs: launchedMs, readyMs });
    whenEngineTime(clock, readyMs, () => this.#ready());
    if (rebalanceMs !== null) whenEngineTime(clock, rebalanceMs, () => this.#rebalance(rebalanceMs));
    if (interruption !== null) whenEngineTime(clock, interruption.warnMs, () => void this.#interrupt(interruption));
    for (const folder of [inside.inbox, inside.pids, inside.work]) makeFolder(folder(this.#instanceDir));
    // Without inotify (its watches are a limited resource) the tick finds commands a second later.
    try {
      watch(inside.inbox(this.#instanceDir), () => this.#readInboxSoon()).on('error', () => undefined);
    } catch (error) {
      if (!hasCode(error, 'ENOSPC', 'EMFILE', 'ENFILE', 'ENOSYS')) throw error;
    }
    setInterval(() => void this.#tick(), TICK_MS);
    this.#readInbox();
    process.on('SIGTERM', () => void this.#endTaskless('lost', 'its supervisor was told to end (SIGTERM)'));
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  }

  /** A byte in the one file that the engine watches. */
  #ring(): void {
    try {
      writeSync(this.#doorbellFd, '.', 0);
    } catch {
      // The engine polls every few seconds.
    }
  }

  #beat(): void {
    const text = JSON.stringify([Math.round(this.#now()), Date.now()]).padEnd(HEARTBEAT_CHARS);
    try {
      writeSync(this.#heartbeatFd, text, 0);
    } catch {
      // A full disk: an older heartbeat only makes a lost instance cheaper. The touch itself shows that this process
      // lives.
      try {
        const now = new Date();
        futimesSync(this.#heartbeatFd, now, now);
      } catch {
        // The engine is patient for a minute.
      }
    }
  }

  #now(): number {
    return engineNow(this.#spec.clock);
  }

  /**
   * Latest time of events: none happens after the market has taken the instance, whatever the warning's floor allows in
   * wall time.
   */
  #capped(atMs: number): number {
    return Math.min(atMs, this.#spec.interruption?.goneMs ?? Infinity);
  }

  async #tick(): Promise<void> {
    // The directory was removed: no command can reach this instance any more.
    if (!existsSync(inside.lock(this.#instanceDir))) this.#vanish();
    this.#beat();
    this.#journal.flush();
    this.#readInbox();
    await this.#sample();
    this.#endWithoutEngine();
  }

  #vanish(): never {
    for (const { run } of this.#live()) run.kill();
    process.exit(1);
  }

  async #sample(): Promise<void> {
    const running = this.#live().filter((e) => e.run.group !== null);
    const samples = await sampleGroups(
      running.map((e) => e.run.group ?? 0),
      this.#requireFrom,
    );
    running.forEach((e, i) => {
      if (!e.ended) e.run.tick(samples[i] ?? null);
    });
  }

  /** Readings of tasks that have just begun. Several that come due about the same time are one. */
  #sampleEarly(): void {
    for (const ms of EARLY_READINGS_MS) this.#earlyDue.push(performance.now() + ms);
    this.#awaitEarly();
  }

  #awaitEarly(): void {
    if (this.#earlyTimer !== null || this.#earlyDue.length === 0) return;
    const dueMs = Math.max(Math.min(...this.#earlyDue), this.#earlyMs + EARLY_GAP_MS);
    this.#earlyTimer = setTimeout(
      () => {
        this.#earlyTimer = null;
        this.#earlyMs = performance.now();
        this.#earlyDue = this.#earlyDue.filter((ms) => ms > this.#earlyMs);
        void this.#sample();
        this.#awaitEarly();
      },
      Math.max(0, dueMs - performance.now()),
    );
  }

  /**
   * CPU time of ended children since the last time. It belongs to the task that ended, if only one did; otherwise the
   * readings stand.
   */
  async #chargeCpu(run: TaskRun): Promise<void> {
    this.#exits.push(run);
    await new Promise(setImmediate);
    const [first, ...others] = this.#exits;
    if (first === undefined) return;
    this.#exits = [];
    const before = this.#childrenCpuMs;
    this.#childrenCpuMs = endedChildrenCpuMs();
    if (others.length === 0 && before !== null && this.#childrenCpuMs !== null) {
      first.chargeCpu(this.#childrenCpuMs - before);
    }
  }

  #live(): Entry[] {
    return [...this.#entries.values()].filter((e) => !e.ended);
  }

  #ready(): void {
    if (this.#state !== 'starting') return;
    this.#state = 'ready';
    this.#journal.observe({ kind: 'instance-ready', atMs: this.#now() });
    for (const entry of this.#live()) this.#startNow(entry);
  }

  #rebalance(atMs: number): void {
    if (this.#state === 'starting' || this.#state === 'ready') {
      this.#journal.observe({ kind: 'instance-rebalance', atMs });
    }
  }

  /** Each file that comes tells several times. */
  #readInboxSoon(): void {
    if (this.#inboxIsDue) return;
    this.#inboxIsDue = true;
    setImmediate(() => {
      this.#inboxIsDue = false;
      this.#readInbox();
    });
  }

  /** Takes every command that has arrived: first into the journal, then out of the inbox. */
  #readInbox(): void {
    if (this.#state === 'ended') return;
    const inbox = inside.inbox(this.#instanceDir);
    const taken: string[] = [];
    this.#journal.together(() => {
      for (const name of namesIn(inbox)) {
        if (!name.endsWith('.json')) continue;
        const path = join(inbox, name);
        const text = readIfThere(path);
        if (text === null) continue;
        const command = commandIn(text);
        if (command === null) this.#takeUnreadable(name, quarantine(path));
        else {
          this.#take(command);
          taken.push(path);
        }
      }
    });
    for (const path of taken) rmSync(path, { force: true });
  }

  /**
   * Puts a damaged command aside. Its name tells its subject, so that nobody waits for it and no other task suffers.
   */
  #takeUnreadable(name: string, kept: string): void {
    const key = keyOfCommand(name);
    const detail = `its order could not be read; it is kept as ${kept}`;
    process.stderr.write(`${key ?? name}: ${detail}\n`);
    const [, kind, id] = /(?:^|\/)(start|stop|release)\/([^/]+)$/.exec(key ?? '') ?? [];
    if (key === null || id === undefined) return;
    if (kind === 'release') this.#take({ do: 'release', key });
    else if (kind === 'stop') this.#take({ do: 'stop', key, attempt: id, why: 'preempted' });
    else if (!this.#entries.has(id)) {
      this.#journal.taken(key, id, null);
      const end = { exitCode: null, exitSignal: null, keptS: 0, usage: null, detail };
      this.#journal.observe({ kind: 'attempt-ended', attempt: id, atMs: this.#now(), stopped: 'interrupted', ...end });
    }
  }

  #take(command: Command): void {
    switch (command.do) {
      case 'start':
        this.#takeStart(command);
        return;
      case 'stop': {
        this.#journal.taken(command.key, command.attempt, null);
        const entry = this.#entries.get(command.attempt);
        if (entry === undefined) this.#stoppedBefore.set(command.attempt, command.why);
        else if (!entry.ended) {
          if (command.to !== undefined) entry.moves = true;
          this.#stop(entry, command.why, this.#politely(entry, command.why));
        }
        return;
      }
      case 'release':
        this.#journal.taken(command.key, null, null);
        void this.#release();
        return;
    }
  }

  #takeStart(command: StartCommand): void {
    if (this.#entries.has(command.attempt)) return;
    const entry: Entry = { run: this.#newRun(command), startedMs: null, finished: null, ended: false };
    this.#journal.taken(command.key, command.attempt, entry.run.checkpointDir);
    this.#entries.set(command.attempt, entry);
    const stopped = this.#stoppedBefore.get(command.attempt);
    if (stopped !== undefined) this.#endUnstarted(entry, stopped, 'stopped before it began');
    else if (this.#state === 'ready') this.#startNow(entry);
    else if (this.#state !== 'starting')
      this.#endUnstarted(entry, 'interrupted', 'the instance is being taken or given back');
  }

  #newRun(command: StartCommand): TaskRun {
    const { attempt } = command;
    return new TaskRun(command, {
      dir: this.#dir,
      instanceDir: this.#instanceDir,
      clock: this.#spec.clock,
      limits: this.#spec.limits,
      staging: this.#staging,
      onStarted: (atMs) => {
        const entry = this.#entries.get(attempt);
        if (entry !== undefined) entry.startedMs = this.#capped(atMs);
        this.#journal.observe({ kind: 'attempt-started', attempt, atMs: this.#capped(atMs) });
        this.#sampleEarly();
      },
      onExit: (run) => this.#chargeCpu(run),
      onCheckpoint: (keptS) => {
        const entry = this.#entries.get(attempt);
        const atMs = this.#capped(this.#now());
        this.#journal.observe({ kind: 'attempt-checkpointed', attempt, atMs, keptS: this.#cappedKept(entry, keptS) });
      },
    });
  }

  #cappedKept(entry: Entry | undefined, keptS: number): number {
    const startedMs = entry?.startedMs ?? null;
    return startedMs === null ? 0 : Math.min(keptS, (this.#capped(Infinity) - startedMs) / 1000);
  }

  #startNow(entry: Entry): void {
    entry.finished = entry.run.run().then((end) => this.#report(entry, end));
  }

  #endUnstarted(entry: Entry, why: StopReason, detail: string): void {
    this.#report(entry, {
      atMs: this.#now(),
      exitCode: null,
      exitSignal: null,
      stopped: why,
      keptS: 0,
      usage: null,
      detail,
    });
  }

  #report(entry: Entry, end: TaskEnd): void {
    if (entry.ended) return;
    entry.ended = true;
    this.#journal.observe({
      kind: 'attempt-ended',
      attempt: entry.run.command.attempt,
      ...end,
      stopped: this.#isCutShort(entry, end) ? 'interrupted' : end.stopped,
      atMs: this.#capped(end.atMs),
      keptS: this.#cappedKept(entry, end.keptS),
    });
    const { role, task } = entry.run.command;
    // An attempt that lost the claim leaves the original's checkpoint: its task may run again.
    const isDone = end.exitCode === 0 && end.stopped === null;
    if (isDone || role === 'copy') removeFolder(entry.run.checkpointDir);
    // Nobody resumes the task.
    if (isDone && role === 'copy') removeFolder(layout.checkpoints(this.#dir, task));
  }

  /** A move that the market took before it had saved. */
  #isCutShort({ moves }: Entry, { stopped, exitSignal }: TaskEnd): boolean {
    return moves === true && stopped === 'preempted' && exitSignal === 'SIGKILL' && this.#state === 'warned';
  }

  /** Reasons of ours: the grace is the job's own. */
  #politely(entry: Entry, why: StopReason): StopSchedule {
    const savesInS = why === 'superseded' ? null : graceOf(entry);
    const graceS = savesInS ?? 0;
    return { checkpoint: savesInS !== null, termAfterS: graceS, killAfterS: graceS + this.#spec.limits.killAfterS };
  }

  #stop(entry: Entry, why: StopReason, schedule: StopSchedule): void {
    if (entry.finished === null) this.#endUnstarted(entry, why, 'stopped before it began');
    else entry.run.stop(why, schedule);
  }

  /**
   * The market takes the instance: notice, checkpoint signal to every task that has one, SIGTERM, SIGKILL, gone. Tasks
   * without a checkpoint run on until shortly before the end, since they may still finish.
   */
  async #interrupt(taken: NonNullable<LaunchedSpec['interruption']>): Promise<void> {
    if (this.#state === 'ended') return;
    const { clock, limits } = this.#spec;
    const windowS = Math.max((taken.goneMs - taken.warnMs) / 1000 / clock.speed, limits.warningFloorS);
    if (this.#state !== 'releasing') {
      this.#state = 'warned';
      this.#journal.observe({ kind: 'instance-warned', atMs: taken.warnMs, goneMs: taken.goneMs });
    }
    const lastS = Math.min(limits.killAfterS, windowS / 4);
    for (const entry of this.#live()) {
      const savesInS = graceOf(entry);
      const graceS = savesInS ?? Infinity;
      this.#stop(entry, 'interrupted', {
        checkpoint: savesInS !== null,
        termAfterS: Math.min(graceS, windowS - lastS),
        killAfterS: Math.min(graceS + lastS, windowS),
      });
    }
    const gone = new Promise<void>((done) => whenEngineTime(clock, taken.goneMs, done));
    await Promise.all([gone, this.#allEnded(windowS * 1000 + SETTLE_MS)]);
    this.#finish('interrupted', taken.goneMs, `taken by the market (${taken.cause})`);
  }

  async #release(): Promise<void> {
    if (this.#state === 'releasing' || this.#state === 'ended') return;
    await this.#endTaskless('released', 'given back');
  }

  /** Stops all remaining attempts, then ends. */
  async #endTaskless(cause: 'released' | 'lost', detail: string): Promise<void> {
    if (this.#state === 'ended') return;
    this.#state = 'releasing';
    const { limits } = this.#spec;
    let longestS = 0;
    for (const entry of this.#live()) {
      const why = cause === 'released' ? 'preempted' : 'interrupted';
      const schedule = this.#politely(entry, why);
      longestS = Math.max(longestS, schedule.killAfterS);
      this.#stop(entry, why, schedule);
    }
    await this.#allEnded(Math.max(longestS, limits.killAfterS) * 1000 + SETTLE_MS);
    this.#finish(cause, this.#capped(this.#now()), detail);
  }

  /** Waits for every running attempt's report; missing ones are reported as interrupted. */
  async #allEnded(atMostMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((done) => (timer = setTimeout(done, atMostMs)));
    await Promise.race([Promise.all(this.#live().flatMap((e) => e.finished ?? [])), late]);
    clearTimeout(timer);
    for (const entry of this.#live()) {
      this.#endUnstarted(entry, 'interrupted', 'its instance ended while files were being copied');
    }
  }

  #finish(cause: 'interrupted' | 'released' | 'lost', atMs: number, detail: string): void {
    if (this.#state === 'ended') return;
    // Commands that came meanwhile are answered, not dropped.
    this.#readInbox();
    this.#state = 'ended';
    this.#beat();
    this.#journal.observe({ kind: 'instance-ended', atMs, cause, detail });
    const leave = (): void => {
      if (!this.#journal.flush()) return;
      for (const folder of [inside.inbox, inside.pids, inside.work]) {
        rmSync(folder(this.#instanceDir), { recursive: true, force: true });
      }
      process.exit(0);
    };
    setInterval(leave, TICK_MS);
    leave();
  }

  /** Nothing is left running for ever: no task and no engine for some minutes end the instance. */
  #endWithoutEngine(): void {
    if (this.#live().length > 0) {
      this.#engineSeen.atMs = performance.now();
      return;
    }
    const mtimeMs = modified(layout.engineHeartbeat(this.#dir));
    if (mtimeMs !== this.#engineSeen.mtimeMs) this.#engineSeen = { mtimeMs, atMs: performance.now() };
    const unseenS = (performance.now() - this.#engineSeen.atMs) / 1000;
    if (unseenS > this.#spec.limits.orphanAfterS && this.#state !== 'releasing') {
      void this.#endTaskless('released', `idle, and no engine for ${Math.round(unseenS)} s`);
    }
  }
}

/** Seconds to save its work; null where it has no checkpoint, or nobody resumes it, as a copy. */
const graceOf = ({ run: { command } }: Entry): number | null =>
  command.role === 'copy' || command.checkpoint === null ? null : command.checkpoint.graceS;

/** Null for a text that is no command: half of one, say. */
function commandIn(text: string): Command | null {
  try {
    const command = JSON.parse(text) as Command | null;
    return typeof command === 'object' ? command : null;
  } catch {
    return null;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

function modified(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function main([dir, instanceDir, requireFrom]: readonly string[]): void {
  if (dir === undefined || instanceDir === undefined || requireFrom === undefined) {
    throw new Error('usage: supervisor <fleet directory> <instance directory> <file that packages are resolved from>');
  }
  const spec = JSON.parse(readFileSync(inside.spec(resolve(instanceDir)), 'utf8')) as LaunchedSpec;
  if (!takeLock(inside.lock(instanceDir))) return;
  process.title = `ebb-instance ${spec.instance}`;
  new Supervisor({ dir, instanceDir, requireFrom }, spec).begin();
}

main(process.argv.slice(2));
