/**
 * The part of a job's tasks that run as pilots: the one under which recent jobs came to their ends soonest (SLearn,
 * section 5.1.2 and figure 3).
 */
import { z } from 'zod';
import { raw } from '../../kernel/units.ts';
import type { JobId } from '../../kernel/ids.ts';
import type { Job } from '../../domain/job.ts';
import type { Learner, LearningEvent } from '../learner.ts';

export interface SamplingRatios {
  /** Percent of the tasks of this job. */
  ratioOf(job: JobId): number;
}

/** Jobs whose scores count for each ratio, and that each of the first ratios is tried for: T (section 5.1.2). */
const RECENT = 100;
const TRIED_FIRST = [3, 2, 4] as const;
const RATIOS = [1, 2, 3, 4, 5] as const;
/** A ratio is left for one beyond it if the middle one is worse by more than this factor (figure 3). */
const WORSE = 1.1;
/** Jobs of which pilots have ended and others not. Beyond it the oldest are forgotten: they score for no ratio. */
const MOST_UNFINISHED = 10_000;

const PREFIX = 'sampling-ratio/';
const ROW = `${PREFIX}scores`;
const row = z.strictObject({
  begun: z.int().nonnegative(),
  scores: z.array(z.array(z.number().nonnegative()).max(RECENT)).length(RATIOS.length),
});

export const samplingRatioLearner = (): Learner<SamplingRatios> => new SamplingRatioLearner();

class SamplingRatioLearner implements Learner<SamplingRatios> {
  readonly name = 'sampling-ratio';
  readonly about = 'under which part of tasks as pilots jobs end soonest, for their size';
  readonly source = 'SLearn, section 5.1.2 (figure 3)';
  readonly prefix = PREFIX;
  readonly learnsFrom = ['attempt-ended'] as const;
  /** Jobs that have a ratio, ended or not. */
  #begun = 0;
  /** Completion times over running times of the last jobs, by ratio. */
  #scores: number[][] = RATIOS.map(() => []);
  readonly #unfinished = new Map<JobId, number>();
  #isDirty = false;
  readonly #belief: SamplingRatios = Object.freeze({
    ratioOf: (job: JobId) => this.#unfinished.get(job) ?? this.#next(),
  });

  observe(event: LearningEvent): void {
    if (event.kind !== 'attempt-ended' || event.runtimeS === null) return;
    const { job, attempt, atMs } = event;
    if (attempt.role === 'pilot' && !this.#unfinished.has(job.id)) this.#begin(job.id);
    const ratio = this.#unfinished.get(job.id);
    if (ratio === undefined || !isDone(job)) return;
    this.#unfinished.delete(job.id);
    const ranS = job.stages.reduce((sum, { times }) => sum + (times === undefined ? 0 : raw(times.sumS)), 0);
    if (!(ranS > 0)) return;
    const scores = this.#scores[ratio - 1] ?? [];
    scores.push((raw(atMs) - raw(job.submittedMs)) / 1000 / ranS);
    if (scores.length > RECENT) scores.shift();
    this.#isDirty = true;
  }

  #begin(job: JobId): void {
    const [oldest] = this.#unfinished.keys();
    if (this.#unfinished.size >= MOST_UNFINISHED && oldest !== undefined) this.#unfinished.delete(oldest);
    this.#unfinished.set(job, this.#next());
    this.#begun++;
    this.#isDirty = true;
  }

  /** Figure 3: 3, 2 and 4 % first; then the best, or the one beyond it. */
  #next(): number {
    const first = TRIED_FIRST[Math.floor(this.#begun / RECENT)];
    if (first !== undefined) return first;
    const means = this.#scores.map((s) => s.reduce((a, b) => a + b, 0) / s.length).map((m) => (m >= 0 ? m : Infinity));
    const least = Math.min(...means);
    const best = means.indexOf(least) + 1;
    const isWorse = WORSE * least < (means[2] ?? Infinity);
    if (best === 2 && isWorse) return 1;
    if (best === 4 && isWorse) return 5;
    return best === 0 ? TRIED_FIRST[0] : best;
  }

  belief(): SamplingRatios {
    return this.#belief;
  }

  takeDirty(): ReadonlyMap<string, string> {
    if (!this.#isDirty) return new Map();
    this.#isDirty = false;
    return new Map([[ROW, JSON.stringify({ begun: this.#begun, scores: this.#scores })]]);
  }

  /** A row that cannot be read is no more than scores that are to be made anew. */
  restore(rows: ReadonlyMap<string, string>): void {
    const { begun, scores } = read(rows.get(ROW) ?? '');
    this.#unfinished.clear();
    this.#begun = begun;
    this.#scores = scores;
    this.#isDirty = false;
  }
}

function read(text: string): z.output<typeof row> {
  const none = { begun: 0, scores: RATIOS.map(() => []) };
  try {
    return row.safeParse(JSON.parse(text)).data ?? none;
  } catch {
    return none;
  }
}

const isDone = ({ stages }: Job): boolean => stages.every((s) => s.succeeded >= s.tasks);
