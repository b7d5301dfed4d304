/** Running tasks of which a copy may be made, over all stages. */
import { raw } from '../../kernel/units.ts';
import type { AttemptId, JobId } from '../../kernel/ids.ts';
import { distributionOfTimes } from '../../domain/running-times.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import { finishedTimes, liveBeside, workDoneS, type Snapshot } from '../../domain/snapshot.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import type { ValueContext } from '../contracts.ts';
import { whyNotCopied } from '../copies.ts';
import { slotsOf, usedSlots } from '../slots.ts';
import { worthCopying, type CopyRule, type StageSeen, type Straggler } from './copy-rules.ts';
import { tailOf, type StageTimes, type Tail } from './tail.ts';

type Seen = Pick<ValueContext, 'snapshot' | 'forecasts'>;

/** Slow tasks by a rule, whatever room there is. O(running tasks + stragglers x log stragglers). */
export function stragglersIn(context: Seen, rule: CopyRule): readonly Straggler[] {
  const { snapshot } = context;
  const { stages, tail } = progressOf(context);
  return stragglersOf(stages, rule, { snapshot, tail, all: Math.max(usedSlots(snapshot).sum, slotsOf(snapshot)) });
}

/** Running tasks of a stage, the time that a copy takes, and the times that tell of the tail. */
export interface StageProgress extends Pick<StageSeen, 'running' | 'anew'> {
  readonly job: JobId;
  readonly times: StageTimes | null;
}

/** Stages with running tasks, and the tail of the running times of all of them. */
export function progressOf(context: Seen): { stages: readonly StageProgress[]; tail: Tail } {
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
export const ENOUGH_SIBLINGS = 3;

/** Those that can have a copy and have none, the longest time left first. */
export function stragglersOf(
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
export class SpareCopies {
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
