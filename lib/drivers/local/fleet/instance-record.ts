import { statSync } from 'node:fs';
import { instanceId, poolId, type InstanceId, type PoolId } from '../../../kernel/ids.ts';
import { epochMs, raw, usdPerHour, type EpochMs } from '../../../kernel/units.ts';
import type { Observation } from '../../../domain/observation.ts';
import type { Bid } from '../../../domain/pool.ts';
import { monotonicMs } from './engine-time.ts';
import { hasCode, quarantine, readIfThere } from './files.ts';
import { JournalReader } from './journal.ts';
import { commandName, inside } from './layout.ts';
import type { InstanceSpec, JournalLine, LaunchedSpec } from './messages.ts';
import { SignOfLife } from './sign-of-life.ts';

/** An attempt that a supervisor has taken on, from its journal. */
export interface TakenAttempt {
  readonly checkpointDir: string;
  startedMs: number | null;
  keptS: number;
  ended: boolean;
}

/** One launched instance in the engine: its spec, and its journal as read so far. */
export class InstanceRecord {
  readonly dir: string;
  readonly spec: LaunchedSpec;
  readonly observations: Observation[] = [];
  readonly attempts = new Map<string, TakenAttempt>();
  readonly journal: JournalReader;
  readonly #taken = new Set<string>();
  readonly #life: SignOfLife;
  /** Last spawn of the supervisor by this engine; monotonic ms. */
  spawnedMs: number | null = null;
  spawns = 0;
  warned = false;
  ended: Extract<Observation, { kind: 'instance-ended' }> | null = null;
  /** The caller of `observe` has seen the end. */
  consumed = false;

  /** `trouble` is called with unreadable parts. */
  constructor(dir: string, spec: LaunchedSpec, trouble: (text: string) => void = () => undefined) {
    this.dir = dir;
    this.#life = new SignOfLife(inside.heartbeat(dir));
    this.spec = spec;
    this.journal = new JournalReader(inside.journal(dir), (line) =>
      trouble(`${inside.journal(dir)}: a line cannot be read and is passed over: ${line.slice(0, 80)}`),
    );
  }

  get id(): InstanceId {
    return instanceId(this.spec.instance);
  }

  get pool(): PoolId {
    return poolId(this.spec.pool);
  }

  get bid(): Bid {
    return this.spec.bid === 'uncapped' ? 'uncapped' : usdPerHour(this.spec.bid);
  }

  get launchedMs(): EpochMs {
    return epochMs(this.spec.launchedMs);
  }

  get lastSequence(): number {
    return this.observations.at(-1)?.sequence ?? 0;
  }

  /** Observations past a cursor. O(them): an instance may have run thousands of tasks. */
  after(sequence: number): readonly Observation[] {
    let from = this.observations.length;
    while (from > 0 && (this.observations[from - 1]?.sequence ?? 0) > sequence) from--;
    return this.observations.slice(from);
  }

  /** True if the supervisor took the command with this key, now or earlier. */
  hasTaken(key: string): boolean {
    return this.#taken.has(commandName(key));
  }

  /** Reads the new part of the journal. An ended journal grows no more. */
  refresh(): void {
    if (this.ended !== null) return;
    for (const line of this.journal.read()) this.#add(line);
  }

  #add(line: JournalLine): void {
    if ('taken' in line) {
      this.#taken.add(commandName(line.taken));
      if (line.attempt !== null && line.checkpointDir !== null) {
        this.attempts.set(line.attempt, {
          checkpointDir: line.checkpointDir,
          startedMs: null,
          keptS: 0,
          ended: false,
        });
      }
      return;
    }
    // Units and ids are numbers and strings in a journal: they get their types back here.
    const observation = { instance: this.id, ...line } as unknown as Observation;
    this.observations.push(observation);
    switch (observation.kind) {
      case 'instance-warned':
        this.warned = true;
        break;
      case 'instance-ended':
        this.ended = observation;
        break;
      case 'attempt-started':
        this.#attempt(observation.attempt, (a) => (a.startedMs = raw(observation.atMs)));
        break;
      case 'attempt-checkpointed':
        this.#attempt(observation.attempt, (a) => (a.keptS = raw(observation.keptS)));
        break;
      case 'attempt-ended':
        this.#attempt(observation.attempt, (a) => (a.ended = true));
        break;
      case 'instance-launched':
      case 'instance-ready':
      case 'instance-rebalance':
        break;
    }
  }

  #attempt(id: string, change: (a: TakenAttempt) => void): void {
    const attempt = this.attempts.get(id);
    if (attempt !== undefined) change(attempt);
  }

  /** Last sign of life: engine and wall ms; null when there never was one. */
  lastBeat(): { readonly engineMs: number; readonly wallMs: number } | null {
    const text = readIfThere(inside.heartbeat(this.dir));
    const [engineMs, wallMs] = numbersIn(text ?? '');
    return engineMs === undefined || wallMs === undefined ? null : { engineMs, wallMs };
  }

  /** Wall time since the last sign of the supervisor, ms, as observed by this engine. */
  silentMs(): number {
    return this.#life.silentMs(monotonicMs());
  }

  journalBytes(): number {
    try {
      return statSync(inside.journal(this.dir)).size;
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return 0;
      throw error;
    }
  }
}

/** A beat that a full disk cut short has none: the one before it is lost with it. */
function numbersIn(text: string): readonly number[] {
  try {
    return JSON.parse(text) as number[];
  } catch {
    return [];
  }
}

/**
 * Decision on the launch behind this directory; null: not decided yet (a crash before it). An unparsable file is put
 * aside, reported to `trouble`, and counts as missing.
 */
export function readSpec(instanceDir: string, trouble: (text: string) => void): InstanceSpec | null {
  const path = inside.spec(instanceDir);
  const text = readIfThere(path);
  if (text === null) return null;
  try {
    return JSON.parse(text) as InstanceSpec;
  } catch {
    trouble(`${path} cannot be read; it is kept as ${quarantine(path)}`);
    return null;
  }
}
