import { mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signalQuietly } from '../../lib/drivers/local/fleet/processes.ts';
import type { Observation } from '../../lib/domain/observation.ts';
import { scaledClock, type Clock, type WallTime } from '../../lib/kernel/clock.ts';
import { plus, raw, seconds, type EpochMs } from '../../lib/kernel/units.ts';
import {
  createLocalFleet,
  type LocalFleet,
  type LocalFleetOptions,
} from '../../lib/drivers/local/fleet/local-fleet.ts';
import { SAVES, truth, type FleetDriver, type Program } from '../contract/fleet.ts';

export const wall: WallTime = {
  epochMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (ms, fire) => {
    const timer = setTimeout(fire, ms);
    return () => clearTimeout(timer);
  },
};

/** Engine seconds per wall second: fast enough for minutes to be over soon, slow enough for a busy machine. */
export const SPEED = 100;

/** What a task of the tests runs: saves by rename, as a checkpoint should be written. */
const SCRIPT = `
save() { echo saved > "$EBB_CHECKPOINT_DIR/state.tmp" && mv "$EBB_CHECKPOINT_DIR/state.tmp" "$EBB_CHECKPOINT_DIR/state"; }
printf '%s' "$PRINTS"
if [ -z "$SAVE_EVERY" ]; then sleep "$WALL_S"; exit "$CODE"; fi
trap 'save; if [ -n "$FINISHES" ]; then exit 0; fi; exit 75' USR2
i=0
while [ "$i" -lt "$STEPS" ]; do
  sleep 0.1
  i=$((i + 1))
  if [ $((i % SAVE_EVERY)) -eq 0 ]; then save; fi
done
exit "$CODE"`;

/** What a task of the contract runs, at `speed`. */
export function programOf(p: Program, workdir: string, speed: number) {
  const text = (n: number | undefined): string => (n === undefined ? '' : String(n));
  const steps = Math.ceil((p.runtimeS / speed) * 10);
  return {
    command: ['sh', '-c', SCRIPT],
    env: {
      WALL_S: String(p.runtimeS / speed),
      STEPS: String(steps),
      SAVE_EVERY: p.checkpointEveryS === undefined ? '' : String(Math.ceil((p.checkpointEveryS / speed) * 10)),
      FINISHES: text(p.finishesInS),
      CODE: String(p.exitCode),
      PRINTS: p.prints ?? '',
    },
    workdir,
    checkpoint: p.checkpointEveryS === undefined ? null : SAVES,
  };
}

/** A fleet on a directory of its own, that can be dropped and opened again, and leaves no process behind. */
export class LocalFleetBench implements FleetDriver {
  readonly dir: string;
  readonly clock: Clock;
  readonly #options: Partial<LocalFleetOptions>;
  readonly #speed: number;
  fleet: LocalFleet;

  constructor(startMs: EpochMs, options: Partial<LocalFleetOptions> = {}) {
    this.dir = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-fleet-')));
    this.#options = options;
    this.#speed = options.speed ?? SPEED;
    this.clock = scaledClock(wall, { wallMs: Date.now(), engineMs: raw(startMs), speed: this.#speed });
    this.fleet = this.open();
  }

  /** Another engine on the same directory, as after a crash. */
  open(more: Partial<LocalFleetOptions> = {}): LocalFleet {
    return createLocalFleet({
      dir: join(this.dir, 'fleet'),
      truth,
      clock: this.clock,
      speed: this.#speed,
      ...this.#options,
      ...more,
      limits: { killAfterS: 1, ...this.#options.limits },
    });
  }

  async reopen(): Promise<void> {
    await this.fleet.close();
    this.fleet = this.open();
  }

  now(): EpochMs {
    return this.clock.now();
  }

  program(p: Program) {
    return programOf(p, this.dir, this.#speed);
  }

  /** Looks often; gives up after `withinS` engine seconds and some wall time for a machine that is busy. */
  async until(
    what: string,
    done: (seen: readonly Observation[]) => boolean,
    withinS = 1000,
  ): Promise<readonly Observation[]> {
    const end = plus(this.clock.now(), seconds(withinS + 20 * this.#speed));
    for (;;) {
      const seen = await this.fleet.observe(new Map());
      if (done(seen)) return seen;
      if (raw(this.clock.now()) > raw(end)) throw new Error(`no ${what} in: ${JSON.stringify(seen)}`);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  /** Ends whatever works below this directory, by the paths that its processes carry. */
  async close(): Promise<void> {
    await this.fleet.close();
    for (let tries = 0; tries < 100; tries++) {
      const left = processesOf(this.dir);
      for (const { pid } of left) signalQuietly(pid, 'SIGKILL');
      if (left.length === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Living processes that name `dir` in their arguments or environment, or work in it. */
export function processesOf(dir: string): { readonly pid: number; readonly command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
        const environment = readFileSync(`/proc/${name}/environ`, 'utf8');
        const cwd = readlinkSync(`/proc/${name}/cwd`);
        const isZombie = /^State:\s*Z/m.test(readFileSync(`/proc/${name}/status`, 'utf8'));
        return !isZombie && [command, environment, cwd].some((text) => text.includes(dir))
          ? [{ pid: Number(name), command }]
          : [];
      } catch {
        return [];
      }
    });
}
