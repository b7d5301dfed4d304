import { messageOf } from '../../../kernel/errors.ts';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { linkSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { engineNow, whenEngineTime } from './engine-time.ts';
import { hasCode } from './files.ts';
import { KeptWork, newestFileMs } from './kept-work.ts';
import { inside, layout } from './layout.ts';
import { LogFile } from './log-file.ts';
import { MemoryCage, overLimit } from './memory-limit.ts';
import type { SharedClock, StartCommand, StopReason, SupervisorLimits } from './messages.ts';
import {
  BEFORE_PROGRAM,
  COOKIE,
  endProcesses,
  groupExists,
  killByCookie,
  signalGroup,
  signalHandlers,
} from './processes.ts';
import { secretVariables, withoutSecrets } from './secrets.ts';
import type { StagingProcess } from './staging-process.ts';
import type { Places } from './staging.ts';
import { TaskLoad, type TaskLoads } from './task-load.ts';
import { sharedOutBytes, type Sample } from './usage.ts';

/**
 * One attempt: bring inputs -> run the program in a process group of its own -> wait until no process of it is left ->
 * put outputs back. A stop may come at any moment, also before the program runs. Imported by the supervisor: node:
 * imports only.
 */
export interface TaskContext {
  readonly dir: string;
  readonly instanceDir: string;
  readonly clock: SharedClock;
  readonly limits: SupervisorLimits;
  /** Copies inputs and outputs. */
  readonly staging: Pick<StagingProcess, 'ask'>;
  readonly onStarted: (atMs: number) => void;
  readonly onCheckpoint: (keptS: number) => void;
  /** The program has ended; resolves when its CPU time has been looked up. */
  readonly onExit: (run: TaskRun) => Promise<void>;
}

/** End of an attempt; engine times. `stopped` only if it was told to and did not finish its work. */
export interface TaskEnd {
  readonly atMs: number;
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
  readonly stopped: StopReason | null;
  /** Attempt that holds the claim which this one lost. */
  readonly publisher?: string;
  readonly keptS: number;
  readonly usage: ({ readonly maxRss: number; readonly cpuS: number } & Partial<TaskLoads>) | null;
  readonly detail: string | null;
}

/** Wall seconds from now; a null checkpoint sends no checkpoint signal. */
export interface StopSchedule {
  readonly checkpoint: boolean;
  readonly termAfterS: number;
  readonly killAfterS: number;
}

/** Time for late output from a pipe whose writers are gone or hidden. */
const DRAIN_MS = 2000;
const GROUP_POLL_MS = 50;

export class TaskRun {
  readonly command: StartCommand;
  readonly checkpointDir: string;
  readonly #context: TaskContext;
  readonly #places: Places;
  #child: ChildProcess | null = null;
  #startedMs: number | null = null;
  #kept: KeptWork | null = null;
  #keptS = 0;
  #maxRssBytes = 0;
  #cpuMs = 0;
  #load: TaskLoad | null = null;
  #cage: MemoryCage | null = null;
  /** Why its memory ended it; null while that has not happened. */
  #outOfMemory: string | null = null;
  #stopped: StopReason | null = null;
  #killAtWall = Infinity;
  /** Aborted by a stop: inputs that are still being copied are not needed any more. */
  readonly #bringing = new AbortController();
  readonly #cancelTimers: (() => void)[] = [];

  constructor(command: StartCommand, context: TaskContext) {
    this.command = command;
    this.#context = context;
    const isCopy = command.role === 'copy';
    this.checkpointDir = (isCopy ? layout.ownCheckpoints : layout.checkpoints)(context.dir, command.task);
    this.#places = {
      workdir: command.workdir,
      scratch: inside.scratch(context.instanceDir, command.attempt),
      fleetDir: context.dir,
    };
  }

  /** Process group of the program while it runs. */
  get group(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Runs the attempt to its end. Never rejects: errors are part of the end. */
  async run(): Promise<TaskEnd> {
    try {
      mkdirSync(this.#places.scratch, { recursive: true });
      mkdirSync(this.checkpointDir, { recursive: true });
      await this.#bringInputs();
      if (this.#stopped !== null) return this.#end({ detail: 'stopped before it began' });
      return await this.#runProgram();
    } catch (error) {
      await this.#endGroup();
      return this.#end({ stopped: null, detail: messageOf(error) });
    } finally {
      for (const cancel of this.#cancelTimers) cancel();
      await this.#clearAway();
    }
  }

  /** Returns early when the attempt is stopped meanwhile. */
  async #bringInputs(): Promise<void> {
    const { inputs } = this.command;
    const order = { do: 'bring', patterns: inputs, places: this.#places } as const;
    try {
      await this.#context.staging.ask(order, this.#bringing.signal);
    } catch (error) {
      if (!this.#bringing.signal.aborted) throw error;
    }
  }

  /**
   * Checkpoint signal now, SIGTERM and SIGKILL as scheduled. The first reason stays; a later stop can only make the end
   * come sooner.
   */
  stop(why: StopReason, schedule: StopSchedule): void {
    this.#stopped ??= why;
    this.#bringing.abort();
    const killAt = performance.now() + schedule.killAfterS * 1000;
    if (killAt >= this.#killAtWall) return;
    this.#killAtWall = killAt;
    const { checkpoint } = this.command;
    if (schedule.checkpoint && checkpoint !== null && this.group !== null) {
      signalHandlers(this.group, checkpoint.signal, constants.signals[checkpoint.signal]);
    }
    this.#after(schedule.termAfterS, () => this.#signal('SIGTERM'));
    this.#after(schedule.killAfterS, () => this.#signal('SIGKILL'));
  }

  /** Ends all of it; no end is reported. */
  kill(): void {
    this.#signal('SIGKILL');
    killByCookie(this.#places.scratch);
  }

  /** Takes a reading of the group's usage and checks the checkpoint; about once a second. */
  tick(sample: Sample | null): void {
    if (sample !== null) {
      this.#maxRssBytes = Math.max(this.#maxRssBytes, sample.rssBytes);
      this.#watchMemory(sample.rssBytes);
      this.#cpuMs = Math.max(this.#cpuMs, sample.cpuMs);
      this.#load?.add(sample);
    }
    if (this.#updateCheckpoint()) this.#context.onCheckpoint(this.#keptS);
  }

  /** Processes that share memory count it once each in their resident sets: past the limit it is measured by shares. */
  #watchMemory(rssBytes: number): void {
    const { memoryMib = null } = this.command;
    if (memoryMib === null || this.#outOfMemory !== null || this.group === null) return;
    const limit = memoryMib * 2 ** 20;
    if (rssBytes <= limit) return;
    const bytes = sharedOutBytes(this.group) ?? rssBytes;
    if (bytes <= limit) return;
    this.#outOfMemory = overLimit(memoryMib, { bytes });
    this.#signal('SIGKILL');
  }

  /** CPU time of the whole task, exact if it alone ended since the last reading. */
  chargeCpu(cpuMs: number): void {
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs);
  }

  async #runProgram(): Promise<TaskEnd> {
    const { attempt, memoryMib = null, timeoutS } = this.command;
    // A secret may be missing by now: then nothing is open yet.
    const environment = this.#environment();
    if (memoryMib !== null) this.#cage = MemoryCage.open(attempt, memoryMib);
    const child = this.#spawn(environment);
    const [out, err] = (['stdout', 'stderr'] as const).map(
      (stream) => new LogFile(layout.log(this.#context.dir, attempt, stream), this.#context.limits.logBytes),
    ) as [LogFile, LogFile];
    child.stdout?.on('data', (chunk: Buffer) => out.write(chunk));
    child.stderr?.on('data', (chunk: Buffer) => err.write(chunk));
    const closed = once(child, 'close').catch(() => undefined);
    const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    exited.catch(() => undefined);
    try {
      await once(child, 'spawn');
      this.#child = child;
      this.#began();
      if (timeoutS !== null) this.#onTimeout(timeoutS);
      const [code, signal] = await exited;
      const atMs = engineNow(this.#context.clock);
      if (this.#cage?.oomKilled === true) this.#outOfMemory ??= overLimit(memoryMib ?? 0, 'kernel');
      await this.#context.onExit(this);
      await this.#endGroup();
      await Promise.race([closed, new Promise((resolve) => this.#after(DRAIN_MS / 1000, () => resolve(null)))]);
      this.#updateCheckpoint();
      return await this.#conclude(code, signal, atMs);
    } finally {
      this.#cage?.close();
      child.stdout?.destroy();
      child.stderr?.destroy();
      out.close();
      err.close();
    }
  }

  #spawn(env: NodeJS.ProcessEnv): ChildProcess {
    const { command } = this.command;
    const { instanceDir } = this.#context;
    const first = ['-c', BEFORE_PROGRAM, 'ebb', inside.pid(instanceDir, this.command.attempt), this.#cage?.procs ?? ''];
    return spawn('/bin/sh', [...first, ...command], {
      cwd: this.#places.scratch,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const { attempt, task, env, secrets = {}, workdir } = this.command;
    const own = {
      EBB_JOB: task.job,
      EBB_STAGE: task.stage,
      EBB_TASK_INDEX: String(task.index),
      EBB_TASK_ATTEMPT: String(task.number),
      EBB_ATTEMPT: attempt,
      EBB_WORKDIR: workdir,
      EBB_CHECKPOINT_DIR: this.checkpointDir,
      EBB_RESUMED: newestFileMs(this.checkpointDir) === null ? '0' : '1',
    };
    const cookie = { [COOKIE]: this.#places.scratch };
    // The token of the engine's API is not for its tasks.
    const { EBB_TOKEN: _, ...inherited } = process.env;
    // The cookie comes first, where it is found however long the environment is, and last, where nothing overrides it.
    const secret = secretVariables(this.#context.dir, secrets, process.env);
    return { ...cookie, ...withoutSecrets(inherited), ...env, ...secret, ...own, ...cookie };
  }

  #began(): void {
    const now = engineNow(this.#context.clock);
    this.#startedMs = now;
    if (this.command.milliCpu !== undefined) this.#load = new TaskLoad(this.command.milliCpu);
    this.#kept = new KeptWork(this.checkpointDir, now, this.#context.clock.speed);
    this.#context.onStarted(now);
    // A stop during the start of the program has sent its signals to nobody.
    if (this.#stopped !== null) this.#signal('SIGTERM');
  }

  #onTimeout(timeoutS: number): void {
    const at = (this.#startedMs ?? 0) + timeoutS * 1000;
    const { checkpoint } = this.command;
    const graceS = checkpoint?.graceS ?? 0;
    const schedule = {
      checkpoint: true,
      termAfterS: graceS,
      killAfterS: graceS + this.#context.limits.killAfterS,
    };
    this.#cancelTimers.push(whenEngineTime(this.#context.clock, at, () => this.stop('timed-out', schedule)));
  }

  /**
   * Once the leader has ended no process of the task may go on. During a stop the rest of the group (a shell's
   * children, say) keeps its time to save; otherwise it is killed at once.
   */
  async #endGroup(): Promise<void> {
    const group = this.group;
    if (group === null) return;
    if (this.#stopped !== null) {
      while (groupExists(group) && performance.now() < this.#killAtWall) {
        await new Promise((resolve) => setTimeout(resolve, GROUP_POLL_MS));
      }
    }
    signalGroup(group, 'SIGKILL');
    await endProcesses(this.#places.scratch, []);
  }

  async #conclude(code: number | null, signal: string | null, atMs: number): Promise<TaskEnd> {
    // Even if it was also told to stop: it would need as much memory the next time.
    if (code !== 0 && this.#outOfMemory !== null) {
      return this.#end({ atMs, exitCode: code, exitSignal: signal, stopped: null, detail: this.#outOfMemory });
    }
    if (code !== 0) {
      return this.#end({ atMs, exitCode: code, exitSignal: signal, detail: this.#describe(code) });
    }
    if (this.#stopped === 'superseded') return this.#end({ atMs, exitCode: 0 });
    const ranS = (atMs - (this.#startedMs ?? atMs)) / 1000;
    if (this.#stopped !== null) {
      const missing = await this.#outputs('missing');
      // A program that answers SIGTERM with exit code 0 has not finished.
      if (missing.length > 0)
        return this.#end({ atMs, detail: `ended with code 0 before it made ${missing.join(', ')}` });
    }
    const publisher = this.#publisher();
    if (publisher !== this.command.attempt) {
      const detail = `${publisher} publishes its outputs`;
      return this.#end({ atMs, exitCode: 0, stopped: 'superseded', publisher, detail });
    }
    const unmatched = await this.#publish();
    const detail = unmatched.length === 0 ? null : `no file matches ${inWords(unmatched)} among its outputs`;
    return this.#end({ atMs, exitCode: 0, stopped: null, keptS: ranS, detail });
  }

  /** Attempt of this round that publishes outputs: the first to ask. */
  #publisher(): string {
    const { attempt, task, outputs } = this.command;
    return outputs.length === 0 ? attempt : claim(this.#publisherFile(task), attempt);
  }

  #publisherFile(task: StartCommand['task']): string {
    return layout.publisher(this.#context.dir, task, task.round ?? task.number);
  }

  /** If its outputs cannot be published, those of another attempt may be. */
  async #publish(): Promise<readonly string[]> {
    try {
      return await this.#outputs('put');
    } catch (error) {
      rmSync(this.#publisherFile(this.command.task), { force: true });
      throw error;
    }
  }

  #outputs(what: 'put' | 'missing'): Promise<readonly string[]> {
    return this.#context.staging.ask({ do: what, patterns: this.command.outputs, places: this.#places });
  }

  #describe(code: number | null): string | null {
    const program = this.command.command[0] ?? '';
    if (code === 127) return `exit code 127: is ${program} installed, or missing from inputs?`;
    return code === 126 ? `exit code 126: ${program} cannot be executed` : null;
  }

  #end(end: Partial<TaskEnd>): TaskEnd {
    return {
      atMs: engineNow(this.#context.clock),
      exitCode: null,
      exitSignal: null,
      stopped: this.#stopped,
      keptS: this.#keptS,
      usage: this.#startedMs === null ? null : this.#usage(),
      detail: null,
      ...end,
    };
  }

  #usage(): NonNullable<TaskEnd['usage']> {
    const loads = this.#load?.until(this.#cpuMs) ?? null;
    return { maxRss: this.#maxRssBytes / 2 ** 20, cpuS: this.#cpuMs / 1000, ...loads };
  }

  #updateCheckpoint(): boolean {
    const before = this.#keptS;
    this.#keptS = this.#kept?.update(engineNow(this.#context.clock)) ?? 0;
    return this.#keptS > before;
  }

  async #clearAway(): Promise<void> {
    rmSync(inside.pid(this.#context.instanceDir, this.command.attempt), { force: true });
    // Files that cannot be removed now go with the instance's directory.
    await removeScratch(this.#places.scratch).catch(() => undefined);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.group !== null) signalGroup(this.group, signal);
  }

  #after(waitS: number, then: () => void): void {
    const timer = setTimeout(then, waitS * 1000);
    this.#cancelTimers.push(() => clearTimeout(timer));
  }
}

/** First claimant of the file; it is written whole or not at all. */
function claim(path: string, name: string): string {
  const own = `${path}.${process.pid}.tmp`;
  writeFileSync(own, name);
  try {
    linkSync(own, path);
    return name;
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    return readFileSync(path, 'utf8');
  } finally {
    rmSync(own, { force: true });
  }
}

/** Empty after most short tasks; else it may hold much, and is not removed in the supervisor's own time. */
async function removeScratch(path: string): Promise<void> {
  try {
    rmdirSync(path);
  } catch {
    await rm(path, { recursive: true, force: true });
  }
}

/** The first few of several patterns. */
const inWords = (patterns: readonly string[]): string =>
  patterns.slice(0, 3).join(', ') + (patterns.length > 3 ? ` and ${patterns.length - 3} more` : '');
