/**
 * Room for tasks that wait and for copies of tasks that run, one slot after another: the next slot goes to the line
 * that is furthest behind, and in it to the first job that can use it. Hopper, shortest job first, fair sharing
 * and multi-level queues differ in their lines alone. A slot is a vCPU: what a task asks for in mCPU is what it takes.
 */
import FlatQueue from 'flatqueue';
import type { JobId } from '../../kernel/ids.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import type { ValueContext } from '../contracts.ts';
import { isFixed, slotsOf, usedSlots } from '../slots.ts';
import type { CopyRule, Straggler } from '../speculation/copy-rules.ts';
import { progressOf, SpareCopies, stragglersOf } from '../speculation/stragglers.ts';
import type { Tail } from '../speculation/tail.ts';

export type TurnContext = Pick<ValueContext, 'snapshot' | 'forecasts' | 'beliefs'>;

/** A job in a line. */
export interface Entry {
  readonly job: JobId;
  /** Most tasks that it starts in this line. Absent: all that wait. */
  readonly most?: number;
  /** True: what it starts are pilots. */
  readonly pilots?: true;
}

/** Jobs that share a claim to slots, the first first. */
export interface Line {
  readonly entries: readonly Entry[];
  /** Key of the line while it uses so many mCPU; the line with the lowest key has the next slot. */
  readonly key: (usedMilliCpu: number) => number;
  /** Up to so many mCPU it copies tasks that are not slow, once none of its tasks waits. Absent: it copies none. */
  readonly share?: number;
}

/** What lines are made from. mCPU throughout. */
export interface Slots {
  readonly context: TurnContext;
  readonly tail: Tail;
  /** In use and free. */
  readonly all: number;
  /** In use by live attempts, by job. */
  readonly used: ReadonlyMap<JobId, number>;
}

export interface TurnTaking {
  readonly lines: (slots: Slots) => readonly Line[];
  /** Null: no task is copied. */
  readonly copies: CopyRule | null;
}

/** Tasks of a group that may start. */
export interface StartTurn {
  readonly group: PendingGroup;
  readonly count: number;
  readonly pilots: boolean;
}

export interface Turns {
  /** In the order of turns; a group may come more than once. */
  readonly starts: readonly StartTurn[];
  readonly copies: readonly Straggler[];
  /** Free mCPU that no turn has taken, of which none is kept for copies. */
  readonly left: number;
}

/**
 * Turns of one decision. O(running tasks + (groups + stragglers + turns) x log lines); a turn is a task, or all waiting
 * tasks of a group where its line does not change with their number.
 */
export function turnsOf(context: TurnContext, { lines, copies }: TurnTaking): Turns {
  const { snapshot } = context;
  const { byJob: used, sum: inUse } = usedSlots(snapshot);
  const { stages, tail } = progressOf(context);
  const all = Math.max(inUse, slotsOf(snapshot));
  const stragglers = copies === null ? [] : stragglersOf(stages, copies, { snapshot, tail, all });
  const wishes = wishesOf(snapshot, stragglers, copies?.comesFirst ?? false);
  const spare = copies !== null && isFixed(snapshot) ? new SpareCopies(stages, { snapshot, tail }) : null;
  return new Taking(wishes, spare, all - inUse).over(lines({ context, tail, all, used }), used);
}

/** Something that a job would use slots for. */
type Wish =
  | { readonly group: PendingGroup; count: number; readonly straggler?: never }
  | { readonly straggler: Straggler; readonly group?: never };

function wishesOf(snapshot: Snapshot, stragglers: readonly Straggler[], copiesFirst: boolean): Map<JobId, Wish[]> {
  const wishes = new Map<JobId, Wish[]>();
  const wish = (job: JobId, what: Wish): void => {
    const mine = wishes.get(job);
    if (mine === undefined) wishes.set(job, [what]);
    else mine.push(what);
  };
  const copy = (): void => stragglers.forEach((straggler) => wish(straggler.running.attempt.job, { straggler }));
  if (copiesFirst) copy();
  for (const group of [...snapshot.groups].sort((a, b) => (a.id < b.id ? -1 : 1)))
    wish(group.job, { group, count: group.count });
  if (!copiesFirst) copy();
  return wishes;
}

/** A line, and where it is. */
interface Place {
  readonly line: Line;
  used: number;
  /** Index of the entry whose turn it is, and tasks that it has started. */
  at: number;
  started: number;
}

/** Hands out free slots. */
class Taking {
  readonly #wishes: Map<JobId, Wish[]>;
  readonly #spare: SpareCopies | null;
  /** Jobs whose further copies are among the wishes. */
  readonly #spared = new Set<JobId>();
  #free: number;
  readonly #starts: { group: PendingGroup; count: number; pilots: boolean }[] = [];
  readonly #copies: Straggler[] = [];

  constructor(wishes: Map<JobId, Wish[]>, spare: SpareCopies | null, free: number) {
    this.#wishes = wishes;
    this.#spare = spare;
    this.#free = free;
  }

  over(lines: readonly Line[], used: ReadonlyMap<JobId, number>): Turns {
    const queue = new FlatQueue<number>();
    const places = lines.map((line): Place => {
      const of = new Set(line.entries.map((e) => e.job));
      return { line, used: [...of].reduce((sum, job) => sum + (used.get(job) ?? 0), 0), at: 0, started: 0 };
    });
    places.forEach((place, i) => queue.push(i, place.line.key(place.used)));
    while (queue.length > 0 && this.#free > 0) {
      const i = queue.pop() as number;
      const place = places[i] as Place;
      const entry = place.line.entries[place.at];
      if (entry === undefined) continue;
      const taken = this.#turn(place, entry) ?? this.#further(place, entry);
      if (taken === null) Object.assign(place, { at: place.at + 1, started: 0 });
      else place.used += taken;
      queue.push(i, place.line.key(place.used));
    }
    return { starts: this.#starts, copies: this.#copies, left: this.#free };
  }

  /** mCPU that the job's next wish takes; null: it has none that fits. */
  #turn(place: Place, entry: Entry): number | null {
    const mine = this.#wishes.get(entry.job) ?? [];
    for (let next = mine[0]; next !== undefined; next = mine[0]) {
      if (next.group !== undefined && place.started >= (entry.most ?? Infinity)) return null;
      const taken = next.group === undefined ? this.#copy(next.straggler) : this.#start(place, entry, next);
      if (next.group === undefined || taken === 0 || next.count < 1) mine.shift();
      if (taken > 0) return taken;
    }
    return null;
  }

  /** mCPU of a further copy of one of its tasks; null: there is none, or the share is used up. */
  #further({ line: { share = 0 }, used }: Place, { job }: Entry): number | null {
    if (share <= used || this.#spare === null) return null;
    if (!this.#spared.has(job)) {
      this.#spared.add(job);
      const copied = new Set(this.#copies.map((c) => c.running.attempt.id));
      this.#wishes.set(
        job,
        this.#spare.of(job, copied).map((straggler) => ({ straggler })),
      );
    }
    const next = this.#wishes.get(job)?.shift()?.straggler;
    if (next === undefined || milliCpuIn(next.running.attempt.resources) > share - used) return null;
    const taken = this.#copy(next);
    return taken > 0 ? taken : null;
  }

  #copy(straggler: Straggler): number {
    const taken = milliCpuIn(straggler.running.attempt.resources);
    if (taken > this.#free) return 0;
    this.#copies.push(straggler);
    this.#free -= taken;
    return taken;
  }

  /** A task, all of a gang, or all that fit of a group if the line's key stays the same. */
  #start(place: Place, { most = Infinity, pilots }: Entry, wish: Wish & { readonly group: PendingGroup }): number {
    const { group } = wish;
    const { key } = place.line;
    const each = milliCpuIn(group.need);
    const fitting = Math.min(wish.count, Math.floor(this.#free / each));
    const isConstant = key(place.used) === key(place.used + 1);
    const count = group.stage.gang ? wish.count : isConstant ? Math.min(fitting, most - place.started) : 1;
    if (count < 1 || count > fitting) return 0;
    wish.count -= count;
    place.started += count;
    this.#free -= count * each;
    const last = this.#starts.at(-1);
    if (last?.group === group && last.pilots === (pilots ?? false)) last.count += count;
    else this.#starts.push({ group, count, pilots: pilots ?? false });
    return count * each;
  }
}
