/**
 * Room for tasks that wait and for copies of tasks that run, one slot after another: the next slot goes to the line
 * that is furthest behind, and in it to the first job that can use it. Hopper, shortest-job-first and fair sharing
 * differ in their lines alone. A slot is a vCPU: what a task asks for in mCPU is what it takes.
 */
import FlatQueue from 'flatqueue';
import { raw } from '../../kernel/units.ts';
import type { AttemptId, JobId } from '../../kernel/ids.ts';
import { distributionOfTimes } from '../../domain/running-times.ts';
import { milliCpuOf } from '../../domain/pool.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import { finishedTimes, liveBeside, workDoneS, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import type { ValueContext } from '../contracts.ts';
import { whyNotCopied } from '../copies.ts';
import { worthCopying, type CopyRule, type StageSeen, type Straggler } from './copy-rules.ts';
import { tailOf, type StageTimes, type Tail } from './tail.ts';

export type TurnContext = Pick<ValueContext, 'snapshot' | 'forecasts'>;

/** Jobs that share a claim to slots, the first first. */
export interface Line {
  readonly jobs: readonly JobId[];
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

export interface Turns {
  /** Tasks that may start, in the order of their turns; a group may come more than once. */
  readonly starts: readonly { readonly group: PendingGroup; readonly count: number }[];
  readonly copies: readonly Straggler[];
  /** Free mCPU that no turn has taken, of which none is kept for copies. */
  readonly left: number;
}

/**
 * Turns of one decision. O(running tasks + (groups + stragglers + turns) x log jobs); a turn is a task, or all waiting
 * tasks of a group where its line does not change with their number.
 */
export function turnsOf(context: TurnContext, { lines, copies }: TurnTaking): Turns {
  const { snapshot } = context;
  const used = new Map<JobId, number>();
  let inUse = 0;
  for (const { attempt } of snapshot.running) {
    const milliCpu = milliCpuIn(attempt.resources);
    used.set(attempt.job, (used.get(attempt.job) ?? 0) + milliCpu);
    inUse += milliCpu;
  }
  const { stages, tail } = progressOf(context);
  const all = Math.max(inUse, slotsOf(snapshot));
  const stragglers = copies === null ? [] : stragglersOf(stages, copies, { snapshot, tail, all });
  const wishes = wishesOf(snapshot, stragglers, copies?.comesFirst ?? false);
  const spare = copies !== null && isFixed(snapshot) ? new SpareCopies(stages, { snapshot, tail }) : null;
  return new Taking(wishes, spare, all - inUse).over(lines({ context, tail, all, used }), used);
}

/** Slow tasks by a rule, whatever room there is. O(running tasks + stragglers x log stragglers). */
export function stragglersIn(context: TurnContext, rule: CopyRule): readonly Straggler[] {
  const { snapshot } = context;
  const inUse = snapshot.running.reduce((sum, { attempt }) => sum + milliCpuIn(attempt.resources), 0);
  const { stages, tail } = progressOf(context);
  return stragglersOf(stages, rule, { snapshot, tail, all: Math.max(inUse, slotsOf(snapshot)) });
}

/** mCPU of the machines of a fixed cluster; where machines can be bought, the limit on vCPUs. */
function slotsOf(snapshot: Snapshot): number {
  const { instances, pools, limits } = snapshot;
  if (!isFixed(snapshot)) return 1000 * limits.vcpus;
  let sum = 0;
  for (const { pool, reservedLeft = 0 } of pools) sum += Math.max(0, reservedLeft) * milliCpuOf(pool);
  for (const { pool } of instances.values()) sum += milliCpuOf(pool);
  return Math.min(sum, 1000 * limits.vcpus);
}

/** True where all machines are paid for, whether they are used or not: slots that nobody needs cost nothing. */
const isFixed = ({ pools }: Snapshot): boolean => pools.every(({ reservedLeft }) => reservedLeft !== undefined);

interface StageProgress extends Pick<StageSeen, 'running' | 'anew'> {
  readonly job: JobId;
  readonly times: StageTimes | null;
}

/** Stages with running tasks, and the tail of the running times of all of them. */
function progressOf(context: TurnContext): { stages: readonly StageProgress[]; tail: Tail } {
  const { snapshot, forecasts } = context;
  const byStage = Map.groupBy(snapshot.running, ({ attempt }) => `${attempt.job}/${attempt.stage}`);
  const stages: StageProgress[] = [];
  for (const [, mine] of byStage) {
    const [one] = mine;
    if (one === undefined) continue;
    const ended = finishedTimes(snapshot, one.attempt);
    const running = mine.flatMap((r) =>
      r.attempt.startedMs === null ? [] : [{ running: r, ranS: raw(workDoneS(r, snapshot.nowMs)) }],
    );
    const forecast = forecastFor(forecasts.runtime, one);
    const anew = ended !== null && ended.count >= ENOUGH_SIBLINGS ? distributionOfTimes(ended) : forecast?.runtime;
    const times = ended === null ? null : { ended, running: running.map((r) => r.ranS) };
    if (anew !== undefined) stages.push({ job: one.attempt.job, running, anew, times });
  }
  return { stages, tail: tailOf(stages.flatMap(({ times }) => (times === null ? [] : [times]))) };
}

/** From so many finished siblings on they say what a copy takes; until then the forecast does. */
const ENOUGH_SIBLINGS = 3;

/** Those that can have a copy and have none, the longest time left first. */
function stragglersOf(
  stages: readonly StageProgress[],
  rule: CopyRule,
  { snapshot, tail, all }: { readonly snapshot: Snapshot; readonly tail: Tail; readonly all: number },
): readonly Straggler[] {
  let spare = rule.mostOfSlots * all;
  const found: Straggler[] = [];
  for (const stage of stages) {
    const alone: StageSeen['running'][number][] = [];
    for (const one of stage.running) {
      if (one.running.attempt.role === 'copy') spare -= milliCpuIn(one.running.attempt.resources);
      if (liveBeside(snapshot, one.running).length === 0 && whyNotCopied(one.running, snapshot) === null)
        alone.push(one);
    }
    found.push(...rule.stragglers({ ...stage, running: alone, beta: tail.beta }));
  }
  return found
    .sort((a, b) => b.leftS - a.leftS || (a.running.attempt.id < b.running.attempt.id ? -1 : 1))
    .filter(({ running }) => (spare -= milliCpuIn(running.attempt.resources)) >= 0);
}

/** Copies of tasks that are not slow, for jobs that have slots left. */
class SpareCopies {
  readonly #byJob: ReadonlyMap<JobId, readonly StageProgress[]>;
  readonly #of: { readonly snapshot: Snapshot; readonly tail: Tail };

  constructor(stages: readonly StageProgress[], of: { readonly snapshot: Snapshot; readonly tail: Tail }) {
    this.#byJob = Map.groupBy(stages, ({ job }) => job);
    this.#of = of;
  }

  /** Tasks with the fewest attempts first, then by what a copy saves. At most one more copy of each task. */
  of(job: JobId, except: ReadonlySet<AttemptId>): readonly Straggler[] {
    const { snapshot, tail } = this.#of;
    return (this.#byJob.get(job) ?? [])
      .flatMap(({ running, anew }) => {
        const oldest = running.filter(
          ({ running: r }) =>
            !except.has(r.attempt.id) &&
            whyNotCopied(r, snapshot) === null &&
            liveBeside(snapshot, r).every((other) => r.attempt.number < other.attempt.number),
        );
        return worthCopying({ running: oldest, anew, beta: tail.beta });
      })
      .map((straggler) => ({ straggler, live: liveBeside(snapshot, straggler.running).length }))
      .filter(({ live }) => live < MOST_ATTEMPTS - 1)
      .sort((a, b) => a.live - b.live)
      .map(({ straggler, live }) => ({ ...straggler, attempts: live + 2 }));
  }
}

/** Attempts of a task that live at once at most: a fourth one saves little of any tail. */
const MOST_ATTEMPTS = 3;

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

/** Hands out free slots. */
class Taking {
  readonly #wishes: Map<JobId, Wish[]>;
  readonly #spare: SpareCopies | null;
  /** Jobs whose further copies are among the wishes. */
  readonly #spared = new Set<JobId>();
  #free: number;
  readonly #starts: { group: PendingGroup; count: number }[] = [];
  readonly #copies: Straggler[] = [];

  constructor(wishes: Map<JobId, Wish[]>, spare: SpareCopies | null, free: number) {
    this.#wishes = wishes;
    this.#spare = spare;
    this.#free = free;
  }

  over(lines: readonly Line[], used: ReadonlyMap<JobId, number>): Turns {
    const queue = new FlatQueue<number>();
    const uses = lines.map(({ jobs }) => jobs.reduce((sum, job) => sum + (used.get(job) ?? 0), 0));
    const at = lines.map(() => 0);
    lines.forEach(({ key }, i) => queue.push(i, key(uses[i] ?? 0)));
    while (queue.length > 0 && this.#free > 0) {
      const i = queue.pop() as number;
      const { jobs, key, share = 0 } = lines[i] as Line;
      const job = jobs[at[i] ?? 0];
      if (job === undefined) continue;
      const use = uses[i] ?? 0;
      const taken = this.#turn(job, key(use) === key(use + 1)) ?? this.#further(job, share - use);
      if (taken === null) at[i] = (at[i] ?? 0) + 1;
      else uses[i] = use + taken;
      queue.push(i, key(uses[i] ?? 0));
    }
    return { starts: this.#starts, copies: this.#copies, left: this.#free };
  }

  /** mCPU that the job's next wish takes; null: it has none that fits. `whole`: it may take all of a group at once. */
  #turn(job: JobId, whole: boolean): number | null {
    const mine = this.#wishes.get(job) ?? [];
    for (let next = mine[0]; next !== undefined; next = mine[0]) {
      const taken = next.group === undefined ? this.#copy(next.straggler) : this.#start(next, whole);
      if (next.group === undefined || taken === 0 || next.count < 1) mine.shift();
      if (taken > 0) return taken;
    }
    return null;
  }

  /** mCPU of a further copy of one of its tasks; null: there is none, or the share is used up. */
  #further(job: JobId, left: number): number | null {
    if (left <= 0 || this.#spare === null) return null;
    if (!this.#spared.has(job)) {
      this.#spared.add(job);
      const copied = new Set(this.#copies.map((c) => c.running.attempt.id));
      this.#wishes.set(
        job,
        this.#spare.of(job, copied).map((straggler) => ({ straggler })),
      );
    }
    const next = this.#wishes.get(job)?.[0]?.straggler;
    return next === undefined || milliCpuIn(next.running.attempt.resources) > left ? null : this.#turn(job, false);
  }

  #copy(straggler: Straggler): number {
    const taken = milliCpuIn(straggler.running.attempt.resources);
    if (taken > this.#free) return 0;
    this.#copies.push(straggler);
    this.#free -= taken;
    return taken;
  }

  #start(wish: Wish & { readonly group: PendingGroup }, whole: boolean): number {
    const { group } = wish;
    const each = milliCpuIn(group.need);
    const fitting = Math.min(wish.count, Math.floor(this.#free / each));
    const atOnce = group.stage.gang ? wish.count : whole ? fitting : 1;
    if (atOnce < 1 || atOnce > fitting) return 0;
    wish.count -= atOnce;
    this.#free -= atOnce * each;
    const last = this.#starts.at(-1);
    if (last?.group === group) last.count += atOnce;
    else this.#starts.push({ group, count: atOnce });
    return atOnce * each;
  }
}
