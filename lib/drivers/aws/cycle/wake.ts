/**
 * Who starts cycles, and that it is one at a time. Triggers (a submission, an interruption, the clock) count `wanted`
 * up; the first of them starts an execution of the state machine, those that come while it runs are served by its next
 * round.
 *
 * The item WAKE holds: `wanted` (triggers so far), `served` (how many of them the last cycle that ended had seen),
 * `running` and `beatMs` (the execution under way, and when it last began a round), `dueMs` and `dueInMs` (when to look
 * again though nothing happens; absent: nothing is left to do), `awaited` (a trigger was counted since the last round
 * began, and a round will follow for it), `beat` (another one with each round that begins or ends), `watched` and
 * `watchedMs` (the beat that the clock's strikes have seen since then).
 *
 * Invariants: an execution ends only if nothing was wanted since its last round began, in one conditional write, so no
 * trigger is lost between its last look and its end. What counts is the counter, never a time: clocks of two Lambdas
 * may differ. Whether an execution is dead, and whether one is overdue, is told by the strikes of the minute's clock
 * alone, which bear the time of who sends them: what stays the same from one strike to another, so long, does not go on
 * by itself. Two executions that run at once, should it come to that, are kept apart by the store's fencing token.
 */
import { randomText, timeOrderedText } from '../../../kernel/ids.ts';
import type { Uniform } from '../../../kernel/random.ts';
import { flag, flagOf, number, numberOf, text, textAt, type Item } from '../store/codec.ts';
import { WAKE } from '../store/keys.ts';
import type { Condition, Table } from '../store/dynamo-table.ts';
import { epochMs } from '../../../kernel/units.ts';

/** An Express execution lasts five minutes at most (Step Functions, "Service quotas"). */
const STALE_MS = 5 * 60_000;

export interface WakeParts {
  readonly table: Pick<Table, 'add' | 'get' | 'write'>;
  /** Wall time of this process: nothing that others rely on hangs on it. */
  readonly nowMs: () => number;
  readonly random: Uniform;
  /** Starts the state machine; `execution` names the run and is its input. */
  readonly start: (execution: string) => Promise<void>;
}

export class Wake {
  readonly #parts: WakeParts;

  constructor(parts: WakeParts) {
    this.#parts = parts;
  }

  /** There may be something to do. Throws when that cannot be said or no execution can be started: say it again. */
  async wake(): Promise<'started' | 'coalesced'> {
    const item = await this.#parts.table.add(WAKE, 'wanted', 1, { awaited: flag(true) });
    return this.#startUnlessRunning(item);
  }

  /** The same for who may start nothing: the clock's next strike does. */
  async want(): Promise<void> {
    await this.#parts.table.add(WAKE, 'wanted', 1);
  }

  /**
   * Whether a round is still to come that begins after this moment, for a trigger that is counted: it sees what was
   * stored before this was asked, and nobody need be woken for that. Should whoever counted that trigger die, what is
   * true of any trigger is true of this one: its message comes again, or the clock finds it unserved.
   */
  async isAwaited(): Promise<boolean> {
    return flagOf((await this.#parts.table.get(WAKE)) ?? {}, 'awaited');
  }

  /**
   * For the clock: starts an execution if one is due or was wanted and never ran, or, which is `revived`, one in place
   * of another that has died. One read when there is nothing to do. `struckMs`: when the clock struck, by itself.
   */
  async wakeIfDue(struckMs: number): Promise<'started' | 'revived' | 'coalesced' | 'idle'> {
    const item = await this.#parts.table.get(WAKE);
    if (item === undefined) return 'idle';
    if (textAt(item, 'running') !== '') {
      if (!(await this.#isSeenFor(item, STALE_MS, struckMs))) return 'idle';
      const answer = await this.#take(item);
      return answer === 'started' ? 'revived' : answer;
    }
    const isUnserved = numberOf(item, 'wanted') > numberOf(item, 'served');
    return isUnserved || (await this.#isDue(item, struckMs)) ? this.#take(item) : 'idle';
  }

  /**
   * By the clock of whoever said so, which may be slow; then by the strikes, within a minute. One too many looks in
   * vain.
   */
  async #isDue(item: Item, struckMs: number): Promise<boolean> {
    if (item['dueMs'] === undefined) return false;
    if (struckMs >= numberOf(item, 'dueMs')) return true;
    return this.#isSeenFor(item, numberOf(item, 'dueInMs') - 1, struckMs);
  }

  /** Whether strikes have seen this beat for longer than `forMs`; the first that sees it is noted. */
  async #isSeenFor(item: Item, forMs: number, struckMs: number): Promise<boolean> {
    const beat = textAt(item, 'beat');
    const watchedMs = numberOf(item, 'watchedMs');
    if (item['watchedMs'] !== undefined && textAt(item, 'watched') === beat) return struckMs - watchedMs > forMs;
    await this.#parts.table.write(
      {
        key: WAKE,
        // A strike that comes late must not make this one look older than it is.
        set: { watched: text(beat), watchedMs: number(Math.max(struckMs, watchedMs)) },
        condition: stillAt(beat),
      },
      'nothing',
    );
    return false;
  }

  /** Whether nothing runs, nothing is wanted and nothing is due: the last cycle found nothing left to do. */
  async isIdle(): Promise<boolean> {
    const item = await this.#parts.table.get(WAKE);
    if (item === undefined) return true;
    const isWanted = numberOf(item, 'wanted') > numberOf(item, 'served');
    return textAt(item, 'running') === '' && item['dueMs'] === undefined && !isWanted;
  }

  /**
   * Whether something that should have happened did not: a cycle that died, or one that was due and did not begin. Only
   * to be said: it is as right as the clocks of this process and of the cycle's are.
   */
  async isLate(): Promise<boolean> {
    const item = await this.#parts.table.get(WAKE);
    if (item === undefined) return false;
    const since = textAt(item, 'running') === '' ? 'dueMs' : 'beatMs';
    return item[since] !== undefined && this.#parts.nowMs() - numberOf(item, since) > STALE_MS;
  }

  /** A round of an execution begins. Null when another execution has taken its place; else what to end it with. */
  async begin(execution: string): Promise<number | null> {
    const { status, item } = await this.#parts.table.write({
      key: WAKE,
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
   * A round is over: true when something was wanted since it began (`seen`) and another one must follow. `dueInMs` says
   * when to look again though nothing happens; null when nothing is left to do.
   */
  async end(execution: string, { seen, dueInMs }: { seen: number; dueInMs: number | null }): Promise<boolean> {
    const inMs = dueInMs === null ? null : Math.max(0, Math.ceil(dueInMs));
    const due = inMs === null ? {} : { dueMs: number(this.#parts.nowMs() + inMs), dueInMs: number(inMs) };
    const { status, item } = await this.#parts.table.write({
      key: WAKE,
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
   * An execution has failed: its place is free at once, for the next trigger or the clock, instead of when it would be
   * taken for dead. What it was to serve stays wanted or due. False when another one has its place already.
   */
  async gaveUp(execution: string): Promise<boolean> {
    const { status } = await this.#free(execution);
    return status === 'done';
  }

  /** Another execution goes on where this one, which has run for long, ends. */
  async handOver(execution: string): Promise<void> {
    const item = await this.#parts.table.get(WAKE);
    if (textAt(item, 'running') === execution) await this.#take(item ?? {});
  }

  async #startUnlessRunning(item: Item): Promise<'started' | 'coalesced'> {
    return textAt(item, 'running') === '' ? this.#take(item) : 'coalesced';
  }

  /** Means nothing but that it is another one than before. */
  #beat(): Item[string] {
    return text(randomText(this.#parts.random, 12));
  }

  /** Takes the place of the execution that `item` names, or of none; one of several that try at once does. */
  async #take(item: Item): Promise<'started' | 'coalesced'> {
    const before = textAt(item, 'running');
    const execution = `c-${timeOrderedText(epochMs(this.#parts.nowMs()), this.#parts.random)}`;
    const { status } = await this.#parts.table.write({
      key: WAKE,
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

  /** Not heeded when it fails: the execution that never began is taken for dead later. */
  async #letGo(execution: string): Promise<void> {
    await this.#free(execution).catch(() => undefined);
  }

  #free(execution: string): Promise<{ readonly status: 'done' | 'refused' }> {
    return this.#parts.table.write({
      key: WAKE,
      // Whoever comes next tries again.
      remove: ['running', 'beatMs', 'awaited'],
      condition: { expression: 'running = :execution', values: { ':execution': text(execution) } },
    });
  }
}

/** No round has begun or ended since. An item of an earlier version has no beat. */
const stillAt = (beat: string): Condition =>
  beat === ''
    ? { expression: 'attribute_not_exists(beat)' }
    : { expression: 'beat = :beat', values: { ':beat': text(beat) } };
