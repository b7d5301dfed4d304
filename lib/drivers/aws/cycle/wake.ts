/**
 * Start of cycles, one at a time; also of the controller of services (lambdas/serve), under a key of its own. Triggers
 * (a submission, an interruption, the clock) increment `wanted`. The first of them starts an execution of the state
 * machine. Its next round serves triggers that come while it runs.
 *
 * The item WAKE has these attributes:
 * - `wanted`: triggers so far. `served`: triggers that the last finished round had seen.
 * - `running`: the current execution. `beatMs`: start of its latest round.
 * - `dueMs`, `dueInMs`: time of the next cycle if nothing happens. Absent: nothing is left to do.
 * - `awaited`: a trigger came since the latest round began, and a round will follow.
 * - `beat`: a new random value at each start and end of a round.
 * - `watched`, `watchedMs`: the beat that the last tick saw, and since when.
 *
 * Invariants. An execution ends only if nothing was wanted since its latest round began. One conditional write checks
 * this, so no trigger is lost. The counter decides, never a time, because clocks of two Lambdas may differ.
 * Ticks of the clock alone decide whether an execution is dead or overdue. They carry the sender's time: a beat that is
 * unchanged between two ticks for long enough has stopped. If two executions ever run at once, the store's fencing
 * token separates them.
 */
import { randomText, timeOrderedText } from '../../../kernel/ids.ts';
import type { Uniform } from '../../../kernel/random.ts';
import { flag, flagOf, number, numberOf, text, textAt, type Item } from '../store/codec.ts';
import { WAKE, type Key } from '../store/keys.ts';
import type { Condition, Table } from '../store/dynamo-table.ts';
import { epochMs } from '../../../kernel/units.ts';

/** Longest duration of an Express execution (Step Functions, "Service quotas"). */
const STALE_MS = 5 * 60_000;

export interface WakeParts {
  /** Its item; absent: that of the scheduling cycle. */
  readonly key?: Key;
  /** Time without a round after which an execution is taken for dead, ms; absent: that of the scheduling cycle. */
  readonly staleMs?: number;
  readonly table: Pick<Table, 'add' | 'get' | 'write'>;
  /** Wall time of this process. Nothing that others rely on depends on it. */
  readonly nowMs: () => number;
  readonly random: Uniform;
  /** Starts the state machine. `execution` is the name of the run and its input. */
  readonly start: (execution: string) => Promise<void>;
}

export class Wake {
  readonly #parts: WakeParts;
  readonly #key: Key;
  readonly #staleMs: number;

  constructor(parts: WakeParts) {
    this.#parts = parts;
    this.#key = parts.key ?? WAKE;
    this.#staleMs = parts.staleMs ?? STALE_MS;
  }

  /** Counts a trigger, and starts an execution if none runs. Throws if either fails: call it again. */
  async wake(): Promise<'started' | 'coalesced'> {
    const item = await this.#parts.table.add(this.#key, 'wanted', 1, { awaited: flag(true) });
    return this.#startUnlessRunning(item);
  }

  /** Counts a trigger without starting anything; the next tick does. For callers without the right to start. */
  async want(): Promise<void> {
    await this.#parts.table.add(this.#key, 'wanted', 1);
  }

  /**
   * True if a round will begin after this moment for a trigger that was counted. That round sees everything stored
   * before this call, so no further wake-up is needed.
   * If the trigger's sender dies, its message comes again or the clock finds it unserved, as for any trigger.
   */
  async isAwaited(): Promise<boolean> {
    return flagOf((await this.#parts.table.get(this.#key)) ?? {}, 'awaited');
  }

  /**
   * For the clock: starts an execution if one is due, or was wanted and never ran. `revived`: it replaces one that
   * died. One read if there is nothing to do. `tickMs`: time of the tick.
   */
  async wakeIfDue(tickMs: number): Promise<'started' | 'revived' | 'coalesced' | 'idle'> {
    const item = await this.#parts.table.get(this.#key);
    if (item === undefined) return 'idle';
    if (textAt(item, 'running') !== '') {
      if (!(await this.#isSeenFor(item, this.#staleMs, tickMs))) return 'idle';
      const answer = await this.#take(item);
      return answer === 'started' ? 'revived' : answer;
    }
    const isUnserved = numberOf(item, 'wanted') > numberOf(item, 'served');
    return isUnserved || (await this.#isDue(item, tickMs)) ? this.#take(item) : 'idle';
  }

  /** True if a cycle is due by the writer's clock, or by ticks if that clock is slow. A cycle too many does no harm. */
  async #isDue(item: Item, tickMs: number): Promise<boolean> {
    if (item['dueMs'] === undefined) return false;
    if (tickMs >= numberOf(item, 'dueMs')) return true;
    return this.#isSeenFor(item, numberOf(item, 'dueInMs') - 1, tickMs);
  }

  /** True if ticks have seen this beat for longer than `forMs`. The first tick that sees a beat notes it. */
  async #isSeenFor(item: Item, forMs: number, tickMs: number): Promise<boolean> {
    const beat = textAt(item, 'beat');
    const watchedMs = numberOf(item, 'watchedMs');
    if (item['watchedMs'] !== undefined && textAt(item, 'watched') === beat) return tickMs - watchedMs > forMs;
    await this.#parts.table.write(
      {
        key: this.#key,
        // Maximum: a late tick must not make this beat look older than it is.
        set: { watched: text(beat), watchedMs: number(Math.max(tickMs, watchedMs)) },
        condition: stillAt(beat),
      },
      'nothing',
    );
    return false;
  }

  /** True if nothing runs, is wanted or is due: the last cycle found nothing left to do. */
  async isIdle(): Promise<boolean> {
    const item = await this.#parts.table.get(this.#key);
    if (item === undefined) return true;
    const isWanted = numberOf(item, 'wanted') > numberOf(item, 'served');
    return textAt(item, 'running') === '' && item['dueMs'] === undefined && !isWanted;
  }

  /** True if a cycle died or is overdue. For reports only. */
  async isLate(): Promise<boolean> {
    const item = await this.#parts.table.get(this.#key);
    if (item === undefined) return false;
    const since = textAt(item, 'running') === '' ? 'dueMs' : 'beatMs';
    return item[since] !== undefined && this.#parts.nowMs() - numberOf(item, since) > this.#staleMs;
  }

  /** Start of a round. Null if another execution has taken over; else the number that `end` needs. */
  async begin(execution: string): Promise<number | null> {
    const { status, item } = await this.#parts.table.write({
      key: this.#key,
      set: { running: text(execution), beat: this.#beat(), beatMs: number(this.#parts.nowMs()) },
      remove: ['awaited'],
      condition: {
        expression: 'attribute_not_exists(running) OR running = :execution',
        values: { ':execution': text(execution) },
      },
    });
    return status === 'done' ? numberOf(item, 'wanted') : null;
  }

  /**
   * End of a round. True if something was wanted since it began (`seen`): another round must follow. `dueInMs`: time to
   * the next cycle if nothing happens; null if nothing is left to do.
   */
  async end(execution: string, { seen, dueInMs }: { seen: number; dueInMs: number | null }): Promise<boolean> {
    const inMs = dueInMs === null ? null : Math.max(0, Math.ceil(dueInMs));
    const due = inMs === null ? {} : { dueMs: number(this.#parts.nowMs() + inMs), dueInMs: number(inMs) };
    const { status, item } = await this.#parts.table.write({
      key: this.#key,
      set: { served: number(seen), beat: this.#beat(), ...due },
      remove: ['running', 'beatMs', ...(inMs === null ? ['dueMs', 'dueInMs'] : [])],
      condition: {
        expression: 'running = :execution AND (attribute_not_exists(wanted) OR wanted = :seen)',
        values: { ':execution': text(execution), ':seen': number(seen) },
      },
    });
    return status === 'refused' && textAt(item, 'running') === execution;
  }

  /**
   * Report of a failed execution: frees its place at once. Its triggers stay wanted or due. False if another execution
   * has the place.
   */
  async gaveUp(execution: string): Promise<boolean> {
    const { status } = await this.#free(execution);
    return status === 'done';
  }

  /** Replaces a long-running execution by a new one. */
  async handOver(execution: string): Promise<void> {
    const item = await this.#parts.table.get(this.#key);
    if (textAt(item, 'running') === execution) await this.#take(item ?? {});
  }

  async #startUnlessRunning(item: Item): Promise<'started' | 'coalesced'> {
    return textAt(item, 'running') === '' ? this.#take(item) : 'coalesced';
  }

  /** Random value that differs from all earlier beats. */
  #beat(): Item[string] {
    return text(randomText(this.#parts.random, 12));
  }

  /** Takes the place of the execution in `item`, or the free place. Only one of several callers succeeds. */
  async #take(item: Item): Promise<'started' | 'coalesced'> {
    const before = textAt(item, 'running');
    const execution = `c-${timeOrderedText(epochMs(this.#parts.nowMs()), this.#parts.random)}`;
    const { status } = await this.#parts.table.write({
      key: this.#key,
      set: { running: text(execution), beat: this.#beat(), beatMs: number(this.#parts.nowMs()) },
      condition: before === '' ? { expression: 'attribute_not_exists(running)' } : stillAt(textAt(item, 'beat')),
    });
    if (status === 'refused') return 'coalesced';
    try {
      await this.#parts.start(execution);
    } catch (error) {
      await this.#letGo(execution);
      throw error;
    }
    return 'started';
  }

  /** Frees the place again. A failure is ignored: the execution that never began is taken for dead later. */
  async #letGo(execution: string): Promise<void> {
    await this.#free(execution).catch(() => undefined);
  }

  #free(execution: string): Promise<{ readonly status: 'done' | 'refused' }> {
    return this.#parts.table.write({
      key: this.#key,
      // Free place: the next trigger tries again.
      remove: ['running', 'beatMs', 'awaited'],
      condition: { expression: 'running = :execution', values: { ':execution': text(execution) } },
    });
  }
}

/** Condition: no round has begun or ended since. An item of an earlier version has no beat. */
const stillAt = (beat: string): Condition =>
  beat === ''
    ? { expression: 'attribute_not_exists(beat)' }
    : { expression: 'beat = :beat', values: { ':beat': text(beat) } };
