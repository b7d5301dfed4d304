/** Load of a task's processes and of the machine meanwhile, from readings about once a second. */
import { soundLoad, type Load, type MostTransfers } from '../../../domain/load.ts';
import { loadBetween, mostTransfers, readCounters, type Counters } from './machine-load.ts';
import type { Sample } from './usage.ts';

/** Shorter runs say nothing: readings are a second apart. */
const LEAST_MS = 1000;

export interface TaskLoads {
  readonly own: Load;
  readonly machine: { readonly load: Load; readonly most: MostTransfers };
}

export class TaskLoad {
  readonly #milliCpu: number;
  readonly #from: Counters | null = readCounters();
  #readings = 0;
  #waiting = 0;
  #last = { read: 0, written: 0 };
  #read = 0;
  #written = 0;
  #tellsIo = false;

  /** Begins now. `milliCpu`: what it asked for. */
  constructor(milliCpu: number) {
    this.#milliCpu = milliCpu;
  }

  add({ io, isWaiting }: Sample): void {
    this.#readings++;
    if (isWaiting === true) this.#waiting++;
    if (io === undefined) return;
    this.#tellsIo = true;
    // Processes that end take their counters with them: what was counted of them stays.
    this.#read += Math.max(0, io.read - this.#last.read);
    this.#written += Math.max(0, io.written - this.#last.written);
    this.#last = io;
  }

  /** Means until now; null where the machine cannot tell, or the run was too short. `cpuMs`: of the task. */
  until(cpuMs: number): TaskLoads | null {
    const now = readCounters();
    if (this.#from === null || now === null || !this.#tellsIo || this.#readings === 0) return null;
    const ms = now.atMs - this.#from.atMs;
    const load = loadBetween(this.#from, now);
    if (load === null || ms < LEAST_MS) return null;
    const own = soundLoad({
      cpu: cpuMs / ms / Math.max(0.001, this.#milliCpu / 1000),
      ioWait: this.#waiting / this.#readings,
      diskRead: (1000 * this.#read) / ms,
      diskWritten: (1000 * this.#written) / ms,
      // The kernel counts network bytes by interface alone.
      netReceived: 0,
      netSent: 0,
    });
    return own === null ? null : { own, machine: { load, most: mostTransfers() } };
  }
}
